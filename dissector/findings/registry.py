"""All finders. A new one is a class, and a line here."""

from typing import Final

from dissector.findings.batching import TinyBatches, UncompressedBatches
from dissector.findings.closing import ClosedInFlight, OversizedRequest
from dissector.findings.correlation import DuplicateCorrelationId, OutOfOrderResponse
from dissector.findings.errors import ErrorStorm, EverydayErrorAgain, FetchSessionError, Throttled
from dissector.findings.finder import Finder
from dissector.findings.groups import RebalanceLoop
from dissector.findings.lag import ConsumerLag
from dissector.findings.latency import LateFetch, Slow
from dissector.findings.loss import NearLoss
from dissector.findings.metadata import MetadataStorm
from dissector.findings.resending import SentAgain
from dissector.findings.sequences import RetriedBatch, SequenceGap
from dissector.findings.versions import VersionNotOffered, VersionSteppedDown

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
