"""Faults on purpose: rules that say what becomes of requests and responses on their way through a proxy."""
