"""Where the recordings of clients under faults are, `pcaps/faulted/CLIENT/FAULT.pcapng.zst`."""

from pathlib import Path
from typing import Final

from tools.lab.tools import ROOT

FAULTED: Final = ROOT / "pcaps" / "faulted"


def fault_recording(client: str, fault: str) -> Path:
    """A recording; there may be none."""
    return FAULTED / client / f"{fault}.pcapng.zst"
