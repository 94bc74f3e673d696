"""What every stage shares: batches between stages, the byte store, growable columns, limits, text made safe."""
