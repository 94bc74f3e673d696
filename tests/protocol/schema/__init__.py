"""Tests of `dissector.protocol.schema`."""
