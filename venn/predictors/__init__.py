"""Predictors: readers of one machine's answer."""
