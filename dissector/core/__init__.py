"""What all stages share: their contract, batches between them, the byte store, growable columns, limits, safe text."""
