"""The parts of `benchmarks/peers.py`: jobs and contenders, measurements, traps, and the page."""
