"""Metrics of live traffic, for Prometheus: counted from rows as they complete, served over HTTP."""
