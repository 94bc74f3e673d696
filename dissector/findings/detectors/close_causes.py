"""Why connections were closed, in the order in which the causes are tried: those that need a change come first, and a
close of which no more can be said is the last.

Each is in a module by who ended the connection: the broker, for the request (`refused_requests`, `refused_versions`) or
whatever it was (`ended_sessions`), or either side (`closed_in_flight`).
"""

from typing import Final

from dissector.findings.detectors.closed_in_flight import ClosedInFlight, LeftOut
from dissector.findings.detectors.ended_sessions import ClosedBeforeRequest, ClosedWhileWaiting, SessionExpired
from dissector.findings.detectors.refused_requests import (
    ClosedAtApiVersions,
    LoginRequired,
    OversizedRequest,
    UnreadableRequest,
)
from dissector.findings.detectors.refused_versions import RemovedVersion, SuspectVersion
from dissector.findings.framework.closed_requests import in_this_order

CLOSE_CAUSES: Final = in_this_order(
    OversizedRequest,
    ClosedBeforeRequest,
    SessionExpired,
    UnreadableRequest,
    ClosedAtApiVersions,
    LoginRequired,
    RemovedVersion,
    SuspectVersion,
    LeftOut,
    ClosedWhileWaiting,
    ClosedInFlight,
)
