"""Tests of what finds bytes in texts."""
