"""Detectors of cross-message findings, a module each: what is detected, and its explanation."""
