"""All finders. A new one is a class, and a line here."""

from typing import Final

from dissector.analysis.findings.batching import TinyBatches, UncompressedBatches
from dissector.analysis.findings.closing import ClosedInFlight, OversizedRequest
from dissector.analysis.findings.correlation import DuplicateCorrelationId, OutOfOrderResponse
from dissector.analysis.findings.errors import ErrorStorm, EverydayErrorAgain, FetchSessionError, Throttled
from dissector.analysis.findings.finder import Finder
from dissector.analysis.findings.groups import RebalanceLoop
from dissector.analysis.findings.lag import ConsumerLag
from dissector.analysis.findings.latency import LateFetch, Slow
from dissector.analysis.findings.loss import NearLoss
from dissector.analysis.findings.metadata import MetadataStorm
from dissector.analysis.findings.resending import SentAgain
from dissector.analysis.findings.sequences import RetriedBatch, SequenceGap
from dissector.analysis.findings.versions import VersionNotOffered, VersionSteppedDown

FINDERS: Final[tuple[type[Finder], ...]] = (
    DuplicateCorrelationId,
    OutOfOrderResponse,
    Slow,
    LateFetch,
    ClosedInFlight,
    OversizedRequest,
    NearLoss,
    SentAgain,
    VersionNotOffered,
    VersionSteppedDown,
    ErrorStorm,
    EverydayErrorAgain,
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
