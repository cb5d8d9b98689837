"""Measures of nonconformity: how strange each example is among all, and the new example's rank by that."""

from venn.nonconformity.multipliers import Multiplier
from venn.nonconformity.scores import ByScores, DistanceRatio, Margin, Measure, Ranks, checked_measure

__all__ = ["ByScores", "DistanceRatio", "Margin", "Measure", "Multiplier", "Ranks", "checked_measure"]
