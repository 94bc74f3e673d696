"""Pairs requests with responses, and keeps one row for each exchange, as columns."""
