"""One exchange, decoded on demand: fields of its row, messages, findings, paths and JSON."""
