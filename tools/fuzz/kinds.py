"""The kinds of input: functions from seeds and a source of chance to a case. A new kind is an entry in `KINDS`."""

import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import google_crc32c

from dissector.protocol.codec.plan import ArrayPlan, StructPlan, plan
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.topics import CLUSTER_METADATA_ID, INTERNAL_TOPICS
from dissector.protocol.records.batch import CRC_FROM, HEADER
from dissector.protocol.records.compression import CODEC_MASK, CODECS, DecompressionBudget, DecompressionError
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api, apis, message
from tests.capture.writers import COMPRESSIONS
from tools.benchmarks import costly_sessions
from tools.benchmarks.hostile_shapes import SHAPES
from tools.fuzz.captures import capture_file
from tools.fuzz.case import Case, Side
from tools.fuzz.encrypted import encrypted_file
from tools.fuzz.jars import schemas_of
from tools.fuzz.logins import login_file, segment_file
from tools.fuzz.mutation import INTERESTING, mutated
from tools.fuzz.record_headers import section
from tools.fuzz.redactions import redaction_file
from tools.fuzz.sections import sections_file
from tools.fuzz.seeds import Seeds, framed
from tools.fuzz.shrinking import shrinking_file
from tools.fuzz.sides import both_sides_file, orphans_file
from tools.fuzz.transcripts import transcript_text

MECHANISMS: Final = (None, "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "?")
GROUP_WORDS: Final = {"protocol_type": ("consumer", "connect", "x"), "name": ("sticky", "cooperative-sticky", "stream")}
RANGES: Final = (2**15, 2**31, 2**63)
_ROOM: Final = 1 << 20
_BOMB: Final = 72 << 20
"""Just above what a section may become."""


def frame(seeds: Seeds, chance: random.Random) -> Case:
    """A request or response, changed; now and then read as another API's or version's, or with a gap."""
    seed = chance.choice(seeds.frames)
    data = mutated(seed.data, chance, [chance.choice(seeds.frames).data]) if chance.random() < 0.97 else seed.data
    case = replace(seed, data=data)
    if chance.random() < 0.1:
        case = replace(case, version=case.version + chance.choice((-1, 1)))
    elif chance.random() < 0.05:
        other = chance.choice(apis())
        case = replace(case, key=other.key, version=chance.choice(list(other.versions)))
    if chance.random() < 0.1:
        case = replace(case, end=chance.randint(min(4, len(case.data)), len(case.data)))
    return _at_least_a_prefix(case)


def _at_least_a_prefix(case: Case) -> Case:
    """Frames have a size prefix: framing sees to it."""
    return case if len(case.data) >= 4 else replace(case, data=case.data.ljust(4, b"\0"), end=None)


def records(seeds: Seeds, chance: random.Random) -> Case:
    """A `records` field in a Produce request or Fetch response, changed on the wire, below its compression, or both."""
    field = b"".join(_records_field(seeds, chance) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    return _with_records("records", field, chance)


def _with_records(kind: str, field: bytes, chance: random.Random) -> Case:
    side: Side = chance.choice(("request", "response"))
    key = ApiKey.PRODUCE if side == "request" else ApiKey.FETCH
    known = api(key)
    assert known is not None
    version = chance.choice([v for v in known.versions if v <= 12 or side == "response"])
    topic = chance.choice(["orders", *INTERNAL_TOPICS])
    partition = {"records": field}
    if side == "request":
        body = {"topic_data": [{"name": topic, "partition_data": [partition]}]}
    else:
        named = {"topic": topic} if version <= 12 else {"topic_id": CLUSTER_METADATA_ID}
        body = {"responses": [named | {"partitions": [partition]}]}
    data = framed(side, key, version, write(known.request if side == "request" else known.response, version, body))
    return Case(kind, side, data, key, version)


def _records_field(seeds: Seeds, chance: random.Random) -> bytes:
    raw = chance.choice(seeds.records)
    way = chance.random()
    if way < 0.3 or len(raw) < HEADER.size or raw[16] != 2:
        raw = mutated(raw, chance, [chance.choice(seeds.records)])
        return _wrapped(raw, chance) if chance.random() < 0.3 else raw
    header = list(HEADER.unpack_from(raw))
    section = raw[HEADER.size : 12 + header[1]]
    try:
        section = DecompressionBudget(_ROOM, _ROOM).decompressed(header[5] & CODEC_MASK, section)
    except DecompressionError:
        return mutated(raw, chance)
    if way < 0.8 and section:
        section = mutated(section, chance)
    return _batch(header, section, chance.choice(list(CODECS)), chance)


def _batch(header: list[int], section: bytes, codec: int, chance: random.Random) -> bytes:
    """A batch with a right checksum around a plain section; its header changed now and then."""
    packed = CODECS[codec].compress(section)
    if codec and packed and chance.random() < 0.2:
        packed = mutated(packed, chance)
    header[1], header[5] = HEADER.size - 12 + len(packed), header[5] & ~CODEC_MASK | codec
    for _ in range(chance.choice((0, 0, 1, 2))):
        which, border = chance.choice(((0, RANGES[2]), (5, RANGES[0]), (6, RANGES[1]), (7, RANGES[2]), (8, RANGES[2]),
                                       (11, RANGES[1]), (12, RANGES[1])))  # fmt: skip
        header[which] = chance.choice(INTERESTING) % (2 * border) - border
    body = HEADER.pack(*header)[CRC_FROM:] + packed
    header[4] = google_crc32c.value(body)
    return HEADER.pack(*header)[:CRC_FROM] + body


def _wrapped(inner: bytes, chance: random.Random) -> bytes:
    """A wrapper of magic 0 or 1 around anything, even around another."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        magic, codec = chance.choice((0, 1)), chance.choice((1, 2, 3, 4))
        value = CODECS[codec].compress(inner)
        time = struct.pack(">q", chance.choice(INTERESTING) - (1 << 63)) if magic else b""
        body = (
            struct.pack(">bb", magic, codec | chance.choice((0, 8))) + time + struct.pack(">ii", -1, len(value)) + value
        )
        inner = struct.pack(">qiI", chance.choice(INTERESTING) - (1 << 63), len(body) + 4, 0) + body
    return inner


def bomb(_seeds: Seeds, chance: random.Random) -> Case:
    """Little that becomes very much: sections just below or above the limits, of nothing or of the least records."""
    unit = chance.choice((b"\0", b"\x0c\0\0\0\x01\x01\0", b"\x0c\0\0\0\0\0\0", b"\0" * 14 + b"\x00\x0e" + bytes(10)))
    size = chance.choice((1 << 18, 1 << 20, 1 << 23, 60 << 20, _BOMB)) // len(unit) * len(unit)
    count = chance.choice((0, 1, size // len(unit), 2**31 - 1))
    header = [0, 0, 0, 2, 0, 0, min(count, 2**31 - 1), 0, 0, -1, -1, -1, count]
    one = _batch(header, unit * (size // len(unit)), chance.choice((1, 2, 3, 4)), chance)
    field = one * chance.choice((1, 2, 5, 30)) if len(one) < 1 << 20 else one
    return _with_records(
        "bomb", _wrapped(unit * (size // len(unit)), chance) if chance.random() < 0.2 else field, chance
    )


def headers(_seeds: Seeds, chance: random.Random) -> Case:
    """Records with many headers, huge or odd ones, in any compression."""
    field = b""
    for _ in range(chance.choice((1, 1, 2, 5))):
        plain, count = section(chance)
        if chance.random() < 0.2 and len(plain) < _ROOM:
            plain = mutated(plain, chance)
        header = [0, 0, 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count]
        field += _batch(header, plain, chance.choice(list(CODECS) if len(plain) < _ROOM else (1, 2, 3, 4)), chance)
    return _with_records("headers", field, chance)


class Place(NamedTuple):
    """A bytes field that may hold a format."""

    key: int
    side: Side
    version: int
    message: str
    path: str


def _places() -> list[Place]:
    found: list[Place] = []
    for name, paths in FORMATS.items():
        schema = message(name) if name != "ConnectProtocolMetadata" else None
        if schema is not None and schema.api_key is not None and name.endswith(("Request", "Response")):
            side: Side = "request" if name.endswith("Request") else "response"
            for version in schema.valid_versions:
                found += [Place(schema.api_key, side, version, name, path) for path in paths]
    return found


PLACES: Final = _places()


def embedded(seeds: Seeds, chance: random.Random) -> Case:
    """A format inside a bytes field, changed, in a message that is whole."""
    place = chance.choice(PLACES)
    raw = _nested_envelopes(seeds, chance) if place.key == ApiKey.ENVELOPE else chance.choice(seeds.embedded)
    raw = mutated(raw, chance, [chance.choice(seeds.embedded)]) if chance.random() < 0.9 else raw
    body = _holding(plan(place.message, place.version), place.path.split("."), raw, chance)
    data = framed(place.side, place.key, place.version, write(place.message, place.version, body))
    seed = chance.choice(seeds.frames)
    return Case("embedded", place.side, data, place.key, place.version, enveloped=(seed.key, seed.version),
                mechanism=chance.choice(MECHANISMS))  # fmt: skip


def _nested_envelopes(seeds: Seeds, chance: random.Random) -> bytes:
    """A frame's bytes, mostly in no envelope yet; else in one or in very many."""
    raw = chance.choice(seeds.frames).data[4:]
    for _ in range(chance.choice((0, 0, 0, 1, 2, 40)) if chance.random() < 0.9 else 400):
        values = {"request_data": raw, "request_principal": None, "client_host_address": b"1234"}
        raw = framed("request", ApiKey.ENVELOPE, 0, write("EnvelopeRequest", 0, values))[4:]
    return raw


def _holding(layout: StructPlan, path: list[str], raw: bytes, chance: random.Random) -> dict[str, Any]:
    """Values of a message that has `raw` at a path, and beside it the words that decide what it is."""
    values: dict[str, Any] = {}
    for each in layout.fields:
        if each.name == path[0]:
            inner = each.type.element if isinstance(each.type, ArrayPlan) else each.type
            value = _holding(inner, path[1:], raw, chance) if isinstance(inner, StructPlan) else raw
            values[each.name] = [value] if isinstance(each.type, ArrayPlan) else value
        elif each.name in GROUP_WORDS:
            values[each.name] = chance.choice(GROUP_WORDS[each.name])
    return values


def login(seeds: Seeds, chance: random.Random) -> Case:
    """A login's token, changed, bare or in a SaslAuthenticate."""
    token = mutated(chance.choice(seeds.tokens), chance, [chance.choice(seeds.tokens)])
    side: Side = chance.choice(("token", "request", "response"))
    mechanism = chance.choice(MECHANISMS)
    if side == "token":
        return Case("login", side, len(token).to_bytes(4, "big") + token, mechanism=mechanism)
    version = chance.choice((0, 1, 2))
    name = "SaslAuthenticateRequest" if side == "request" else "SaslAuthenticateResponse"
    data = framed(side, ApiKey.SASL_AUTHENTICATE, version, write(name, version, {"auth_bytes": token}))
    return Case("login", side, data, ApiKey.SASL_AUTHENTICATE, version, mechanism=mechanism)


def capture(seeds: Seeds, chance: random.Random) -> Case:
    """A stretch of a bundled capture, its packets or its file changed."""
    if chance.random() < 0.2:
        return Case("capture", "capture", mutated(chance.choice(seeds.files), chance, [chance.choice(seeds.files)]))
    return Case("capture", "capture", capture_file(chance.choice(seeds.captures), chance))


def compressed(seeds: Seeds, chance: random.Random) -> Case:
    """A capture, mostly whole, in a compressed file of one member or several, mostly damaged."""
    pack = chance.choice(list(COMPRESSIONS.values()))
    plain = capture_file(chance.choice(seeds.captures), chance)
    size = chance.choice((max(1, len(plain)), 1 + len(plain) // 3))
    data = b"".join(pack(plain[at : at + size]) for at in range(0, len(plain), size))
    return Case("compressed", "capture", mutated(data, chance, [plain]) if chance.random() < 0.8 else data)


def secrets(_seeds: Seeds, chance: random.Random) -> Case:
    """A conversation or a log segment with secrets, changed: no face may show one."""
    data, hidden = segment_file(chance) if chance.random() < 0.05 else login_file(chance)
    return Case("secrets", "capture", data, secrets=tuple(each.hex() for each in hidden))


def redacted(_seeds: Seeds, chance: random.Random) -> Case:
    """A recording with letters for names, changed: no redacted export may hold a piece of one."""
    data, names = redaction_file(chance)
    return Case("redacted", "capture", data, names=tuple(each.hex() for each in names))


def files(seeds: Seeds, chance: random.Random) -> Case:
    """Several captures that overlap in time, some damaged, some compressed, read as one."""
    packets = chance.choice(seeds.captures)
    made = [capture_file(packets, chance) for _ in range(chance.randint(2, 4))]
    made = [chance.choice(list(COMPRESSIONS.values()))(each) if chance.random() < 0.1 else each for each in made]
    return Case("files", "captures", b"".join(len(each).to_bytes(4, "big") + each for each in made))


def jar(_seeds: Seeds, chance: random.Random) -> Case:
    """The schemas of a release that nobody has seen."""
    return Case("jar", "jar", json.dumps(schemas_of(chance)).encode())


def sections(seeds: Seeds, chance: random.Random) -> Case:
    """A pcapng file of many sections, interfaces and options."""
    data, packets = sections_file(chance.choice(seeds.captures), chance)
    return Case("sections", "capture", data, packets=packets)


def both(seeds: Seeds, chance: random.Random) -> Case:
    """Connections whose ends both look like clients, or like brokers."""
    return Case("both", "capture", both_sides_file(seeds, chance))


def orphans(seeds: Seeds, chance: random.Random) -> Case:
    """Responses without requests."""
    return Case("orphans", "capture", orphans_file(seeds, chance))


def shrinking(seeds: Seeds, chance: random.Random) -> Case:
    """A file that becomes shorter while it is read or shown."""
    data, when, left = shrinking_file(seeds, chance)
    return Case("shrinking", "shrinking", data, when=when, left=left)


def encrypted(_seeds: Seeds, chance: random.Random) -> Case:
    """A capture with TLS and its secrets."""
    return Case("encrypted", "capture", encrypted_file(chance))


def transcripts(seeds: Seeds, chance: random.Random) -> Case:
    """A hex text."""
    data, frames = transcript_text(seeds, chance)
    return Case("transcripts", "capture", data, frames=frames)


def costly(_seeds: Seeds, chance: random.Random) -> Case:
    """Fetch sessions, names and groups made to cost much. What its batches become is the kind `bomb`."""
    shapes = [make for make in SHAPES.values() if make.__module__ == costly_sessions.__name__]
    make = chance.choice([make for make in shapes if not make.__name__.startswith("batches")])
    return Case("costly", "capture", make(chance.randrange(2_000, 100_000), chance))


class Kind(NamedTuple):
    """`share`: of ten thousand cases, how many are of this kind."""

    make: Callable[[Seeds, random.Random], Case]
    share: int


KINDS: Final = {
    "frame": Kind(frame, 4_529),
    "costly": Kind(costly, 30),
    "records": Kind(records, 1_500),
    "embedded": Kind(embedded, 1_500),
    "login": Kind(login, 1_000),
    "capture": Kind(capture, 200),
    "compressed": Kind(compressed, 100),
    "files": Kind(files, 100),
    "jar": Kind(jar, 100),
    "secrets": Kind(secrets, 100),
    "redacted": Kind(redacted, 40),
    "headers": Kind(headers, 300),
    "sections": Kind(sections, 100),
    "both": Kind(both, 60),
    "orphans": Kind(orphans, 60),
    "shrinking": Kind(shrinking, 80),
    "transcripts": Kind(transcripts, 100),
    "encrypted": Kind(encrypted, 100),
    "bomb": Kind(bomb, 1),
}


def case_of(seeds: Seeds, seed: int, number: int, only: str | None = None) -> Case:
    """Case `number` of a run: always the same for the same seed; of `only` that kind, if given."""
    chance = random.Random(f"{seed} {number}")
    [kind] = chance.choices(list(KINDS.values()), [each.share for each in KINDS.values()])
    return (kind if only is None else KINDS[only]).make(seeds, chance)
