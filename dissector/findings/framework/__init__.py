"""The framework of cross-message findings: base classes of detectors, and the pass over a capture that runs them."""
