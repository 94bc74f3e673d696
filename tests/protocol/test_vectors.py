"""Every API in every version, each way, and all other messages of Kafka: as Apache's own codec reads them.

The reader and the tracer are held against the JSON of Apache's converters: the same fields, the same values, nothing
missing and nothing over; the batches of `records` fields and unknown tagged fields too. The writer has to make Apache's
bytes of Apache's values.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

import pytest

from dissector.protocol.codec.plan import StructPlan
from dissector.protocol.codec.reader import reader
from dissector.protocol.codec.tracer import Tracer
from dissector.protocol.codec.writer import write_value
from dissector.protocol.message import Traced, read
from dissector.protocol.message_layout import MessageLayout, request_layout, response_layout
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.records.to_json import frame_budget, records_object
from dissector.protocol.records.tracing import RecordTracer
from dissector.protocol.schema import loader
from dissector.protocol.tree import ByteSource, Node
from tests.protocol import trees
from tests.protocol.apache_records import batches_of, truth_in
from tests.protocol.layout_coverage import filled, possible
from tests.protocol.vectors import RELEASES, Vector, vectors

pytestmark = pytest.mark.slow

OLD = "no longer there"
"""Versions that an older release has, and the newest has not."""
SHARDS = 2
"""Tests that share the vectors of a release: each reads all of its file."""
SOME_RELEASES = [pytest.param(release, marks=() if release in (OLD, RELEASES[-1]) else pytest.mark.exhaustive)
                 for release in (OLD, *RELEASES)]  # fmt: skip
"""For tests of each vector: in `make test` those of the newest release, and of the older one what the newest lacks."""


def some_vectors(release: str, shard: int) -> Iterator[Vector]:
    """A share of the vectors of a release, or of `OLD`."""
    if release != OLD:
        yield from vectors(release, shard, SHARDS)
        return
    newest = versions(RELEASES[-1])
    for vector in vectors(RELEASES[0], shard, SHARDS):
        if (vector.name, vector.version) not in newest:
            yield vector


@cache
def versions(release: str) -> set[tuple[str, int]]:
    """The messages of a release, each with its versions."""
    return {(each.name, each.version) for each in vectors(release)}


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two values differ, in kind too: ``True`` is no 1 here. A not-a-number equals another."""
    if type(ours) is not type(theirs):
        yield f"{path}: {ours!r} is another type than {theirs!r}"
    elif isinstance(ours, dict):
        if ours.keys() != theirs.keys():
            yield f"{path}: only in one are {ours.keys() ^ theirs.keys()}"
        for name in ours.keys() & theirs.keys():
            yield from differences(ours[name], theirs[name], f"{path}.{name}")
    elif isinstance(ours, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} elements, not {len(theirs)}"
        for n, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(one, other, f"{path}[{n}]")
    elif isinstance(ours, float) and math.isnan(ours):
        if not math.isnan(theirs):
            yield f"{path}: {ours!r}, not {theirs!r}"
    elif ours != theirs:
        yield f"{path}: {ours!r}, not {theirs!r}"


def traced(layout: StructPlan, data: bytes) -> Traced:
    sources = [ByteSource(0, "message", data)]
    root = Node("message", "", "STRUCT", 0, len(data))
    tracer = Tracer(data, 0, len(data), RecordTracer(sources, frame_budget()))
    tracer.message(layout, "body", root)
    return Traced(root, sources, [finding for node in root.walk() for finding in node.findings])


def assert_agreed(vector: Vector) -> None:
    """Reader and tracer find in a vector what Apache's reader found, and have no word to say of it."""
    where = vector.where
    values, end = reader(vector.name, vector.version, vector.other)(vector.data, 0, len(vector.data))
    assert end == len(vector.data), where
    assert not list(differences(values, vector.values)), where
    tree = traced(vector.layout, vector.data)
    trees.assert_tiled(tree)
    assert not tree.findings, where
    assert trees.same(trees.values_of(tree.tree.children[0]), values), where
    for raw, batches in truth_in(vector.truth):
        assert not list(differences(list(batches_of(raw)), batches)), where


def framed(vector: Vector, headers: dict[str, dict[int, Vector]]) -> tuple[bytes, MessageLayout]:
    """A vector with a header before it, and how the frame is to be read."""
    key = loader.message(vector.name).api_key
    assert key is not None
    if vector.direction == "request":
        layout = request_layout(key, vector.version)
    else:
        layout = response_layout(key, vector.version, bytes(8) + vector.data)
    assert (layout.header_version, layout.body) == (vector.header, vector.name), vector.where
    header = headers[layout.header or ""][layout.header_version].data
    return (len(header) + len(vector.data)).to_bytes(4, "big") + header + vector.data, layout


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("release", SOME_RELEASES)
def test_every_vector_reads_as_apache_reads_it(release: str, shard: int) -> None:
    for vector in some_vectors(release, shard):
        assert_agreed(vector)


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("release", SOME_RELEASES)
def test_apaches_values_are_written_as_apache_writes_them(release: str, shard: int) -> None:
    for vector in some_vectors(release, shard):
        assert write_value(vector.layout, vector.values) == vector.data, vector.where
        for raw, _ in truth_in(vector.truth):
            assert records_bytes(records_object(raw)) == raw, vector.where


@pytest.mark.parametrize("release", RELEASES)
def test_what_nobody_sets_is_written_with_apaches_defaults(release: str) -> None:
    for _, of_one_version in groupby(vectors(release), key=lambda each: (each.name, each.version)):
        first = next(of_one_version)  # a new object of Apache's, no setter called
        assert write_value(first.layout, {}) == first.data, first.where


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_every_request_and_response_reads_as_a_frame_with_apaches_header_version(release: str) -> None:
    headers: dict[str, dict[int, Vector]] = defaultdict(dict)
    for vector in vectors(release):
        if vector.direction == "header":
            headers[vector.name][vector.version] = vector
    for vector in vectors(release):
        if vector.direction in ("request", "response"):
            frame, layout = framed(vector, headers)
            decoded = read(frame, layout)
            assert decoded.header == headers[layout.header or ""][layout.header_version].values
            codes = {finding.code for finding in decoded.findings}
            if vector.other and not codes:
                continue  # the newest layout ends where the frame ends, too: nothing in these bytes tells them apart
            assert codes == ({"other-layout"} if vector.other else set()), vector.where
            assert not list(differences(decoded.body, vector.values)), vector.where


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("release", SOME_RELEASES)
def test_the_vectors_fill_every_place_that_a_version_has(release: str, shard: int) -> None:
    """Each field with a value, each that may be null with a null, and a tag nobody knows in every structure."""
    for _, group in groupby(some_vectors(release, shard), key=lambda each: (each.name, each.version)):
        of_one_version = list(group)
        seen = {place for vector in of_one_version for place in filled(vector.values)}
        assert seen == set(possible(of_one_version[0].layout)), of_one_version[0].where


def test_the_vectors_have_every_version_of_every_message(capsys: Any) -> None:
    found = Counter((each.direction, each.name, each.version) for release in RELEASES for each in vectors(release))
    kinds = Counter(kind for kind, _, _ in found)
    with capsys.disabled():
        pairs = ", ".join(f"{count} {kind} versions" for kind, count in sorted(kinds.items()))
        print(f"\nvectors: {found.total():,} messages from Apache's codec: {pairs}")
    assert found.keys() == {(each.type, each.name, v) for each in loader.entries() for v in each.valid_versions}
    assert kinds["request"] == kinds["response"] == sum(len(list(api.versions)) for api in loader.apis())
