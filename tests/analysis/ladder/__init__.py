"""Sequences of messages."""
