"""Detectors, those of one subject in a module: what is detected, and its explanation."""
