"""Every pair of host and port in a response stands in one of the tables: a new release can't bring one that leaks."""

from collections.abc import Iterator

from dissector.protocol.codec.plan import StructPlan, plan, struct_of
from dissector.protocol.schema.loader import apis
from dissector.proxy_server.address_fields import ADDRESSES, BETWEEN_NODES, OF_CLIENTS

Path = tuple[str, ...]


def pairs(layout: StructPlan, path: Path = ()) -> Iterator[Path]:
    """The paths of structures that have a host and a port."""
    fields = (*layout.fields, *layout.tagged)
    words = {word for field in fields for word in field.name.split("_")}
    if "host" in words and "port" in words:
        yield path
    for field in fields:
        inner = struct_of(field.type)
        if inner is not None:
            yield from pairs(inner, (*path, field.name))


def in_responses() -> set[tuple[int, Path]]:
    return {
        (api.key, path)
        for api in apis()
        for version in range(api.versions.low, api.versions.high + 1)
        for path in pairs(plan(api.response, version))
    }


def test_each_pair_of_host_and_port_is_known() -> None:
    known = {(key, place.path) for key, places in ADDRESSES.items() for place in places}
    known |= {(key, path) for table in (BETWEEN_NODES, OF_CLIENTS) for key, paths in table.items() for path in paths}
    assert in_responses() == known


def test_each_structure_with_addresses_has_the_fields_that_are_read() -> None:
    for api in apis():
        for place in ADDRESSES.get(api.key, ()):
            names = {
                field.name
                for version in range(api.versions.low, api.versions.high + 1)
                for layout in (plan(api.response, version), *structs(plan(api.response, version)))
                for field in layout.fields
            }
            assert {"host", "port", place.node} | ({place.kind} if place.kind else set()) <= names, api.name


def structs(layout: StructPlan) -> Iterator[StructPlan]:
    for field in (*layout.fields, *layout.tagged):
        inner = struct_of(field.type)
        if inner is not None:
            yield inner
            yield from structs(inner)
