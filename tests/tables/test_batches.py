"""The table of record batches has what `show --format json` says of them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import deltalake
import pytest

from dissector.capture_session import Capture
from dissector.exchange.to_json import exchange_object
from tests.pipeline.ingested import CAPTURES

LOG_OVERHEAD = 12
"""Bytes of a batch in front of what its length counts."""
SHOWN = {
    "base_offset": "base_offset", "record_count": "records_count", "codec": "compression",
    "timestamp_type": "timestamp_type", "first_timestamp_ms": "base_timestamp", "max_timestamp_ms": "max_timestamp",
    "producer_id": "producer_id", "producer_epoch": "producer_epoch", "base_sequence": "base_sequence",
    "transactional": "transactional", "control": "control", "crc_valid": "crc_valid",
}  # fmt: skip
"""Columns, and the fields of a batch in JSON."""


def batches_in(value: Any) -> Iterator[dict[str, Any]]:
    """All batches, at any depth."""
    if isinstance(value, dict):
        if value.get("magic") == 2:
            yield value
        for each in value.values():
            yield from batches_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from batches_in(each)


@pytest.mark.long
@pytest.mark.slow
def test_batches_are_those_that_show_prints(folder: str) -> None:
    polars = pytest.importorskip("polars", reason="NOT TESTED with polars: it is not installed")
    expected = Counter[tuple[Any, ...]]()
    for path in CAPTURES:
        with Capture([path]) as capture:
            for _ in capture.read():
                pass
            for exchange in capture.exchanges():
                for batch in batches_in(exchange_object(exchange)):
                    sizes = batch["batch_length"] + LOG_OVERHEAD, batch["base_offset"] + batch["last_offset_delta"]
                    expected[*sizes, *(batch[name] for name in SHOWN.values())] += 1
    rows = polars.read_parquet(deltalake.DeltaTable(f"{folder}/batches").file_uris()).to_dicts()
    found = Counter((row["size"], row["last_offset"], *(row[name] for name in SHOWN)) for row in rows)
    assert found == expected
    assert len({row["codec"] for row in rows}) > 2


@pytest.mark.long
def test_the_records_of_batches_are_rows_of_records(folder: str) -> None:
    polars = pytest.importorskip("polars", reason="NOT TESTED with polars: it is not installed")
    batches, records = (
        polars.read_parquet(deltalake.DeltaTable(f"{folder}/{name}").file_uris()) for name in ("batches", "records")
    )
    place = ["capture", "packet", "start"]
    counted = {row[:3]: row[3] for row in batches.group_by(place).agg(polars.col("record_count").sum()).iter_rows()}
    there = {row[:3]: row[3] for row in records.group_by(place).len().iter_rows()}
    assert counted
    assert all(there[where] >= count for where, count in counted.items()), "messages of old formats have no batch"
