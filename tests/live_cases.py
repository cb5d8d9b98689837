"""Snapshots like those of monitors, for tests of the live view; also a script that shows them."""

import sys

import numpy as np

SENTENCE = (
    "At step {step} the evidence that the data are not exchangeable, or the claims wrong, reached 10^{log:.2f}; "
    "if all is well that ever happens with probability at most 0.01"
)


def snapshots(n, seed=0, change=None, stride=1):
    """Yield, for every `stride`-th of `n` steps, a dict of snapshots of four predictors."""
    rng = np.random.default_rng(seed)
    hits = {name: 0 for name in ("venn", "abers", "platt", "conformal")}
    window = {name: [] for name in hits}
    log = {name: {"Ville": 0.0, "ShiryaevRoberts": 0.0} for name in hits}
    alarms = {name: [] for name in hits}
    errors = 0
    for step in range(1, n + 1):
        bad = change is not None and step > change
        for name in hits:
            hit = rng.random() < (0.7 if bad else 0.93)
            hits[name] += hit
            window[name] = [*window[name][-499:], hit]
            for i, detector in enumerate(log[name]):
                gain = rng.normal(0.06 if bad else -0.004, 0.05)
                log[name][detector] = max(log[name][detector] + gain, -0.3 * i if i else -np.inf)
                if log[name][detector] > 2 + 3 * i and not any(a["detector"] == detector for a in alarms[name]):
                    alarms[name].append(
                        {
                            "step": step, "detector": detector, "about": "realised row",
                            "log_evidence": log[name][detector] * np.log(10),
                            "sentence": SENTENCE.format(step=step, log=log[name][detector]),
                        }
                    )  # fmt: skip
        errors += rng.random() < (0.3 if bad else 0.05)
        if step % stride and step != n:
            continue
        yield {
            name: {
                "step": step,
                "predictions": {"platt": "Forecast", "conformal": "PredictionSet"}.get(name, "Multiprobability"),
                "guaranteed": "realised row",
                "curves": curves(name, hits[name] / step, errors / step, step),
                "window": {"size": len(window[name]), "accuracy": sum(window[name]) / len(window[name])},
                "accuracy_interval": [0.8, 0.95],
                "evidence": [
                    {
                        "name": "realised row", "detector": detector, "log10": value, "threshold": 2.0 + 3 * i,
                        "alarms": 0, "p_value": 0.5,
                    }
                    for i, (detector, value) in enumerate(log[name].items())
                ]
                + [{"name": "realised row", "detector": "DeviationBand", "sum": 3.2, "radius": 91.0, "alarms": 0}],
                "alarms": {"count": len(alarms[name]), "last": list(alarms[name])},
            }
            | ({} if name == "conformal" else {"calibration": {"ece": 0.021, "bins": []}})
            for name in hits
        }  # fmt: skip


def curves(name, accuracy, errors, step):
    """Return the means of one predictor."""
    if name == "conformal":
        return {"accuracy": accuracy, "credibility": 0.5, "confidence": 0.97, "error_0.05": errors, "size_0.05": 1.2}
    lower = 0.9 + 0.03 / step**0.5
    upper = lower if name == "platt" else min(1.0, lower + 0.03 + 0.5 / step**0.5)
    return {"accuracy": accuracy, "lower": lower, "upper": upper, "log_loss": 0.21, "brier": 0.1}


if __name__ == "__main__":
    from venn.show.live import Live

    steps, interval = int(sys.argv[1]), float(sys.argv[2])
    with Live("toy", steps, ["venn", "abers", "platt", "conformal"], interval=interval) as live:
        for now in snapshots(steps, change=2 * steps // 3):
            if live.due():
                live.show(now)
        live.show(now)
