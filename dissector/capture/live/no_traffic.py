"""The message for a capture without traffic: where it listens, and what may be wrong."""

from dissector.capture.live.interfaces import LOOPBACK, listening_ports
from dissector.capture.live.settings import ANY, CaptureSettings


def no_traffic_message(settings: CaptureSettings, seconds: float) -> str:
    """Return one line for the user, after so many `seconds` without a packet."""
    return f"no packet on {settings.interface}, {settings.filter_label}, for {seconds:.0f} s; {_hint(settings)}"


def widening_hint(settings: CaptureSettings) -> str:
    """Return what to start to see more than this capture does; empty if it sees all TCP there is."""
    if settings.expression:
        return "to see more: another --capture-filter, or none"
    wider = []
    if settings.ports and settings.interface == LOOPBACK:
        wider.append("kdissect live    any port of this machine")
    elif settings.ports:
        wider.append(f"kdissect live -i {settings.interface} --capture-filter tcp    any port")
    if settings.interface != ANY:
        wider.append("kdissect live -i any    all interfaces, port 9092 (-p for others)")
    return "\n".join(["to see more:", *wider]) if wider else ""


def _hint(settings: CaptureSettings) -> str:
    if settings.expression:
        return "does the filter match any traffic?"
    if not settings.ports:
        return "does a client talk to a broker on this interface? (-i any for all interfaces)"
    listening = listening_ports() if settings.interface == LOOPBACK else None
    if listening is None:
        return "is the client using another port (-p) or interface (-i)?"
    if listening & {*settings.ports}:
        return "a server listens there, and no client talks to it on this interface (-i for another)"
    return "nothing on this machine listens there (-p for another port, -i for another interface)"
