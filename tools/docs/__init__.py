"""What makes the documentation: pages from the program's own registries, outputs of the commands in pages, pictures."""
