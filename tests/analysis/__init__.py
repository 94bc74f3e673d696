"""What people ask of a capture."""
