"""What `benchmarks/peers.py` runs: the jobs and contenders, how they are measured, the traps, and the page."""
