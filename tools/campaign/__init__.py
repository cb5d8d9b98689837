"""Attacks on what is claimed, for as long as one likes: kills, ends, threads, shuffles, hostile arguments.

    python -m tools.campaign --seconds 7200 --seed 1 --report report.json

Each trial has a seed of its own, which is printed where it fails and replays it alone:

    python -m tools.campaign --attack kill --trial-seed 123456

An attack is a function ``trial(rng, tally)``: it draws a case from the generator, says to the tally what it has
compared and what has failed, and may leave by any exception, which is a failure, too.
"""
