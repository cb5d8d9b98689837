"""Compiled loops: clean arrays in, arrays out. Nothing here checks its input; the rooms above do."""
