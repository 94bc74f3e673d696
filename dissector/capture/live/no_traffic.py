"""What to say when nothing comes: what is listened to, and what may be wrong."""

from dissector.capture.live.interfaces import LOOPBACK, listening_ports
from dissector.capture.live.settings import CaptureSettings


def no_traffic_message(wanted: CaptureSettings, seconds: float) -> str:
    """One line, after so many seconds without a packet."""
    return f"no packet on {wanted.interface}, {wanted.filter_said}, for {seconds:.0f} s; {_hint(wanted)}"


def _hint(wanted: CaptureSettings) -> str:
    if wanted.expression:
        return "does the filter match any traffic?"
    listening = listening_ports() if wanted.interface == LOOPBACK else None
    if listening is None:
        return "is the client using another port (-p) or interface (-i)?"
    if listening & {*wanted.ports}:
        return "a server listens there, and no client talks to it on this interface (-i for another)"
    return "nothing on this machine listens there (-p for another port, -i for another interface)"
