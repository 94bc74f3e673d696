"""From nodes to objects."""

import struct
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from types import FunctionType, MemberDescriptorType
from typing import Any, Final

import numpy as np

from dissector.core.columns import Column, restored_column
from dissector.core.object_graph.nodes import (
    BUILT_IN,
    GraphError,
    GraphNode,
    Nodes,
    check_class,
    check_function,
    check_method,
    class_named,
    function_named,
    plain_dtype,
)
from dissector.core.store import Excerpt, Store


def from_nodes(nodes: Nodes) -> Any:
    """Return the object of these nodes. Raises `GraphError`."""
    try:
        return _GraphReader(nodes).value(0)
    except GraphError:
        raise
    except Exception as error:  # constructors raise whatever they like of arguments that are not theirs
        raise GraphError(f"no graph of objects: {error}") from error


MOST_OF_KEY: Final = 10_000
"""Values in a key of a dict or set, however often it refers to one: its hash is computed from all."""


class _GraphReader:
    """Makes the object of each row once. One that may refer to itself is there before its items are made."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._made: dict[int, Any] = {}
        self._weights: dict[int, int] = {}

    def value(self, row: int) -> Any:
        """Return the object of a row."""
        if row in self._made:
            return self._made[row]
        nodes = self._nodes
        kind, items = nodes.kind[row], nodes.items[row]
        node = GraphNode(kind, nodes.name[row], nodes.number[row], nodes.data[row], items)
        empty = _EMPTY.get(kind)
        if empty is not None:
            return self._filled(row, empty(node), node)
        if kind == "defaultdict":
            return self._default_dict(row, node)
        if kind == "object":
            return self._object(row, node)
        item_of = self._key if kind == "frozenset" else self.value
        made = _MADE[kind](node, [item_of(item) for item in items])
        return self._made.setdefault(row, made)  # one of the items may have made it

    def _filled(self, row: int, container: Any, node: GraphNode) -> Any:
        self._made[row] = container
        if isinstance(container, dict):
            items = iter(node.items)
            for key, value in zip(items, items, strict=True):
                container[self._key(key)] = self.value(value)
            return container
        if isinstance(container, set):
            container.update(map(self._key, node.items))
            return container
        for item in node.items:
            container.append(self.value(item))
        return container

    def _key(self, row: int) -> Any:
        """Return the object of a row that is hashed."""
        if self._weight(row) > MOST_OF_KEY:
            raise GraphError("a key of too many values")
        return self.value(row)

    def _weight(self, row: int) -> int:
        """Return how many values a row has, each as often as it is referred to."""
        if row not in self._weights:
            self._weights[row] = MOST_OF_KEY + 1  # one that contains itself
            self._weights[row] = min(1 + sum(map(self._weight, self._nodes.items[row])), MOST_OF_KEY + 1)
        return self._weights[row]

    def _default_dict(self, row: int, node: GraphNode) -> Any:
        factory, *items = node.items
        made_by = self.value(factory)
        if made_by is not None and not isinstance(made_by, type):
            raise GraphError("a default that is no class")
        return self._filled(row, defaultdict(made_by), node._replace(items=items))

    def _object(self, row: int, node: GraphNode) -> Any:
        arguments, state, items, pairs = node.items
        kind, made_of = class_named(node.name), self.value(arguments)
        if kind in BUILT_IN.values():
            raise GraphError(f"{node.name} has a kind of node of its own")
        if row in self._made:
            return self._made[row]
        made = self._made[row] = kind.__new__(kind, *made_of)
        _set_state(made, self.value(state))
        for item in self.value(items) or ():
            _list_of(made, kind).append(made, item)
        flat = iter(self.value(pairs) or ())
        for key, value in zip(flat, flat, strict=True):
            dict.__setitem__(made, key, value)
        return made


def _list_of(made: Any, kind: type) -> Any:
    """Return the built-in class of an object with items: an `append` of its own could be any function."""
    built_in = next((each for each in (list, deque) if isinstance(made, each)), None)
    if built_in is None:
        raise GraphError(f"{kind.__name__} has no items")
    return built_in


def _set_state(made: Any, state: Any) -> None:
    """Give an object its attributes, as `copy` does."""
    if hasattr(type(made), "__setstate__"):  # that of a frozen data class with slots
        made.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        vars(made).update(attributes)
    for name, value in (slots or {}).items():
        slot = next((vars(each)[name] for each in type(made).__mro__ if name in vars(each)), None)
        if not isinstance(slot, MemberDescriptorType):
            raise GraphError(f"{type(made).__name__} has no slot {name}")
        slot.__set__(made, value)


def _method(node: GraphNode, items: list[Any]) -> Any:
    """Return a method of an object or class of the engine."""
    [owner] = items
    kind = owner if isinstance(owner, type) else type(owner)
    name = node.name or ""
    check_method(kind, name)
    defined = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)
    if not isinstance(defined, FunctionType | classmethod):
        raise GraphError(f"{name} is no method of {kind.__name__}")
    return getattr(owner, name)


def _class(node: GraphNode, _: list[Any]) -> type:
    check_class(node.name)
    return class_named(node.name)


def _function(node: GraphNode, _: list[Any]) -> Any:
    check_function(node.name)
    return function_named(node.name)


def _new(node: GraphNode, _: list[Any]) -> Any:
    kind = class_named(node.name)
    if not any("__reduce__" in vars(each) for each in kind.__mro__ if each is not object):  # nobody wrote such a node
        raise GraphError(f"{node.name} has no such node")
    return kind()


def _enum(node: GraphNode, items: list[Any]) -> Any:
    kind = class_named(node.name)
    if not issubclass(kind, Enum):
        raise GraphError(f"{node.name} is no enum")
    return kind(items[0])


def _array(node: GraphNode, items: list[Any]) -> Any:
    return np.frombuffer(node.data or b"", plain_dtype(node.name)).reshape(items).copy()


def _integer(node: GraphNode, _: list[Any]) -> int:
    return int(node.data or b"") if node.number is None else node.number


def _cache(node: GraphNode, items: list[Any]) -> Any:
    if not callable(items[0]):
        raise GraphError("a cache of no function")
    return lru_cache(maxsize=node.number)(items[0])


def _column(node: GraphNode, items: list[Any]) -> Column:
    default, size, kept, rows = items
    return restored_column(plain_dtype(node.name), default, size, kept, rows)


_EMPTY: Final[dict[str, Callable[[GraphNode], Any]]] = {
    "list": lambda _: [],
    "set": lambda _: set(),
    "deque": lambda node: deque(maxlen=node.number),
    "dict": lambda _: {},
    "Counter": lambda _: Counter(),
    "OrderedDict": lambda _: OrderedDict(),
}
"""Containers that may contain themselves."""
_MADE: Final[dict[str, Callable[[GraphNode, list[Any]], Any]]] = {
    "none": lambda _node, _items: None,
    "bool": lambda node, _: bool(node.number),
    "int": _integer,
    "float": lambda node, _: struct.unpack("<d", node.data or b"")[0],
    "str": lambda node, _: (node.data or b"").decode("utf-8", "surrogatepass"),
    "bytes": lambda node, _: node.data or b"",
    "bytearray": lambda node, _: bytearray(node.data or b""),
    "tuple": lambda _, items: tuple(items),
    "frozenset": lambda _, items: frozenset(items),
    "typed": lambda node, _: array(node.name or "", node.data or b""),
    "array": _array,
    "scalar": lambda node, _: np.frombuffer(node.data or b"", plain_dtype(node.name))[0],
    "column": _column,
    "store": lambda _, items: Store.of(Excerpt(*items)),
    "class": _class,
    "function": _function,
    "method": _method,
    "cache": _cache,
    "enum": _enum,
    "new": _new,
}
