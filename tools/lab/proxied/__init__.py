"""Clients through the proxy, held against the brokers' own logs."""
