"""Many messages are masked at once as they are one at a time."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.protocol import bulk_masking
from dissector.protocol.bulk_masking import BulkMasking, CleanTokens, has_plain_secrets
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.program import message_program
from dissector.protocol.codec.reader import UNKNOWN_TAGS
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.embedded.secrets import SECRET_FIELDS
from dissector.protocol.frame import frame_bytes
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.masking import mask_secrets
from dissector.protocol.message_layout import PREFIX, MessageLayout, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import apis
from tests.cases import cases
from tests.protocol.random_messages import make

WORDS = {
    "name": ("retention.ms", "cleanup.policy", "ssl.key.password", "listener.name.a.sasl.jaas.config", "vault.token"),
    "config_name": ("retention.ms", "vault.token"),
    "value": ("86400000", "INFO", "compact", "http://user:word@host", "hunter2", ""),
    "error_message": ("Topic 'a' already exists.", "Invalid value hunter2 for configuration vault.token", "", "oops"),
}
NUMBERS = {"config_type": (0, 1, 9), "resource_type": (2, 4, 8)}


def plausible(value: object, chance: random.Random, name: str = "") -> object:
    """A made value with words and numbers as brokers and clients send them."""
    match value:
        case dict():
            fields = {key: each for key, each in value.items() if key != UNKNOWN_TAGS or chance.random() < 0.02}
            return {key: each if key == UNKNOWN_TAGS else plausible(each, chance, key) for key, each in fields.items()}
        case list():
            return [plausible(each, chance, name) for each in value]
        case bool():
            return chance.random() < 0.1 if name == "is_sensitive" else value
        case int() if name in NUMBERS:
            return chance.choice(NUMBERS[name])
        case int() if abs(value) < 1 << 32:
            return abs(value) % 128
        case int():
            return value if chance.random() < 0.02 else abs(value) % (1 << 41)
        case str():
            is_kept = name.endswith("_id") or chance.random() < 0.02
            return value if is_kept else chance.choice(WORDS.get(name, ("one", "two", "three")))
    return value


def frame_of(layout: MessageLayout, chance: random.Random) -> bytes:
    assert layout.header is not None
    assert layout.body is not None
    parts = []
    for name, version in ((layout.header, layout.header_version), (layout.body, layout.body_version)):
        parts.append(plausible(make(plan(name, version), chance)[0], chance))
    header, body = parts
    assert isinstance(header, dict)
    return frame_bytes(layout, header, body)


LAYOUTS = [
    layout
    for known in apis()
    for version in known.versions
    for layout in (request_layout(known.key, version), response_layout(known.key, version, b""))
    if layout.body in SECRET_FIELDS and has_plain_secrets(layout)
]


def check(masking: BulkMasking, layout: MessageLayout, frames: list[bytes]) -> int:
    """Hold frames that are masked at once against the same one at a time; return how many there are."""
    assert layout.header is not None
    assert layout.body is not None
    program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
    sizes = np.array([len(each) for each in frames], np.int64)
    memory = FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)
    at, found = masking.masked(memory, layout, program)
    assert all(one < other for one, other in pairwise(at.tolist()))
    for row, number in enumerate(at.tolist()):
        data = frames[number]
        expected = mask_secrets(data, len(data), layout, len(data), EMPTY_CONTEXT)
        assert expected.layout == layout  # not masked whole
        assert found.data(row) == expected.data
    return len(at)


@pytest.mark.long
@pytest.mark.slow
@cases("layout", LAYOUTS, ids=lambda layout: f"{layout.body}-{layout.body_version}")
def test_messages_are_masked_as_one_at_a_time(layout: MessageLayout) -> None:
    chance = random.Random(f"{layout.body} {layout.body_version}")
    frames = [frame_of(layout, chance) for _ in range(60)]
    masking = BulkMasking()
    found = check(masking, layout, frames)
    assert found > 10
    assert check(masking, layout, frames[::-1]) == found


@given(layout=st.sampled_from(LAYOUTS), seed=st.integers(0, 1000), data=st.data())
def test_damaged_messages_are_masked_as_one_at_a_time(layout: MessageLayout, seed: int, data: st.DataObject) -> None:
    chance = random.Random(seed)
    frames = [bytearray(frame_of(layout, chance)) for _ in range(4)]
    for frame in frames:
        at = data.draw(st.integers(4, len(frame) - 1))
        frame[at] = data.draw(st.integers(0, 255))
    check(BulkMasking(), layout, [bytes(each) for each in frames])


@pytest.mark.long
def test_few_decisions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_masking, "MOST_DECISIONS", 2)
    masking, chance = BulkMasking(), random.Random(7)
    for layout in LAYOUTS:
        check(masking, layout, [frame_of(layout, chance) for _ in range(10)])


def test_a_frame_that_may_have_too_many_fields_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    [layout] = [each for each in LAYOUTS if each.body == "CreateTopicsRequest" and each.body_version == 7]
    frames = [frame_of(layout, random.Random(3)) for _ in range(2)]
    assert check(BulkMasking(), layout, frames) == 2
    monkeypatch.setattr(bulk_masking, "LARGEST", len(frames[0]) - 1)
    assert check(BulkMasking(), layout, frames) == 0


SHOWN = {"name": "retention.ms", "value": "86400000", "read_only": False, "config_source": 1, "is_sensitive": False,
         "synonyms": [], "config_type": 1, "documentation": None}  # fmt: skip
OF_CONFIGS = response_layout(ApiKey.DESCRIBE_CONFIGS, 4, b"")


def described(*configs: dict[str, object], resource_type: int = 2) -> bytes:
    result = {"error_code": 0, "error_message": None, "resource_type": resource_type, "resource_name": "a"}
    result["configs"] = [{**SHOWN, **config} for config in configs]
    return dissector.encode_response("DescribeConfigs", 4, {"throttle_time_ms": 0, "results": [result]})


SYNONYM = {"name": "retention.ms", "value": "hunter2", "source": 1}


@cases("other", [
    {"name": "vault.token"}, {"config_type": 9}, {"is_sensitive": True}, {"value": "http://a:b@host"},
    {"synonyms": [SYNONYM]}, {"synonyms": [{**SYNONYM, "name": "vault.token"}]}, {"value": None}, {"value": ""},
])  # fmt: skip
def test_messages_that_differ_in_what_decides_are_decided_apart(other: dict[str, object]) -> None:
    some, others = described({}), described(other)
    for frames in ([some, others], [others, some], [some, others, some, others]):
        assert check(BulkMasking(), OF_CONFIGS, frames) == len(frames)
    assert check(BulkMasking(), OF_CONFIGS, [described({}), described({}, resource_type=8)]) == 2
    masking = BulkMasking()
    for frame in (some, others, described({}, other), described(other, {}), some):
        assert check(masking, OF_CONFIGS, [frame]) == 1


def test_messages_whose_secrets_are_fields_of_their_own_are_told() -> None:
    assert has_plain_secrets(OF_CONFIGS)
    for other in (
        OF_CONFIGS._replace(unread=OF_CONFIGS.body), OF_CONFIGS._replace(token=True),
        request_layout(ApiKey.METADATA, 1), request_layout(ApiKey.SASL_AUTHENTICATE, 1),
        response_layout(ApiKey.SASL_AUTHENTICATE, 1, b""), response_layout(ApiKey.FETCH, 12, b""),
        OF_CONFIGS._replace(body=None),
    ):  # fmt: skip
        assert not has_plain_secrets(other)


@cases(("less", "count"), [(0, 1), (1, 0)])
def test_a_frame_may_have_as_many_bytes_as_fields_are_allowed(
    less: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = described({})
    monkeypatch.setattr(bulk_masking, "LARGEST", len(frame) - less)
    assert check(BulkMasking(), OF_CONFIGS, [frame]) == count


def test_decisions_are_kept_up_to_a_number_and_to_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_masking, "MOST_DECISIONS", 3)
    monkeypatch.setattr(bulk_masking, "MOST_KEY_BYTES", 20)
    masking = BulkMasking()

    def kept(*keys: bytes) -> list[bytes]:
        for key in keys:
            masking._keep((1, key), ())
        return [key for _, key in masking._decisions]

    assert kept(b"a", b"b", b"c") == [b"a", b"b", b"c"]
    assert kept(b"d") == [b"d"]
    assert kept(b"e" * 19) == [b"d", b"e" * 19]
    assert kept(b"f") == [b"f"]
    assert kept(b"g" * 19, b"h") == [b"h"]
    masking = BulkMasking()
    assert kept(b"i", b"j" * 19) == [b"i", b"j" * 19]


def test_messages_that_differ_in_what_decides_nothing_are_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[bytes] = []
    decide = bulk_masking._decision

    def counting(data: bytes, layout: MessageLayout, plan: bulk_masking._SecretColumns) -> bulk_masking.Decision:
        decided.append(data)
        return decide(data, layout, plan)

    monkeypatch.setattr(bulk_masking, "_decision", counting)
    masking = BulkMasking()
    others = [described({}), described({"documentation": "kept for a day"}), described({"read_only": True})]
    for _ in range(3):
        check(masking, OF_CONFIGS, others)
    assert len(decided) == 1


MECHANISMS = (None, "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "OTHER")
CLEAN = {
    "plain": b"\x00ann\x00hunter2",
    "scram": b"n,,n=ann,r=fyko+d2lbbFgONRv9qkxdawL",
    "bearer": b"n,,\x01auth=Bearer abc.def.ghi\x01\x01",
    "error": b'{"status": "invalid_token"}',
    "none": b"",
}
DOUBTFUL = {
    "tab in a name": b"n,,n=a\tnn,r=fyko",
    "delete in a name": b"n,a=an\x7fn,n=ann,r=fyko",
    "no UTF-8": b"n,,n=a\xffnn,r=fyko",
    "lines of an error": b'{\n"status": "invalid_token"}',
    "last byte": b"n,,n=ann,r=fyko\x02",
}


def frame(token: bytes, version: int) -> bytes:
    data = dissector.encode_request(
        "SaslAuthenticate", version, {"auth_bytes": token.hex()}, correlation_id=7, client_id="tests"
    )
    return bytes(data)


def are_clean(frames: list[bytes], version: int) -> list[bool]:
    layout = request_layout(ApiKey.SASL_AUTHENTICATE, version)
    assert layout.header is not None
    assert layout.body is not None
    program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
    sizes = np.array([len(each) for each in frames], np.int64)
    memory = FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)
    return CleanTokens().of(memory, program).tolist()


def is_masked_whole(data: bytes, version: int, mechanism: str | None) -> bool:
    layout = request_layout(ApiKey.SASL_AUTHENTICATE, version)
    context = DecodingContext(mechanism=mechanism, may_have_secrets=True, has_secrets=True, may_cut_secrets=True)
    return mask_secrets(data, len(data), layout, len(data), context).layout.masked_from is not None


@cases("version", [0, 2])
def test_tokens_of_mechanisms_are_clean_and_others_are_not(version: int) -> None:
    tokens = [*CLEAN.values(), *DOUBTFUL.values()]
    found = are_clean([frame(each, version) for each in tokens], version)
    assert found == [True] * len(CLEAN) + [False] * len(DOUBTFUL)


def test_a_message_that_does_not_fit_is_not_clean() -> None:
    data = frame(CLEAN["scram"], 0)
    longer = (len(data) + 1 - PREFIX).to_bytes(4, "big") + data[PREFIX:] + b"x"
    assert are_clean([data[:-1], longer, data], 0) == [False, False, True]


PIECES = st.sampled_from([
    *CLEAN.values(), *DOUBTFUL.values(), b"n,,", b"n=", b"a=", b",", b"r=x", b"\x00", b"\x01", b"auth=Bearer ",
    b"host=", b"{", b'"status"', b"\n", b"\x7f", b"\xff", b"ann",
])  # fmt: skip


@given(
    token=st.lists(PIECES | st.binary(max_size=4), max_size=6).map(b"".join), mechanism=st.sampled_from(MECHANISMS),
    version=st.integers(0, 2),
)  # fmt: skip
def test_what_is_masked_as_a_whole_is_not_clean(token: bytes, mechanism: str | None, version: int) -> None:
    data = frame(token, version)
    if is_masked_whole(data, version, mechanism):
        assert are_clean([data], version) == [False]
