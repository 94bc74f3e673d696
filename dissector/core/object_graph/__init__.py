"""Objects as columns: how a checkpoint keeps the stages, without a pickle.

`to_nodes` writes a graph of objects as rows, a node each, the root first; `from_nodes` makes the objects again. A node
has a kind, the name of its class, function or dtype, a number or bytes, and the rows of the nodes that it refers to.
Equal numbers and texts are one node; an object that is referred to twice is one object again.

Invariants (`tests/core/test_object_graph.py`):
  * reading calls nothing that the nodes choose: classes are those of the engine, an object is made without its
    `__init__` and gets its attributes, a member of an enum is looked up; functions and methods are those that stages
    hold to call them later (`nodes`);
  * a cache (`functools.lru_cache`) comes back empty, and a class with a way of its own to be copied (`__reduce__`,
    `__getstate__`) is kept that way: so secrets, files and sockets stay out;
  * nodes that are no graph of objects raise `GraphError`.
"""

from dissector.core.object_graph.nodes import GraphError, Nodes
from dissector.core.object_graph.reader import from_nodes
from dissector.core.object_graph.writer import to_nodes

__all__ = ["GraphError", "Nodes", "from_nodes", "to_nodes"]
