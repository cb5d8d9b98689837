"""A linear support vector machine trained on estimates of class probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from venn.batch.linear_svm import LinearSVM
from venn.batch.two_classes import Signed, TwoClassLinear
from venn.parameters import positive
from venn.prediction import Floats, Label

BLOCK = 1 << 22  # distances that are kept at a time
ROUNDING = 1e-12  # of squared distances, as a share of the squared norms they are made of; targets below it are 0


class PosteriorSVC(TwoClassLinear):
    """Posterior probability support vector machine (PPSVM), linear, for scikit-learn.

    Labels are replaced by estimates of probabilities: t_i = 2 P_i - 1, where P_i is the share of the positive class
    among the training examples within `radius` of x_i, itself included. The machine minimises
    1/2 |w|^2 + C sum_i xi_i so that t_i f(x_i) >= t_i^2 - xi_i and xi_i >= 0: f(x_i) should be at least as far
    from 0 as t_i, on the same side. That is an SVM in which example i has the label sign t_i, the weight |t_i| and
    the level |t_i| in place of the margin 1; an example with t_i = 0 drops out. The probability of the
    positive class is (1 + f(x)) / 2, clipped to [0, 1].

    It is a heuristic: no probability is guaranteed. As they are 0 and 1 beyond the margin, one error there
    has infinite log loss.

    With `radius` 0 labels are hard, t_i = 1 or -1, also of equal objects with different labels, and this is the plain
    linear SVM. Of the reference only the abstract was at hand (soft labels, weighted samples, a soft margin by nu).
    These parts follow accounts by others: the constraint with the square of the target, the probability (1 + f) / 2,
    the shares in a window around x_i, and the margin 1 instead of one found by nu. Benitez-Pena et al. (2020) do not
    say in what unit their radii 0, 10, 20 and 30 are: here it is Euclidean distance in the features as given.

    Parameters
    ----------
    C : float > 0, default 1
    radius : float >= 0, default 0
        Distances equal to it up to rounding count as within.
    positive : label, optional
        By default the second of `classes_`.

    Attributes
    ----------
    classes_ : (2,) array
        Labels in sorted order.
    positive_ : label
    coef_ : (1, d) array
        Of `decision_function`: coef_ . x + intercept_.
    intercept_ : (1,) array
    n_features_in_ : int
    feature_names_in_ : (d,) array of str
        If X had names.

    Raises
    ------
    ValueError
        By `fit`: a parameter outside its range, one class only, or objects that are not finite.
    NotFittedError
        By `predict_proba` and the like, before `fit`.

    Notes
    -----
    The shares take O(n^2 d) time.

    References
    ----------
    Tao, Wu, Wang & Wang (2005), "Posterior probability support vector machines for unbalanced data"; Gonen, Tanugur &
    Alpaydin (2008), "Multiclass posterior probability support vector machines", which describes it.

    Examples
    --------
    Of the last three objects, which lie together, two are positive: P = 2/3 and t = 1/3 for each.

    >>> X, y = [[-1.0], [-1.0], [1.0], [1.0], [1.0]], [0, 0, 0, 1, 1]
    >>> model = PosteriorSVC(C=100, radius=0.5).fit(X, y)
    >>> model.predict_proba([[-1.0], [1.0]]).round(3)
    array([[1.   , 0.   ], [0.333, 0.667]])
    """

    def __init__(self, C: float = 1.0, radius: float = 0.0, *, positive: Label | None = None) -> None:
        self.C = C
        self.radius = radius
        self.positive = positive

    def _train(self, examples: Signed) -> tuple[Floats, float]:
        C = positive("C", self.C)
        radius = positive("radius", self.radius, zero=True)
        objects, signs, weights = examples
        targets = signs if radius == 0 else balance_within(radius, objects, signs, weights)
        size = np.abs(targets)
        if not size.any():
            return np.zeros(objects.shape[1]), 0.0
        fit = LinearSVM(C, tolerance=1e-9).fit(objects, np.where(targets < 0, -1.0, 1.0), weights * size, size)
        return fit.coef, fit.bias

    def predict_proba(self, X: Any) -> Floats:
        """Return (n, 2) probabilities of the classes for n objects; each row sums to 1.

        Parameters
        ----------
        X : (n, d) array or data frame of finite numbers
        """
        p = np.clip(0.5 + 0.5 * self.decision_function(X), 0.0, 1.0)
        return np.column_stack([1.0 - p, p])


def balance_within(radius: float, objects: Floats, signs: Floats, weights: Floats) -> Floats:
    """Return (n,) weighted means of the signs of the examples within a radius of each."""
    centred = objects - objects.mean(axis=0)  # distances do not change, and lose fewer digits
    norms = np.einsum("ij,ij->i", centred, centred)
    either = np.column_stack([weights * (signs > 0), weights * (signs < 0)])
    means = np.empty(len(objects))
    rows = max(1, BLOCK // len(objects))
    for start in range(0, len(objects), rows):
        part = slice(start, start + rows)
        sums = norms[part, None] + norms
        within = sums - 2 * (centred[part] @ centred.T) <= radius**2 + ROUNDING * sums
        share = within @ either
        means[part] = (share[:, 0] - share[:, 1]) / share.sum(axis=1)
    means[np.abs(means) <= ROUNDING] = 0.0  # such as 0.1 + 0.2 against 0.3
    return means
