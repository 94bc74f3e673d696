"""All detectors. A new one is a class, and a line here."""

from typing import Final

from dissector.findings.detectors.closed_at_start import ClosedAtApiVersions, LoginRefused, LoginRequired
from dissector.findings.detectors.closed_in_flight import ClosedInFlight
from dissector.findings.detectors.consumer_lag import ConsumerLag
from dissector.findings.detectors.controller_listener import ControllerListener
from dissector.findings.detectors.duplicate_correlation_id import DuplicateCorrelationId
from dissector.findings.detectors.error_storm import ErrorStorm
from dissector.findings.detectors.fetch_session_error import FetchSessionError
from dissector.findings.detectors.late_fetch import LateFetch
from dissector.findings.detectors.metadata_storm import MetadataStorm
from dissector.findings.detectors.near_loss import NearLoss
from dissector.findings.detectors.out_of_order_response import OutOfOrderResponse
from dissector.findings.detectors.oversized_request import OversizedRequest
from dissector.findings.detectors.rebalance_loop import RebalanceLoop
from dissector.findings.detectors.removed_version import RemovedVersion
from dissector.findings.detectors.repeated_expected_error import RepeatedExpectedError
from dissector.findings.detectors.retransmitted_bytes import RetransmittedBytes
from dissector.findings.detectors.retried_batch import RetriedBatch
from dissector.findings.detectors.sequence_gap import SequenceGap
from dissector.findings.detectors.slow_response import Slow
from dissector.findings.detectors.throttled import Throttled
from dissector.findings.detectors.tiny_batches import TinyBatches
from dissector.findings.detectors.uncompressed_batches import UncompressedBatches
from dissector.findings.detectors.version_not_offered import VersionNotOffered
from dissector.findings.detectors.version_stepped_down import VersionSteppedDown
from dissector.findings.framework.detector import FindingDetector
from dissector.findings.framework.message_detector import MessageDetector

DETECTORS: Final[tuple[type[FindingDetector | MessageDetector], ...]] = (
    DuplicateCorrelationId,
    OutOfOrderResponse,
    Slow,
    LateFetch,
    ClosedInFlight,
    ClosedAtApiVersions,
    LoginRequired,
    LoginRefused,
    OversizedRequest,
    NearLoss,
    RetransmittedBytes,
    VersionNotOffered,
    VersionSteppedDown,
    RemovedVersion,
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
    ConsumerLag,
)
EXAMINATION_CODES: Final = frozenset(each.explanation.code for each in DETECTORS)
"""Codes of findings that the examination finds: decoding alone does not."""
CROSS_MESSAGE_CODES: Final = frozenset(
    each.explanation.code for each in DETECTORS if not issubclass(each, MessageDetector)
)
"""Codes of those that only several messages show."""
