"""Filters over exchanges."""
