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

from dissector.protocol.codec.plan import StructPlan, plan, plan_of
from dissector.protocol.schema.loader import alternatives, entries

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
    def layout(self) -> StructPlan:
        """The layout that the release has for this version, where releases differ; else the only one."""
        for other in alternatives(self.name, self.version):
            if self.release in other.releases:
                return plan_of(other, self.version)
        return plan(self.name, self.version)


def vectors(release: str, shard: int = 0, shards: int = 1) -> Iterator[Vector]:
    """The vectors of a release; those of one message and version follow each other. Shards share the messages out."""
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
