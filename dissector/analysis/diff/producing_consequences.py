"""What follows from other records, batches, refusals and transactions of producers."""

import re
from collections.abc import Mapping
from typing import Final

from dissector.analysis.diff.consequence_table import CONNECTIONS, FieldKey, field_of
from dissector.analysis.diff.key_differences import ELEMENTS
from dissector.analysis.diff.moved_leaders import REFUSALS
from dissector.analysis.diff.result import DiffEntry, DiffReason

PRODUCE: Final[FieldKey] = ("Produce", "", "")
METADATA: Final[tuple[FieldKey, ...]] = (("Metadata", "", ""), ("Metadata", "", "interval"))
MOVED: Final = re.compile("retries after .*(" + "|".join(sorted(REFUSALS)) + ")")
RECORDS: Final[FieldKey] = ("Produce", "request", "topic_data.partition_data.records")
PARTITIONS: Final[tuple[FieldKey, ...]] = (
    ("Produce", "request", "topic_data.partition_data"), ("Produce", "response", "responses.partition_responses"),
)  # fmt: skip
"""Where other records go."""
END_VERSION: Final[FieldKey] = ("EndTxn", "", "version")
IMPLIED: Final[tuple[FieldKey, ...]] = (("AddPartitionsToTxn", "", ""), ("AddOffsetsToTxn", "", ""))
"""What no client requests that ends its transactions with v5: Produce and TxnOffsetCommit do it as well (KIP-890)."""
TRANSACTIONS: Final[FieldKey] = ("InitProducerId", "", "")
COORDINATOR: Final = "transaction coordinator"
"""The role of a connection."""


def cause_in_producing(entry: DiffEntry, entries: Mapping[FieldKey, DiffEntry]) -> FieldKey | None:
    """Return what another way of producing changes with an entry: other records go to other partitions, smaller batches
    are more requests, who is refused by a leader asks for metadata, and with EndTxn v5 nobody adds partitions to
    transactions."""
    field = field_of(entry)
    retries = entries.get(PRODUCE)
    if field in METADATA and retries and MOVED.search(retries.explanation) and _are_both_more(entry, retries):
        return PRODUCE
    records = entries.get(RECORDS)
    if field in PARTITIONS and records and records.reason is DiffReason.CONTENT and entry.explanation == ELEMENTS:
        return RECORDS
    if field == PRODUCE and records and records.reason is DiffReason.BATCHING and _is_reverse(entry, records):
        return RECORDS
    if field in IMPLIED and entry.reason is DiffReason.ONE_SIDE and END_VERSION in entries:
        return END_VERSION
    if _is_of_transactions(entry, entries.get(TRANSACTIONS)):
        return TRANSACTIONS
    return None


def _is_of_transactions(entry: DiffEntry, begins: DiffEntry | None) -> bool:
    """Return whether an entry follows from one side alone producing in transactions: the other one produces outside of
    any, maybe with an id of its own, and has no connection to their coordinator."""
    if begins is None or begins.reason is not DiffReason.ONE_SIDE or "Produce" not in begins.explanation:
        return False
    if field_of(entry) in (PRODUCE, TRANSACTIONS) and entry.reason is DiffReason.ONE_SIDE:
        return bool(entry.count_a) != bool(begins.count_a)
    more, less = (entry.a, entry.b) if begins.count_a else (entry.b, entry.a)
    is_alone = less.endswith(COORDINATOR) or less == more.removesuffix(f" + {COORDINATOR}")
    return field_of(entry) == CONNECTIONS and "," not in f"{more}{less}" and more.endswith(COORDINATOR) and is_alone


def _are_both_more(entry: DiffEntry, other: DiffEntry) -> bool:
    """Return whether one side has more in both entries, which are numbers."""
    is_number = entry.reason in (DiffReason.COUNT, DiffReason.RATE, DiffReason.TIMING)
    return is_number and (entry.count_a > entry.count_b) == (other.count_a > other.count_b)


def _is_reverse(entry: DiffEntry, batches: DiffEntry) -> bool:
    """Return whether the side with the smaller batches has more of them, and more requests."""
    return not entry.explanation and _are_both_more(entry, batches)
