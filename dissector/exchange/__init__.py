"""One exchange, decoded on demand: its row, its two messages, its findings, its paths, its JSON."""
