"""The command line of the campaign."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from . import driver


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.campaign", description="Attack what is claimed.")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--attacks", nargs="+", choices=list(driver.ATTACKS), default=list(driver.ATTACKS))
    parser.add_argument("--trials", type=int, help="of each attack, at most")
    parser.add_argument("--turn", type=float, default=60.0, help="seconds of one attack before the next")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--attack", choices=list(driver.ATTACKS), help="with --trial-seed: replay one trial here")
    parser.add_argument("--trial-seed", type=int)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it otherwise
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.trial_seed is not None:
        tally = driver.attempt(options.attack or parser.error("--trial-seed needs --attack"), options.trial_seed)
        print(f"{tally.compared} comparisons, notes {dict(tally.notes)}")
        for what, detail in tally.failures:
            print(f"FAILURE: {what}\n{detail}")
        for what, detail in tally.remarks:
            print(f"remark: {what}\n{detail}")
        return bool(tally.failures)
    for attack in options.attacks:
        driver.load(attack)  # compiles or loads what all workers need
    report = options.report and options.report.resolve()
    campaign = driver.Campaign(options.attacks, options.seed, report, options.turn, options.trials)
    campaign.run(options.seconds, lambda text: print(f"\r{text}", end="" if sys.stdout.isatty() else "\n", flush=True))
    print(f"\n{campaign.table()}")
    return bool(campaign.failures)


if __name__ == "__main__":
    sys.exit(main())
