"""Adapters: what users of other libraries type."""
