"""Machines: underlying algorithms kept exact online, one answer per hypothesis read by every predictor."""
