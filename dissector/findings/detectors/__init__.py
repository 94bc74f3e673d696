"""Detectors, a module each: what is detected, and its explanation."""
