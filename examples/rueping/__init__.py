"""The parts of `examples/rueping_2004.py`: data, machines, methods, what is kept, tables, figure."""
