"""Explains messages for people: their layout, a diagram of their bytes, their history, an example."""
