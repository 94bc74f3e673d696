"""Exports exchanges: as captures, transcripts, JSON, sequence diagrams, tests or commands; redacted or as they are.

Each format is one entry in `formats`, produced by a separate module from a capture and rows of it (from 0). Nothing
here writes files.
"""
