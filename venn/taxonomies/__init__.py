"""Taxonomies: equivariant maps from the scores of a bag to categories."""

from venn.taxonomies.base import ByScores, ByTable, Counts, Deleted, Taxonomy
from venn.taxonomies.groups import Grouped
from venn.taxonomies.scores import (
    AdaptiveMarginBins,
    Argmax,
    Dissent,
    Gap,
    MarginBins,
    RunnerUp,
    ScoreBins,
    Threshold,
    TopScoreBins,
    TopTwo,
)

__all__ = [
    "AdaptiveMarginBins",
    "Argmax",
    "ByScores",
    "ByTable",
    "Counts",
    "Deleted",
    "Dissent",
    "Gap",
    "Grouped",
    "MarginBins",
    "RunnerUp",
    "ScoreBins",
    "Taxonomy",
    "Threshold",
    "TopScoreBins",
    "TopTwo",
]
