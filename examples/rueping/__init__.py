"""The parts of `examples/rueping_2004.py`: data, machines, methods, kept results, tables, figure."""
