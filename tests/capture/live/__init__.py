"""Live capture."""
