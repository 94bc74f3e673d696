"""Tests of `dissector.protocol`."""
