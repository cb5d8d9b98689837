"""Machines trained once, on all examples at a time: for the published comparisons and for scikit-learn's users."""
