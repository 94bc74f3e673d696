"""The message for a capture without traffic: where it listens, and what may be wrong."""

from dissector.capture.live.interfaces import LOOPBACK, listening_ports
from dissector.capture.live.settings import CaptureSettings


def no_traffic_message(settings: CaptureSettings, seconds: float) -> str:
    """Return one line for the user, after so many `seconds` without a packet."""
    return f"no packet on {settings.interface}, {settings.filter_label}, for {seconds:.0f} s; {_hint(settings)}"


def _hint(settings: CaptureSettings) -> str:
    if settings.expression:
        return "does the filter match any traffic?"
    listening = listening_ports() if settings.interface == LOOPBACK else None
    if listening is None:
        return "is the client using another port (-p) or interface (-i)?"
    if listening & {*settings.ports}:
        return "a server listens there, and no client talks to it on this interface (-i for another)"
    return "nothing on this machine listens there (-p for another port, -i for another interface)"
