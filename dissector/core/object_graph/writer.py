"""From objects to nodes."""

import copyreg
import struct
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from enum import Enum
from functools import _lru_cache_wrapper
from itertools import chain
from types import FunctionType, MethodType
from typing import Any, Final

import numpy as np

from dissector.core.columns import Column
from dissector.core.object_graph.nodes import (
    GraphError,
    GraphNode,
    Nodes,
    check_class,
    check_function,
    check_method,
    dtype_name,
    name_of,
)
from dissector.core.store import Excerpt, Store

_INT64: Final = range(-(1 << 63), 1 << 63)


def to_nodes(root: object, store: Store | None = None, excerpt: Excerpt | None = None) -> Nodes:
    """Return the nodes of an object; `store` is kept as this excerpt of it. Raises `GraphError` for what can't be kept:
    functions without a name, for example."""
    writer = _GraphWriter(store, excerpt)
    writer.row_of(root)
    return writer.nodes


class _GraphWriter:
    """Gives each object a row when it meets it first."""

    def __init__(self, store: Store | None, excerpt: Excerpt | None) -> None:
        self.nodes = Nodes([], [], [], [], [])
        self._store = store
        self._excerpt = excerpt
        self._rows: dict[Any, int] = {}
        self._alive: list[Any] = []
        """Objects whose `id` is in `_rows`: no other may get it."""

    def row_of(self, value: Any) -> int:
        """Return the row of a value; write it, and what it refers to, if it has none."""
        scalar = _SCALARS.get(type(value))
        key = (type(value), _double(value) if type(value) is float else value) if scalar is not None else id(value)
        row = self._rows.get(key)
        if row is not None:
            return row
        row = self._rows[key] = len(self.nodes.kind)
        self._alive.append(value)
        node = self._node_of(value) if scalar is None else scalar(value)
        items = self._append(node)
        items += [self.row_of(item) for item in node.items]
        return row

    def _append(self, node: GraphNode) -> list[int]:
        """Append a row; return its items, which are still empty."""
        items: list[int] = []
        self.nodes.kind.append(node.kind)
        self.nodes.name.append(node.name)
        self.nodes.number.append(node.number)
        self.nodes.data.append(node.data)
        self.nodes.items.append(items)
        return items

    def _node_of(self, value: Any) -> GraphNode:
        if value is self._store and self._excerpt is not None:
            return GraphNode("store", items=self._excerpt)
        write = _OBJECTS.get(type(value))
        if write is not None:
            return write(value)
        if isinstance(value, Enum):
            return GraphNode("enum", name_of(type(value)), items=(value.value,))
        if isinstance(value, np.generic):
            return GraphNode("scalar", dtype_name(value.dtype), data=value.tobytes())
        if isinstance(value, type):
            return _class(value)
        return _object(value)


def _object(value: Any) -> GraphNode:
    """Return the node of an object: by the protocol that `copy` and `pickle` use."""
    make, arguments, *rest = value.__reduce_ex__(2)
    state, items, pairs = (*rest, None, None, None)[:3]
    if make is copyreg.__newobj__:  # type: ignore[attr-defined]  # not in its stub
        flat = None if pairs is None else list(chain.from_iterable(pairs))
        items = None if items is None else list(items)
        return GraphNode("object", name_of(arguments[0]), items=(arguments[1:], state, items, flat))
    if isinstance(make, type) and not arguments and not rest:
        return GraphNode("new", name_of(make))
    raise GraphError(f"{type(value).__name__} can't be kept")


def _class(value: type) -> GraphNode:
    check_class(name := name_of(value))
    return GraphNode("class", name)


def _function(value: FunctionType) -> GraphNode:
    check_function(name := name_of(value))
    return GraphNode("function", name)


def _method(value: MethodType) -> GraphNode:
    owner = value.__self__
    check_method(owner if isinstance(owner, type) else type(owner), value.__name__)
    return GraphNode("method", value.__name__, items=(owner,))


def _integer(value: int) -> GraphNode:
    return GraphNode("int", number=value) if value in _INT64 else GraphNode("int", data=str(value).encode())


def _array(value: np.ndarray[Any, Any]) -> GraphNode:
    return GraphNode("array", dtype_name(value.dtype), data=value.tobytes(), items=value.shape)


def _column(value: Column) -> GraphNode:
    dtype, default, size, kept, rows = value.__reduce__()[1]
    return GraphNode("column", dtype_name(dtype), items=(default, size, kept, rows))


def _cache(value: Any) -> GraphNode:
    return GraphNode("cache", number=value.cache_parameters()["maxsize"], items=(value.__wrapped__,))


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _flat(value: dict[Any, Any]) -> Iterator[Any]:
    return chain.from_iterable(value.items())


_SCALARS: Final[dict[type, Callable[[Any], GraphNode]]] = {
    type(None): lambda _: GraphNode("none"),
    bool: lambda value: GraphNode("bool", number=int(value)),
    int: _integer,
    float: lambda value: GraphNode("float", data=_double(value)),
    str: lambda value: GraphNode("str", data=value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: GraphNode("bytes", data=value),
}
_OBJECTS: Final[dict[type, Callable[[Any], GraphNode]]] = {
    bytearray: lambda value: GraphNode("bytearray", data=bytes(value)),
    list: lambda value: GraphNode("list", items=value),
    tuple: lambda value: GraphNode("tuple", items=value),
    set: lambda value: GraphNode("set", items=value),
    frozenset: lambda value: GraphNode("frozenset", items=value),
    deque: lambda value: GraphNode("deque", number=value.maxlen, items=value),
    dict: lambda value: GraphNode("dict", items=_flat(value)),
    Counter: lambda value: GraphNode("Counter", items=_flat(value)),
    OrderedDict: lambda value: GraphNode("OrderedDict", items=_flat(value)),
    defaultdict: lambda value: GraphNode("defaultdict", items=(value.default_factory, *_flat(value))),
    array: lambda value: GraphNode("typed", value.typecode, data=value.tobytes()),
    np.ndarray: _array,
    Column: _column,
    FunctionType: _function,
    MethodType: _method,
    _lru_cache_wrapper: _cache,
}
