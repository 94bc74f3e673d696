"""Damaged input, made by the million: `make fuzz`. What ever went wrong stays in `corpus`, replayed by `make test`."""
