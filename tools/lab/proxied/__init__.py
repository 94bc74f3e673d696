"""Clients through the proxy, held against the brokers' own logs, and what clients do when the proxy injects faults."""
