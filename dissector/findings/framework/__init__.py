"""What detectors of cross-message findings are made of, and the pass over a capture that runs them."""
