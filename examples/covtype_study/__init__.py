"""The parts of `examples/covtype.py`: published results, the protocol, the stream, tables, figure."""
