"""The parts of `examples/covtype.py`: what is published, the protocol, the stream, tables, figure."""
