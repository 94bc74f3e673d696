"""Export exchanges to share: captures, transcripts, JSON, sequence diagrams, tests, commands; redacted or as they are.

Each format is one entry in `formats`, produced by a module of its own from a capture and rows of it (from 0). Nothing
here writes files.
"""
