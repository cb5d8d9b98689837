"""Measures of nonconformity."""
