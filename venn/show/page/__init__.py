"""A run as a page in the browser: live from its journal, or as one HTML file."""

from venn.show.page.feed import Feed, FollowedRun, Watched

__all__ = ["Feed", "FollowedRun", "Watched"]
