"""All detectors, and the codes of all findings with their explanations in plain words. A new detector is a class, and a
line here."""

from typing import Final

from dissector.findings.detectors.batches import TinyBatches, UncompressedBatches
from dissector.findings.detectors.bootstrapping import AdvertisedLoopback, ReconnectStorm
from dissector.findings.detectors.broker_silent import BrokerSilent
from dissector.findings.detectors.captured_twice import CapturedTwice
from dissector.findings.detectors.close_causes import CLOSE_CAUSES
from dissector.findings.detectors.consumer_lag import ConsumerLag
from dissector.findings.detectors.correlation_ids import DuplicateCorrelationId, OutOfOrderResponse
from dissector.findings.detectors.held_tail import HeldTail
from dissector.findings.detectors.injected import Injected
from dissector.findings.detectors.last_exchanges import ControllerListener, LoginRefused
from dissector.findings.detectors.long_waits import ImpatientClient, WaitsBehind
from dissector.findings.detectors.metadata_storm import MetadataStorm
from dissector.findings.detectors.near_loss import NearLoss, RetransmittedBytes
from dissector.findings.detectors.rebalance_loop import RebalanceLoop
from dissector.findings.detectors.refused_batch import RefusedBatch
from dissector.findings.detectors.repeated_errors import ErrorStorm, FetchSessionError, RepeatedExpectedError
from dissector.findings.detectors.sequence_numbers import RetriedBatch, SequenceGap
from dissector.findings.detectors.slow_response import Slow
from dissector.findings.detectors.stuck_fetch import StuckFetch
from dissector.findings.detectors.throttled import Throttled
from dissector.findings.detectors.unacknowledged import Unacknowledged
from dissector.findings.detectors.unusable_metadata import InvalidAdvertised, UnlistedLeader
from dissector.findings.detectors.versions import VersionNotOffered, VersionSteppedDown
from dissector.findings.explanation import Explanation
from dissector.findings.explanations import EXPLANATIONS
from dissector.findings.framework.detector import FindingDetector, MessageDetector

DETECTORS: Final[tuple[type[FindingDetector | MessageDetector], ...]] = (
    Injected,
    DuplicateCorrelationId,
    OutOfOrderResponse,
    Slow,
    Unacknowledged,
    BrokerSilent,
    HeldTail,
    CapturedTwice,
    *CLOSE_CAUSES,
    ImpatientClient,
    WaitsBehind,
    LoginRefused,
    NearLoss,
    RetransmittedBytes,
    VersionNotOffered,
    VersionSteppedDown,
    ControllerListener,
    ErrorStorm,
    RepeatedExpectedError,
    FetchSessionError,
    Throttled,
    MetadataStorm,
    RebalanceLoop,
    TinyBatches,
    UncompressedBatches,
    SequenceGap,
    RetriedBatch,
    RefusedBatch,
    ConsumerLag,
    StuckFetch,
    AdvertisedLoopback,
    InvalidAdvertised,
    UnlistedLeader,
    ReconnectStorm,
)
EXAMINATION_CODES: Final = frozenset(each.explanation.code for each in DETECTORS)
"""Codes of findings that the examination finds: decoding alone does not."""
CROSS_MESSAGE_CODES: Final = frozenset(
    each.explanation.code for each in DETECTORS if not issubclass(each, MessageDetector)
)
"""Codes of those that only several messages show."""
_EXPLANATIONS: Final = {each.code: each for each in (*(detector.explanation for detector in DETECTORS), *EXPLANATIONS)}
CODES: Final = tuple(sorted(_EXPLANATIONS))
"""All codes that a finding can have."""


def explain(code: str) -> Explanation | None:
    """Return the explanation of a code; None if there is no such code."""
    return _EXPLANATIONS.get(code)
