"""What is kept by identity is not kept across a checkpoint."""

from dissector.core.identity_cache import IdentityCache
from dissector.core.object_graph import from_nodes, to_nodes


def test_a_checkpoint_has_nothing_of_it() -> None:
    cache: IdentityCache[int] = IdentityCache(10)
    of = (1, 2)
    cache.put(of, 5, 1)
    read, its = from_nodes(to_nodes([cache, of]))
    assert cache.get(of) == 5
    assert read.get(its) is None
    for _ in range(10):  # it has its bound, and room
        read.put(its, 6, 1)
    assert read.get(its) == 6
