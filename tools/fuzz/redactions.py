"""Conversations with letters for names, changed (`lettered`), and the search for what redaction left of a name.

Four letters of a name that are found anywhere are no chance, so the search is strict: in any case, in the file and in
what is compressed in it; and in what text formats make of the redacted copy, as hex and base64 too.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.exchange.model import ExchangeMessage
from dissector.export.exporter import export_rows
from dissector.export.formats import ExportFormat, ExportRequest
from dissector.export.redaction.frames import Redactor
from dissector.protocol.message import trace
from dissector.protocol.message_layout import key_and_version, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from tests.traffic import Turn, conversation, ethernet, pcap
from tools.fuzz.hidden_texts import HIDDEN_IN, batch_with, produce_with
from tools.fuzz.leaks import Pieces
from tools.fuzz.lettered import LEAST, Names, conversation_of, conversations
from tools.fuzz.logins import CHANGES, VERSIONS, Said, packets_file
from tools.fuzz.mutation import mutated

MOST_FRAMES: Final = 24
"""Frames of a conversation in a case."""
GREETED: Final = 0.8
"""How many conversations begin with an exchange that says that the connection needs no login: others are masked."""
HURT: Final = 0.3
"""How many captures the network changes as well."""
HIDDEN: Final = 0.2
"""How many have a name where no decoder shows it."""
TEXTS: Final = tuple(form for form in ExportFormat if form.entry.can_redact and not form.entry.needs_packets)
_TEXT_NAMES: Final = {form.value for form in TEXTS}


def redaction_file(chance: random.Random, name: str | None = None) -> tuple[bytes, Names]:
    """A capture file of a piece of a conversation, changed, and the names."""
    said, names = conversation_of(name or chance.choice(conversations()))
    first = chance.randrange(len(said))
    some = list(said[first : first + chance.randint(1, MOST_FRAMES)])
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5))):
        at = chance.randrange(len(some))
        some[at] = chance.choice((*CHANGES, *OWN_CHANGES))(some[at], chance)
    if chance.random() < HIDDEN and names:
        hidden = produce_with(batch_with(chance.choice(list(HIDDEN_IN)), chance.choice(names)))
        some.insert(chance.randrange(len(some) + 1), Said(True, hidden, ApiKey.PRODUCE, 7))
    some = [*VERSIONS, *some] if chance.random() < GREETED else some
    packets = conversation([Turn(each.from_client, each.data) for each in some if each.data])
    return (
        packets_file(packets, chance) if chance.random() < HURT else pcap([ethernet(each) for each in packets])
    ), names


def _changed(said: Said, chance: random.Random) -> Said:
    """Anything behind the size, which mostly becomes that of the frame again."""
    data = said.data[:4] + mutated(said.data[4:], chance)
    return replace(said, data=(len(data) - 4).to_bytes(4, "big") + data[4:] if chance.random() < 0.8 else data)


def _shifted(said: Said, chance: random.Random) -> Said:
    """Some bytes lost or added in one place: what follows is read as other fields."""
    at, size = chance.randint(4, len(said.data)), chance.choice((1, 1, 2, 3, 4, 8, 12))
    data = said.data[:at] + (said.data[at + size :] if chance.random() < 0.5 else bytes(size) + said.data[at:])
    return replace(said, data=(len(data) - 4).to_bytes(4, "big") + data[4:])


def _near_version(said: Said, chance: random.Random) -> Said:
    """The bytes of another version than that which is said, or of another API."""
    version = max(0, said.version + chance.choice((-3, -2, -1, 1, 2, 3)))
    key = chance.choice((said.key, said.key, said.key, chance.randrange(70)))
    if said.key < 0 or not said.from_client:
        return replace(said, key=key, version=version)
    data = said.data[:4] + key.to_bytes(2, "big") + version.to_bytes(2, "big") + said.data[8:]
    return replace(said, data=data, key=key, version=version)


OWN_CHANGES: Final = (_changed, _changed, _changed, _shifted, _shifted, _near_version)


def left_in_frames(chance: random.Random, count: int, name: str | None = None) -> str:
    """What is left of a name in so many changed frames of one conversation, each redacted on its own."""
    name = name or chance.choice(conversations())
    said, names = conversation_of(name)
    redactor, short = _learned(name), Letterings(names)
    for _ in range(count):
        was = chance.choice(said)
        changed = was
        for _ in range(chance.choice((1, 1, 2))):
            changed = chance.choice(OWN_CHANGES)(changed, chance)
        if changed.key < 0 or len(changed.data) < LEAST:
            continue
        data = changed.data
        key, version = key_and_version(data) if changed.from_client else (changed.key, changed.version)
        layout = (request_layout if changed.from_client else response_layout)(key, version, data)
        made = redactor.message(ExchangeMessage(0, len(data), data, len(data), layout))
        contents = [made, *(source.data for source in trace(made, layout).sources[1:])]
        found = next(filter(None, map(short.first_in, contents)), None)
        if found is not None or len(made) != len(data):
            return f"{found!r} is left of {layout.body} v{layout.body_version} {data.hex()}"
    return ""


@lru_cache(maxsize=8)
def _learned(name: str) -> Redactor:
    """A redactor that learned the names of a conversation."""
    redactor = Redactor()
    for said in conversation_of(name)[0]:
        if said.key >= 0:
            layout = (request_layout if said.from_client else response_layout)(said.key, said.version, said.data)
            redactor.learn(ExchangeMessage(0, len(said.data), said.data, len(said.data), layout))
    return redactor


def left_of_names(path: Path, names: Sequence[bytes], *, texts: bool = False) -> str:
    """What is left of names in redacted exports of a capture, and where; empty if nothing is."""
    short = Letterings(names)
    long = Pieces([each for each in names if len(each) > LEAST + 1])
    for name, content in _exports(path, texts=texts):
        found = long.first_in(content) if name in _TEXT_NAMES else short.first_in(content) or long.first_in(content)
        if found is not None:
            return f"{name} has {found!r} of a name"
    return ""


def _exports(path: Path, *, texts: bool) -> Iterator[tuple[str, bytes]]:
    with Capture([str(path)]) as capture:
        deque(capture.read(), maxlen=0)
        for form in (ExportFormat.PCAPNG, *(TEXTS if texts else ())):
            with suppress(CaptureError):  # nothing was sent, or it reads differently
                content = b"".join(export_rows(capture, range(len(capture)), ExportRequest(form, redact=True), _quiet))
                yield form.value, content
                if form is ExportFormat.PCAPNG:
                    yield from _sections(content)


def _quiet(_words: str) -> None:
    """Nobody is told."""


def _sections(content: bytes) -> Iterator[tuple[str, bytes]]:
    """All that is compressed in a capture."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.pcapng"
        copy.write_bytes(content)
        with Capture([str(copy)], show_secrets=True) as capture:
            for exchange in capture.exchanges():
                for message in filter(None, (exchange.request, exchange.response)):
                    for source in message.sources[1:]:
                        yield f"{source.name} of row {exchange.fields.number}", source.data


class Letterings:
    """Every four letters of some names, in lower case, and the search for one."""

    def __init__(self, names: Sequence[bytes]) -> None:
        self._pieces = np.unique(np.concatenate([_fours(each) for each in names] or [np.zeros(0, np.uint32)]))

    def first_in(self, content: bytes) -> bytes | None:
        """The first that is there, in any case."""
        found = np.flatnonzero(np.isin(_fours(content), self._pieces))
        return content[found[0] : found[0] + LEAST] if len(found) else None


def _fours(content: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    data = np.frombuffer(content.lower(), np.uint8).astype(np.uint32)
    if len(data) < LEAST:
        return np.zeros(0, np.uint32)
    return data[:-3] << 24 | data[1:-2] << 16 | data[2:-1] << 8 | data[3:]
