"""Objects kept as columns are the same objects again, and columns that were made up run nothing."""

from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.columns import Column
from dissector.core.finding import Finding, Severity
from dissector.core.limits import DEFAULT, Limits
from dissector.core.object_graph import GraphError, Nodes, from_nodes, to_nodes
from dissector.core.store import Excerpt, Store
from dissector.core.text import clean
from dissector.findings.framework.aggregation import ObservationLog
from dissector.findings.framework.recurrence import Burst
from dissector.index.shared_state import LearnedNames
from dissector.index.version_exchanges import _decoded_software
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.program import Program, message_program
from dissector.tls.key_log import KeyLog
from tests.cases import cases

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.binary() | st.text()
keys = scalars | st.tuples(scalars, scalars)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner)
        | st.builds(deque, st.lists(inner), st.none() | st.integers(3, 5))
        | st.builds(OrderedDict, st.lists(st.tuples(keys, inner)))
        | st.sets(keys)
        | st.frozensets(keys)
    ),
    max_leaves=20,
)


def again(value: Any) -> Any:
    return from_nodes(to_nodes(value))


def shape(value: Any) -> Any:
    """A value with the types of all in it, as 1 equals True."""
    if isinstance(value, dict):
        return type(value), [(shape(key), shape(each)) for key, each in value.items()]
    if isinstance(value, set | frozenset):
        return type(value), {(type(each), repr(each)) for each in value}
    if isinstance(value, list | tuple | deque):
        return type(value), [*map(shape, value)]
    return type(value), repr(value)


@given(values)
def test_values_come_back_with_their_types(value: Any) -> None:
    assert shape(again(value)) == shape(value)


def test_names_from_the_wire_and_large_numbers_come_back() -> None:
    assert again(["\udcff\x00", 1 << 70, -(1 << 63), Severity.WARNING, int]) == [
        "\udcff\x00", 1 << 70, -(1 << 63), Severity.WARNING, int,
    ]  # fmt: skip


def test_arrays_and_counters_come_back() -> None:
    grown = array("q", [1, 2])
    plain, wide, none = np.arange(6).reshape(2, 3), np.zeros(2, "V40"), np.zeros(0, "<i4")
    restored = again((grown, plain, wide, none, np.int16(7), Counter(a=2), defaultdict(list, {1: [2]})))
    assert restored[0] == grown
    for before, after in zip((plain, wide, none), restored[1:4], strict=True):
        assert (after.dtype, after.tolist()) == (before.dtype, before.tolist())
        assert after.flags.writeable
    assert restored[4:6] == (7, Counter(a=2))
    assert (type(restored[4]), restored[6][9], restored[6][1]) == (np.int16, [], [2])


def test_an_object_that_is_there_twice_is_one_and_may_contain_itself() -> None:
    log = ObservationLog()
    loop: list[Any] = [log, log.add, LearnedNames({"a": (1, "b")})]
    loop.append((loop, loop[2]))
    first, add, names, within = again(loop)
    assert within[0][0] is first
    assert within[1] is names
    assert add.__self__ is first
    names.learn("c", "d", 2)
    assert names.values == {"a": "b", "c": "d"}


def test_objects_of_each_kind_come_back() -> None:
    finding = Finding("slow-response", Severity.NOTE, "slow", "request")
    assert again((finding, DEFAULT)) == (finding, DEFAULT)
    assert type(again(DEFAULT)) is Limits
    assert again(Burst) is Burst


def test_a_column_has_the_rows_that_were_kept() -> None:
    column = Column(np.int64)
    column.extend([5, 6, 7])
    column.keep(np.array([1]))
    assert again(column).values.tolist() == [0, 6, 0]


def test_a_store_is_kept_as_an_excerpt() -> None:
    store = Store()
    base = store.add(b"abcdef")
    [restored] = from_nodes(to_nodes([store], store, Excerpt(base + 6, [(base + 2, b"cd")])))
    assert bytes(restored.read(base + 2, 2)) == b"cd"


def test_a_cache_comes_back_empty_and_a_secret_not_at_all() -> None:
    cached = lru_cache(maxsize=7)(_decoded_software)
    cached(3, b"", b"")
    restored = again(cached)
    assert restored.__wrapped__ is cached.__wrapped__
    assert (restored.cache_info().currsize, restored.cache_parameters()["maxsize"]) == (0, 7)
    log = KeyLog()
    log.add_lines([f"CLIENT_RANDOM {'ab' * 32} {'cd' * 48}".encode()])
    assert len(log)
    assert not len(again(log))


def test_a_program_comes_back_by_the_message_that_it_is_of() -> None:
    """The kernel follows a program wherever it leads."""
    program = message_program("RequestHeader", 2, "FetchRequest", 12)
    kept = to_nodes(program)
    assert "array" not in kept.kind
    assert from_nodes(kept).code.tolist() == program.code.tolist()
    with pytest.raises((GraphError, TypeError), match="of no message"):
        to_nodes(Program([("body", plan("FetchRequest", 12))]))


def test_a_key_whose_hash_takes_for_ever_is_refused() -> None:
    """Each tuple has the one before twice."""
    rows = 60
    made_up = Nodes(
        ["dict", *["tuple"] * rows], [None] * (rows + 1), [None] * (rows + 1), [None] * (rows + 1),
        [[1, 1], *([row + 1, row + 1] for row in range(1, rows)), []],
    )  # fmt: skip
    with pytest.raises(GraphError, match="too many values"):
        from_nodes(made_up)
    for kind in ("set", "frozenset"):
        with pytest.raises(GraphError, match="too many values"):
            from_nodes(made_up._replace(kind=[kind, *made_up.kind[1:]], items=[[1], *made_up.items[1:]]))


@dataclass
class Foreign:
    """No class of the engine."""

    value: int = 1


@cases(
    "value",
    [
        Foreign(), Foreign, lambda: 1, open, clean, KeyLog().add_lines, Store, np.array([Foreign()]),
        np.zeros(1, "i4,i4"),
    ],
)  # fmt: skip
def test_what_cannot_be_restored_is_refused_where_it_is_kept(value: object) -> None:
    with pytest.raises(GraphError):
        to_nodes(value)


def nodes(kind: str, name: str | None = None, items: int = 0, data: bytes | None = None) -> Nodes:
    """A node with items that are empty tuples."""
    rows = 1 + items
    return Nodes(
        [kind] + ["tuple"] * items, [name] * rows, [None] * rows, [data] * rows,
        [list(range(1, rows))] + [[] for _ in range(items)],
    )  # fmt: skip


@cases(
    "made_up",
    [
        nodes("function", "os:system"),
        nodes("function", "dissector.cli.main:main"),
        nodes("function", "dissector.core.text:os.system"),
        nodes("new", "subprocess:Popen"),
        nodes("new", "dissector.core.store:mmap"),
        nodes("object", "dissector.core.store:Path", items=4),
        nodes("object", "dissector.core.text:clean", items=4),
        nodes("class", "dissector.pipeline.nowhere:Thing"),
        nodes("method", "system", items=1),
        nodes("enum", "dissector.core.store:Store", items=1),
        nodes("array", "O", items=0, data=b"12345678"),
        nodes("array", "<i8", items=1, data=b"1"),
        nodes("typed", "z"),
        nodes("exec"),
        nodes("list")._replace(items=[[1]]),
        nodes("tuple")._replace(items=[[0]]),
        nodes("dict", items=1),
        Nodes([], [], [], [], []),
    ],
)
def test_nodes_that_were_made_up_run_nothing(made_up: Nodes) -> None:
    with pytest.raises(GraphError):
        from_nodes(made_up)


def test_a_method_that_the_nodes_put_into_an_object_is_not_called() -> None:
    """`append` of an object was looked up among its attributes: those of the nodes."""
    function = "dissector.index.version_exchanges:_decoded_software"
    made_up = Nodes(
        ["object", "tuple", "dict", "str", "function", "list", "str"],
        ["dissector.core.columns:ValueNumbers", None, None, None, function, None, None],
        [None] * 7,
        [None, None, None, b"append", None, None, b"x"],
        [[1, 2, 5, 1], [], [3, 4], [], [], [6], []],
    )
    with pytest.raises(GraphError, match="ValueNumbers has no items"):
        from_nodes(made_up)


@cases(
    "made_up",
    [
        nodes("class", "dissector.capture.live.recording:Recording"),
        nodes("function", "dissector.protocol.schema.importer.user_releases:remove"),
        nodes("function", "dissector.protocol.kernel.build:main"),
        nodes("new", "dissector.core.columns:ValueNumbers"),
        nodes("function", "dissector.core.text:clean"),
        nodes("class", "dissector.core.store:Store"),
        nodes("object", "dissector.protocol.codec.program:Program", items=4),
    ],
)
def test_what_has_effects_or_is_made_otherwise_is_refused(made_up: Nodes) -> None:
    with pytest.raises(GraphError):
        from_nodes(made_up)
