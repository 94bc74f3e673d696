"""Hex texts: transcripts with their marks, dumps, bare digits; whole, cut anywhere, or damaged."""

import random
from collections.abc import Iterator
from typing import Final

from dissector.conversation.transcript import frame_lines
from tools.fuzz.mutation import mutated
from tools.fuzz.seeds import Seeds

MOST_FRAMES: Final = 60
COMMENTS: Final = ("# a word", "", "  ", "#", "\t# x", "# > 00")
STRANGE: Final = ("g", "0", ">", "<", "99999999999999999999> 00", "> ", "*", "00000000: 00", "\u2028", "\0", "  0 0",
                  "> 7fffffff", "< ffffffff", "> 00", "ééé", "１２", "-1> 00")  # fmt: skip
Said = tuple[bool, bytes]


def transcript_text(seeds: Seeds, chance: random.Random) -> tuple[bytes, int | None]:
    """A text, and how many frames it has, if nothing in it is damaged or cut."""
    said = [_said(seeds, chance) for _ in range(chance.randint(1, MOST_FRAMES))]
    way = chance.random()
    if way < 0.2:
        return _unmarked(said, chance), None
    whole = way < 0.6
    lines = list(_lines(said if whole else list(_recut(said, chance)), chance))
    if way > 0.8:
        return _damaged(lines, chance), None
    return _text(lines, chance), len(said) if whole else None


def _said(seeds: Seeds, chance: random.Random) -> Said:
    from_client = chance.random() < 0.5
    return from_client, chance.choice(seeds.requests if from_client else seeds.responses)


def _recut(said: list[Said], chance: random.Random) -> Iterator[Said]:
    """The same bytes in other pieces, some lost, some changed, some of the other side."""
    for from_client, data in said:
        side = from_client if chance.random() > 0.05 else not from_client
        changed = mutated(data, chance) if chance.random() < 0.2 else data
        cuts = sorted(chance.randrange(len(changed) + 1) for _ in range(chance.choice((0, 0, 1, 4))))
        for start, end in zip([0, *cuts], [*cuts, len(changed)], strict=True):
            if start < end and chance.random() > 0.05:
                yield side, changed[start:end]


def _lines(said: list[Said], chance: random.Random) -> Iterator[str]:
    """Entries of one frame or of several, on one line or on many."""
    connections = chance.choice((1, 1, 2, 9))
    together = chance.choice((0.0, 0.3))
    held: dict[tuple[int, bool], bytes] = {}
    for from_client, data in said:
        if chance.random() < 0.1:
            yield chance.choice(COMMENTS)
        connection = chance.randint(1, connections)
        whole = held.pop((connection, from_client), b"") + data
        if chance.random() < together and (connection, not from_client) not in held:
            held[connection, from_client] = whole
            continue
        yield from _entry(connection, whole, chance, from_client=from_client)
    for (connection, from_client), data in held.items():
        yield from _entry(connection, data, chance, from_client=from_client)


def _entry(connection: int, data: bytes, chance: random.Random, *, from_client: bool) -> Iterator[str]:
    if chance.random() < 0.5:
        yield from frame_lines(data, from_client=from_client, connection=connection)
        return
    mark = f"{'' if connection == 1 else connection}{'>' if from_client else '<'}"
    digits = data.hex(" ", chance.choice((1, 4))) if chance.random() < 0.3 else data.hex()
    comment = chance.choice(("", "", "  # a word"))
    yield mark + chance.choice(("", " ", "\t")) + (digits.upper() if chance.random() < 0.2 else digits) + comment


def _text(lines: list[str], chance: random.Random) -> bytes:
    end = chance.choice(("\n", "\n", "\r\n"))
    head = "\ufeff" if chance.random() < 0.1 else ""
    return (head + end.join(lines) + chance.choice((end, ""))).encode("utf-8", "replace")


def _damaged(lines: list[str], chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(lines) + 1)
        lines[at : at + chance.choice((0, 0, 1))] = [chance.choice(STRANGE)]
    text = _text(lines, chance)
    return mutated(text, chance) if chance.random() < 0.6 else text


def _unmarked(said: list[Said], chance: random.Random) -> bytes:
    """What one side says, as a dump or as bare digits."""
    data = b"".join(each for side, each in said if side == said[0][0])
    match chance.randrange(3):
        case 0:
            lines = [data[at : at + 32].hex() for at in range(0, len(data), 32)]
        case 1:
            lines = [f"{at:08x}: {data[at : at + 16].hex(' ', -2)}  ..." for at in range(0, len(data), 16)]
        case _:
            lines = [f"{at:08x}  {data[at : at + 16].hex(' ')}  |...|" for at in range(0, len(data), 16)]
    if chance.random() < 0.3 and len(lines) > 1:
        lines.insert(chance.randrange(1, len(lines)), "*")
    return _damaged(lines, chance) if chance.random() < 0.3 else _text(lines, chance)
