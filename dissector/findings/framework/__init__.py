"""Base classes of detectors, and the pass over a capture that runs them."""
