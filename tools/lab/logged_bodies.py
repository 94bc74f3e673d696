"""Bodies of messages held against what a broker logged of them, value by value."""

import base64
import math
from collections.abc import Iterator
from typing import Any

from dissector.exchange.model import ExchangeMessage

OLD_NAMES = {
    "generation_id": "generation_id_or_member_epoch",
    "acceptable_recovery_lag": "acceptable_recovery_lag_legacy",
}
"""Fields that the broker's release (4.3) calls by an older name than the tables (4.4)."""


def joined(name: str) -> str:
    """A name in neither style: what is kraft_version here is kRaftVersion there."""
    return name.replace("_", "").casefold()


def compared(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """Walks what the broker printed; yields the path of each scalar that is equal, fails at the first that is not."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), path
        by_name = {joined(name): value for name, value in ours.items()}
        by_name |= {joined(old): ours[new] for old, new in OLD_NAMES.items() if new in ours}
        for name, value in theirs.items():
            if name == "recordsSizeInBytes":
                assert len(by_name["records"] or b"") == value, path
                yield path
            else:
                assert joined(name) in by_name, f"{path}.{name} is missing"
                yield from compared(by_name[joined(name)], value, f"{path}.{name}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for n, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from compared(one, other, f"{path}[{n}]")
    elif isinstance(ours, bytes) and theirs == "" and path.lower().endswith("records"):
        yield from ()  # ShareFetch: the broker blanks the records
    else:
        value = base64.b64encode(ours).decode() if isinstance(ours, bytes) else ours
        same = math.isclose(value, theirs) if isinstance(theirs, float) else value == theirs
        assert same, f"{path}: {value!r}, the broker has {theirs!r}"
        yield path


def scalars(message: ExchangeMessage | None, truth: object, path: str) -> int:
    """Compare a message with what was logged; how many values were compared. Raises `AssertionError`."""
    if truth is None:
        return 0
    assert message is not None, path
    return sum(1 for _ in compared(message.body, truth, path))
