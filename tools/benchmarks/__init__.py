"""Time and memory, beside a peer in the same run. `make bench`. No test asserts a time: machines are noisy."""
