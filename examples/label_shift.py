"""
Half of the calibration set was of one class, and it is rare in use. Are the probabilities still right?
=======================================================================================================

The second of two classes is 1 example in 2 where a classifier is trained and calibrated, and 1 in 20 where it is used;
each class looks the same in both places. Missing it costs four times as much as a false alarm. Three predictors
predict the same objects: one without any correction, one that is given the class frequencies, one that estimates them
from the objects, without labels. A fourth is calibrated where it is used, on every example of the rare class but only
1 in 10 of the other::

    python examples/label_shift.py            # --quick: a third of the objects
"""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

import streams
import venn
from venn.predictors.balanced import Balanced
from venn.shifts import PriorShift, operational_priors

BALANCED, RARE = (0.5, 0.5), (0.95, 0.05)
N = 2000 if "--quick" in sys.argv else 6000
COSTS = PriorShift.of_costs((1, 4))
OFF = {}  # by name: distance of the accuracy from the claim


def drawn(n, proportions, seed):
    return streams.gaussians(n, 2, spread=1.0, proportions=proportions, seed=seed)


def show(name, block, sets, y):
    """Print the claims about the second class and the predicted one, and how often sets missed the label."""
    rare = block.probabilities[:, :, 1].mean(axis=0)  # under each of the two hypotheses
    hits, lower, upper = np.mean(np.array(block.labels) == y), block.lower.mean(), block.upper.mean()
    far = max(lower - hits, hits - upper, 0)
    OFF[name] = far
    missed = np.mean([label not in one for label, one in zip(y, sets, strict=True)])
    print(
        f"{name:22} {rare.min():.3f}-{rare.max():.3f}   {lower:.3f}-{upper:.3f}  {hits:.3f}, "
        f"{'as claimed' if far < 0.02 else f'off by {far:.3f}'}   {missed:.3f}"
    )


training, calibration, used = drawn(400, BALANCED, 1), drawn(1500, BALANCED, 2), drawn(N, RARE, 3)
weights = COSTS.weights[training.y]
scorer = venn.FrozenScorer(LogisticRegression().fit(training.X, training.y, sample_weight=weights))


def predictors(shift=None):
    return venn.InductiveVenn(scorer, venn.taxonomies.AdaptiveMarginBins(), shift=shift), venn.InductiveConformal(
        scorer, shift=shift
    )


unaware, _ = predictors()
unaware.learn_many(calibration.X, calibration.y)
found = operational_priors(unaware.predict_many(used.X).proba, BALANCED)
print(
    f"The second class: 0.500 of the calibration set, {(used.y == 1).mean():.3f} of {N} objects; found {found[1]:.3f}."
)
print(f"{'':22} 2nd class     predicted class is right          sets of 90 in 100")
print(f"{'':22} claimed       claimed      was                  missed the label")

shifts = {
    "no weights": None,
    "told the frequencies": PriorShift(BALANCED, RARE),
    "found them": PriorShift(BALANCED, found),
}
for name, shift in shifts.items():
    model, conformal = predictors(shift)
    model.learn_many(calibration.X, calibration.y)
    conformal.learn_many(calibration.X, calibration.y)
    show(name, model.predict_many(used.X), conformal.predict_many(used.X).sets(0.1), used.y)

# A stream is learned where it is used: all of the rare class, a tenth of the other.
model, conformal = (Balanced(one, keep=(0.1, 1.0), seed=5) for one in predictors())
for x, y in drawn(N, RARE, 4):
    model.learn_one(x, y)
    conformal.learn_one(x, y)
block, sets = model.learner.predict_many(used.X), conformal.learner.predict_many(used.X).sets(0.1)
show(f"{model.kept} of {N} kept", block, sets, used.y)
others = [far for name, far in OFF.items() if name != "no weights"]
print(f"Off what was claimed by {OFF['no weights']:.3f} without weights, by {max(others):.3f} at most with them.")
