"""The survey: twelve clients in the same scenarios, recorded, and pages made from the recordings.

A client is an entry in `clients.py` and a program; its earlier releases are entries in `earlier.py`; a scenario is an
entry in `scenarios.py` and a case of the programs.
"""
