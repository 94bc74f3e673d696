"""The documentation: what it shows is what the program does."""
