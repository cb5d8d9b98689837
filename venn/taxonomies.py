"""Taxonomies: equivariant maps from the scores of a bag to categories."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from venn._compiled.counting import GRID, OFFSET, count_argmax, move_extras
from venn.machines.machine import Hypotheses
from venn.prediction import Floats, Integers, Parameters


class Taxonomy(Protocol):
    """What a Venn predictor asks of a taxonomy."""

    def count(self, hypotheses: Hypotheses) -> Integers:
        """Return (c, c) counts: row j, the labels in the test object's category under hypothesis j."""


class ByScores(Parameters):
    """Base of taxonomies that are functions of the scores; counts by the definition.

    A subclass gives `categories(scores)`. It must treat all rows alike: permuting the rows permutes
    the categories, and equal rows share one.
    """

    def categories(self, scores: Floats) -> Integers:
        """Return the (n,) categories of the (n, c) scores."""
        raise NotImplementedError

    def count(self, hypotheses: Hypotheses) -> Integers:
        """Return (c, c) counts: row j, the labels in the test object's category under hypothesis j."""
        labels = hypotheses.labels
        c = hypotheses.test_scores.shape[0]
        counts = np.zeros((c, c), np.int64)
        for j in range(c):
            categories = self.categories(hypotheses.scores(j))
            beside = np.append(labels, j)[categories == categories[-1]]
            counts[j] = np.bincount(beside, minlength=c)
        return counts


class Argmax(ByScores):
    """The category of an example is the class of its largest score.

    Scores are compared on a grid of 1e-6 and ties go to the first class, so that a category does not
    hang on the last bits of a solution: a free support vector has a score of exactly -1 in several
    machines at once.

    References
    ----------
    Lambrou, Papadopoulos & Gammerman (2012), "the simplest taxonomy".

    Examples
    --------
    >>> Argmax().categories(np.array([[0.2, 1.0, -1.0], [-1.0, -1.0, -1.0 + 1e-9]]))
    array([1, 0])
    """

    def categories(self, scores: Floats) -> Integers:
        """Return the (n,) positions of the largest of the (n, c) scores."""
        best: Integers = np.rint(scores * GRID + OFFSET).argmax(axis=1)
        return best

    def count(self, hypotheses: Hypotheses) -> Integers:
        """Return (c, c) counts, by the compiled path: the score table of a hypothesis is never built."""
        negative, positive = hypotheses.negative, hypotheses.positive
        labels, test = hypotheses.first_labels, hypotheses.test
        counts: Integers = count_argmax(negative, positive, hypotheses.count, labels, hypotheses.multiplicities, test)
        if hypotheses.extras:
            keys = np.array(list(hypotheses.extras), np.int64)
            examples = np.array(list(hypotheses.extras.values()), np.int64)
            move_extras(counts, negative, positive, labels, keys[:, 0].copy(), keys[:, 1].copy(), examples, test)
        return counts
