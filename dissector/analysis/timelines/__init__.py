"""Timelines of groups and transactions, in phases."""
