"""Tests, mirroring the packages; the lab that records captures; benchmarks."""
