"""Real frames, those of all bundled recordings, decoded to columns by us and to objects by kio's native reader.

Only frames that both can read count: kio generates classes of most APIs and versions, and refuses some bytes that
brokers send. It reads the bodies alone, we read the headers as well. CPU time, in turn, as in `readers`.
"""

from collections import defaultdict
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.capture_session import Capture
from dissector.protocol.codec.program import Part, Program
from dissector.protocol.codec.reader import reader
from dissector.protocol.kernel.shredding import Arena, FrameMemory
from dissector.protocol.message_layout import PREFIX, MessageLayout
from tools.benchmarks import peers
from tools.benchmarks.captures import PCAPS

TIMES: Final = 64
"""How often we read each frame, with a call for each layout: half a million messages, as a large capture has them."""


class _Kind(NamedTuple):
    """Frames of one layout, and kio's reader of their bodies."""

    layout: MessageLayout
    program: Program
    read: peers.Read
    frames: list[bytes]
    bodies: list[bytes]


class Frames:
    """The frames, and both ways to decode them all."""

    def __init__(self) -> None:
        self._kinds = _readable(_collected())
        self._memory: list[tuple[Program, FrameMemory]] = []
        for kind in self._kinds:
            self._memory.append((kind.program, _memory(kind.frames * TIMES)))
        self._arena = Arena()

    @property
    def layouts(self) -> int:
        return len(self._kinds)

    def __len__(self) -> int:
        return sum(len(kind.frames) for kind in self._kinds)

    def to_columns(self) -> int:
        """Ours: values and places of all fields, `TIMES` times. Returns how many values there are."""
        count = 0
        for program, memory in self._memory:
            values = [number for number, each in enumerate(program.columns) if each.part is not Part.UNKNOWN_TAGS]
            for part in self._arena.shred(memory, program, program.wanted(values=values), PREFIX):
                assert not part.errors.any()
                count += int(self._arena.counts.sum())
        return count

    def to_objects(self) -> None:
        """kio's, once."""
        for kind in self._kinds:
            for body in kind.bodies:
                kind.read(body)


def _collected() -> dict[tuple[int, bool, MessageLayout], tuple[Program, list[bytes]]]:
    """All whole frames of known layouts, by API, side and layout."""
    found: dict[Any, tuple[Program, list[bytes]]] = {}
    frames: dict[Any, list[bytes]] = defaultdict(list)
    for path in sorted(PCAPS.glob("*.pcapng")):
        with Capture([str(path)], show_secrets=True) as capture:
            for _ in capture.read():
                pass
            bodies = BodyColumns(capture.pipeline.indexer, capture.pipeline.store, show_secrets=True)
            rows = np.arange(len(capture.pipeline.indexer.table))
            for is_request in (True, False):
                for messages in bodies.messages(rows, is_request=is_request):
                    key = messages.api_key, is_request, messages.layout
                    frames[key] += map(messages.frames.data, range(len(messages.frames)))
                    found[key] = messages.program, frames[key]
    return found


def _memory(frames: list[bytes]) -> FrameMemory:
    sizes = np.array(list(map(len, frames)), np.int64)
    return FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)


def _readable(collected: dict[tuple[int, bool, MessageLayout], tuple[Program, list[bytes]]]) -> list[_Kind]:
    kinds = []
    arena = Arena()
    for (api_key, is_request, layout), (program, frames) in collected.items():
        assert layout.header is not None
        try:
            read = peers.kio(api_key, layout.body_version, request=is_request)
        except Exception:  # its own error for a version that it lacks
            continue
        header = reader(layout.header, layout.header_version)
        ours = (part.errors == 0 for part in arena.shred(_memory(frames), program, program.wanted(), PREFIX))
        sound = [frame for frame, is_sound in zip(frames, np.concatenate(list(ours)), strict=True) if is_sound]
        both = [(each, each[header(each, PREFIX, len(each))[1] :]) for each in sound]
        some = [(frame, body) for frame, body in both if _reads(read, body)]
        if some:
            kinds.append(_Kind(layout, program, read, *map(list, zip(*some, strict=True))))
    return kinds


def _reads(read: peers.Read, body: bytes) -> bool:
    try:
        read(body)
    except Exception:  # of many kinds: it checks what brokers do not promise
        return False
    return True
