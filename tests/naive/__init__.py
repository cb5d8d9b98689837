"""Oracles: the definitions, written slowly, importing nothing of the engine."""
