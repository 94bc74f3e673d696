"""Packets that tshark prints as JSON, for Elasticsearch, or as PDML: with all bytes (`-x`), or the payloads of TCP."""

import re
from typing import Final

from dissector.core.times import SECOND, fraction_ns
from dissector.pasted.pieces import Piece
from dissector.pasted.plain_text import Lines

_FRAME: Final = re.compile(r'"frame_raw"\s*:\s*\[?\s*"([0-9a-fA-F]+)"')
_TIME: Final = re.compile(r'"frame[._](?:frame_)?time_epoch"\s*:\s*\[?\s*"([0-9]{1,10})(?:\.([0-9]{1,9}))?"')
_FIELD: Final = re.compile(
    r'"(?:tcp[._])?tcp[._](?P<key>srcport|dstport|stream|seq|payload)"\s*:\s*\[?\s*"(?P<value>[0-9a-fA-F:]+)"'
    r'|<field name="tcp\.(?P<name>srcport|dstport|stream|seq|payload)"[^>\n]{0,300}?'
    r'(?:show|value)="(?P<shown>[0-9a-fA-F:]+)"'
)


def printed_frames(lines: Lines) -> list[Piece]:
    """Return whole packets."""
    text = "\n".join(lines.texts)
    pieces: list[Piece] = []
    at = 0
    for found in _FRAME.finditer(text):
        digits = found[1]
        if len(digits) % 2:
            continue
        pieces.append(Piece(found.start(), found.end(), bytes.fromhex(digits), time_ns=_time(text, at, found.start())))
        at = found.end()
    return pieces


def _time(text: str, at: int, end: int) -> int | None:
    found = list(_TIME.finditer(text, at, end))
    if not found:
        return None
    last = found[-1]
    seconds, fraction = last[1], last[2] or ""
    return int(seconds) * SECOND + fraction_ns(fraction)


def printed_payloads(lines: Lines) -> list[Piece]:
    """Return payloads of TCP, each from the end with the higher port if it is the client's."""
    pieces: list[Piece] = []
    fields: dict[str, str] = {}
    seen: set[tuple[str, str, str | None]] = set()
    for found in _FIELD.finditer("\n".join(lines.texts)):
        name, value = found["key"] or found["name"], found["value"] or found["shown"]
        if name != "payload":
            fields[name] = value
            continue
        digits = value.replace(":", "")
        source, target = (fields.get(each, "") for each in ("srcport", "dstport"))
        if len(digits) % 2 or not digits:
            continue
        stream, seq = fields.get("stream", "0"), fields.pop("seq", None)
        if seq is not None and (stream, source, seq) in seen:
            continue  # a retransmission
        seen.add((stream, source, seq))
        pieces.append(Piece(
            found.start(), found.end(), bytes.fromhex(digits),
            from_client=int(source) > int(target) if source.isdigit() and target.isdigit() else None,
            connection=1 + (int(stream) if stream.isdigit() and len(stream) < 10 else 0),
        ))  # fmt: skip
    return pieces
