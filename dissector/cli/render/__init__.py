"""What commands print: rows, trees, fields, pages, plots, and the progress of the work."""
