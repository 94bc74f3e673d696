"""Findings that several rows together tell, and what each code of a finding means."""
