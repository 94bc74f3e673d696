"""Analyses of whole captures: differences, statistics, sequence diagrams, timelines, search."""
