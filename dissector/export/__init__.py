"""Chosen exchanges in forms that can be sent to somebody: text to read, a test to run, a command to type.

Each form is one module, a function of a capture and rows of it (from 0) that gives text; none writes a file. The very
packets are copied by `exporting`; Kafka's JSON lines are those of `show`.
"""
