"""Tests of what a frame may be, by its bytes."""
