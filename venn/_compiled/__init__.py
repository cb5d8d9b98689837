"""Compiled loops: clean arrays in, arrays out. No input is checked here; the rooms above do that."""
