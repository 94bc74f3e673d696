"""One input of the fuzzer: a frame with what is known of it, or a whole capture file; as a value, and as a file."""

from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import orjson

from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message_layout import SASL_TOKEN, MessageLayout, request_layout, response_layout

Side = Literal["request", "response", "token", "capture", "captures", "shrinking", "jar"]
CORPUS: Final = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Case:
    """`kind` says how it was made; `key` and `version` are those of a frame's request."""

    kind: str
    side: Side
    data: bytes
    key: int = -1
    version: int = -1
    end: int | None = None
    """Where a gap begins, if one does."""
    mechanism: str | None = None
    enveloped: tuple[int, int] | None = None
    secrets: tuple[str, ...] | None = None
    """What no face of a capture may show, as hex."""
    names: tuple[str, ...] | None = None
    """What no redacted export of a capture may hold, as hex."""
    packets: int | None = None
    """How many a capture has, if it is whole."""
    frames: int | None = None
    """How many its rows have, if it is whole."""
    when: str | None = None
    """When a file becomes shorter, ..."""
    left: int | None = None
    """... and how much of it is left."""

    @property
    def shape(self) -> MessageLayout:
        """How the frame is to be read."""
        if self.side == "token":
            return SASL_TOKEN
        if self.side == "request":
            return request_layout(self.key, self.version)
        return response_layout(self.key, self.version, self.data)

    @property
    def files(self) -> list[bytes]:
        """The capture, or the captures, each of which stands behind its size, where the bytes last so long."""
        if self.side == "capture":
            return [self.data]
        files, rest = [], self.data
        while rest or not files:
            size = 4 + int.from_bytes(rest[:4], "big")
            files.append(rest[4:size])
            rest = rest[size:]
        return files

    @property
    def context(self) -> DecodingContext:
        return DecodingContext(mechanism=self.mechanism, enveloped=self.enveloped)

    def with_data(self, data: bytes) -> "Case":
        """The same with other bytes, of which nothing is known."""
        end = None if self.end is None else min(self.end, len(data))
        return replace(self, data=data, end=end, packets=None, frames=None)

    def as_json(self, **more: str) -> bytes:
        """As a file holds it; `more` is for people."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        present = {name: value for name, value in fields.items() if value not in (None, -1)}
        return (
            orjson.dumps(present | more | {"data": b64encode(self.data).decode()}, option=orjson.OPT_INDENT_2) + b"\n"
        )

    @classmethod
    def from_json(cls, line: bytes) -> "Case":
        """The way back."""
        present = {name: value for name, value in orjson.loads(line).items() if name in cls.__dataclass_fields__}
        if "enveloped" in present:
            present["enveloped"] = tuple(present["enveloped"])
        for name in ("secrets", "names"):
            if name in present:
                present[name] = tuple(present[name])
        return cls(**present | {"data": b64decode(present["data"])})
