"""What is read of a damaged message for its values alone is what its whole tree says."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.tracer import SparseTracer, Tracer
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.message import trace
from dissector.protocol.message_layout import MessageLayout, request_layout, response_layout
from dissector.protocol.schema.loader import apis
from dissector.protocol.schema.model import Api
from dissector.protocol.tree import struct_values
from tests.conftest import costly
from tests.protocol.random_messages import make
from tests.traffic import seeds
from tools.fuzz.mutation import mutated

MESSAGES = [(api, version) for api in apis() for version in api.versions]


def read_by(kind: type[Tracer], data: bytes, layout: MessageLayout, end: int) -> Any:
    """The values of the body as far as they can be read, where reading ended, and why."""
    traced = trace(data, layout, end, tracer_type=kind)
    bodies = [node for node in traced.tree.children if node.name == "body"]
    values = [(struct_values(node, data), node.start, node.end) for node in bodies if node.children]
    return (
        values,
        [(each.code, each.path, each.message) for each in traced.findings],
        sum(1 for _ in traced.tree.walk()),
    )


@costly(40)
@given(chance=seeds, which=st.sampled_from(MESSAGES), asks=st.booleans())
def test_a_damaged_message_has_the_values_and_the_reason_of_its_tree(
    chance: random.Random, which: tuple[Api, int], asks: bool
) -> None:
    api, version = which
    layout = request_layout(api.key, version) if asks else response_layout(api.key, version, bytes(12))
    assert layout.header is not None
    assert layout.body is not None
    if layout.body in RECORDS_FIELDS:
        return
    _, head = make(plan(layout.header, layout.header_version), chance)
    _, body = make(plan(layout.body, layout.body_version), chance)
    whole = bytes(4) + head + body
    for _ in range(8):
        data = whole[: 4 + len(head)] + mutated(body, chance)
        end = chance.choice((len(data), chance.randint(4 + len(head), max(len(data), 4 + len(head)))))
        *tree, _ = read_by(Tracer, data, layout, end)
        if "malformed" in {code for code, _, _ in tree[1]}:
            *sparse, _ = read_by(SparseTracer, data, layout, end)
            assert sparse == tree


def test_a_large_message_has_few_nodes() -> None:
    topics = [{"name": f"t-{n}", "partitions": [{"partition_index": 0, "isr_nodes": [1, 2]}]} for n in range(300)]
    data = dissector.encode_response("Metadata", 9, {"brokers": [], "topics": topics})[:-1]
    layout = response_layout(3, 9, data)
    *sparse, few = read_by(SparseTracer, data, layout, len(data))
    *tree, many = read_by(Tracer, data, layout, len(data))
    assert sparse == tree
    assert few < 350
    assert many > 300 * 12
