"""Messages that Apache's own codec wrote and read: `tests/golden/vectors-<release>.ndjson.gz`, made by `make vectors`.

`VECTORS` names another folder of such files, for vectors fresher than those of the repository.
"""

import gzip
import os
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import orjson

from dissector.protocol.codec.plan import StructPlan, plan
from dissector.protocol.schema.loader import alternatives, entries
from tests.protocol.apache_json import values_of

FOLDER: Final = Path(os.environ.get("VECTORS") or Path(__file__).parents[1] / "golden")
RELEASES: Final = sorted(path.name.split("-")[1].removesuffix(".ndjson.gz") for path in FOLDER.glob("vectors-*.gz"))


@dataclass(frozen=True, slots=True)
class Vector:
    """One message. `name` is today's, whatever its release called it; `header` the version of the header that stands
    before it, for a request or response; `truth` what Apache's reader made of `data`, as `apache_json` takes it."""

    release: str
    name: str
    version: int
    direction: str
    header: int | None
    data: bytes
    truth: dict[str, Any]

    @property
    def where(self) -> str:
        return f"{self.name} v{self.version} of {self.release}, {self.data[:64].hex()}"

    @property
    def other(self) -> int:
        """Which other layout its release has for this version, as `plan` counts them; 0 is the one that all have."""
        found = (n for n, each in enumerate(alternatives(self.name, self.version), 1) if self.release in each.releases)
        return next(found, 0)

    @property
    def layout(self) -> StructPlan:
        return plan(self.name, self.version, self.other)

    @property
    def values(self) -> dict[str, Any]:
        """What is to be read."""
        found = values_of(self.layout, self.truth)
        assert isinstance(found, dict)
        return found


def vectors(release: str, shard: int = 0, shards: int = 1) -> Iterator[Vector]:
    """The vectors of a release; those of one message and version follow each other, the one with all defaults
    first. Shards share the messages out."""
    with gzip.open(FOLDER / f"vectors-{release}.ndjson.gz", "rb") as lines:
        for line in lines:
            row = orjson.loads(line)
            if crc32(row["message"].encode()) % shards == shard:
                name, direction = _messages()[row["message"]]
                data = b64decode(row["bytes"])
                yield Vector(release, name, row["version"], direction, row.get("header"), data, row["truth"])


@cache
def _messages() -> dict[str, tuple[str, str]]:
    """Today's name and the type of every message, by each name that it has had."""
    return {name: (each.name, each.type) for each in entries() for name in (each.name, *each.aliases)}
