"""Output of commands: rows, trees, fields, pages, plots, and progress bars."""
