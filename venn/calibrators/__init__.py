"""Calibrators: scores of any scorer into probabilities, by a calibration set of its own."""

from venn.calibrators.abers import VennAbers, venn_abers
from venn.calibrators.abers_of_classes import OneVsAllAbers, OneVsOneAbers, cross_venn_abers
from venn.calibrators.merges import BrierMerge, LogMerge, Merge

__all__ = [
    "BrierMerge",
    "LogMerge",
    "Merge",
    "OneVsAllAbers",
    "OneVsOneAbers",
    "VennAbers",
    "cross_venn_abers",
    "venn_abers",
]
