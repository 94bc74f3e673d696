"""Where the recordings of the survey are."""

from pathlib import Path

from tools.lab.tools import ROOT

RECORDINGS = ROOT / "pcaps" / "clients"
LARGEST = 100_000
"""Bytes, compressed, of a recording."""


def recording_path(client: str, scenario: str, number: int = 1) -> Path:
    """A recording; its provenance stands beside it."""
    return RECORDINGS / client / f"{scenario}-{number}.pcapng.zst"


def provenance_path(recording: Path) -> Path:
    """What is known of how a recording came to be."""
    return recording.with_name(recording.name.replace(".pcapng.zst", ".provenance.json"))
