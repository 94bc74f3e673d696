"""What a person asks of a capture: filter, findings, statistics, sequence, differences."""
