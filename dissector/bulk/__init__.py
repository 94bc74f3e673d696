"""Messages of many rows at once, as columns, without an `Exchange` for each. `README.md` says which file holds what."""
