"""The parts of `examples/benitez_pena_2020.py`: data, machines, methods, control, tables, figure."""
