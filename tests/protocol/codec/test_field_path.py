"""A path to certain fields finds what a search of the whole body finds."""

import random

from dissector.protocol.codec.field_path import field_path, structs_at
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.structs import structs
from dissector.protocol.schema.field_names import ERROR_CODES
from dissector.protocol.schema.index import IndexEntry
from dissector.protocol.schema.loader import entries
from tests.cases import cases
from tests.protocol.random_messages import make

MESSAGES = [entry for entry in entries() if entry.type in ("request", "response") and entry.valid_versions]
LOOKED_FOR = (ERROR_CODES, frozenset(("topic_id",)), frozenset(("records", "name")))


@cases("entry", MESSAGES, ids=lambda entry: entry.name)
def test_a_path_finds_what_a_search_finds(entry: IndexEntry) -> None:
    for version in entry.valid_versions:
        body, _ = make(plan(entry.name, version), random.Random(f"{entry.name} {version}"))
        for fields in LOOKED_FOR:
            searched = [struct for struct in structs(body) if not fields.isdisjoint(struct)]
            to = field_path(entry.name, version, fields)
            found = structs_at(to, body) if to is not None else []
            # A tagged field that is not there leaves its structure to be found all the same.
            found = [struct for struct in found if not fields.isdisjoint(struct)]
            assert sorted(map(id, found)) == sorted(map(id, searched))
