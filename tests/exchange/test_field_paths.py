"""Places of fields by name, without reading the tables of all messages."""

import pytest

from dissector.exchange.field_paths import SIDES, places, places_named
from dissector.protocol.schema.loader import may_have_field


@pytest.mark.parametrize("side", SIDES)
def test_a_name_finds_all_places_that_have_it(side: str) -> None:
    for name in {place.called[-1] for place in places(side)}:
        assert places_named(side, name) == tuple(place for place in places(side) if place.called[-1] == name), name


def test_a_message_without_a_field_of_the_name_is_passed_over() -> None:
    assert may_have_field("FetchRequest", "max_wait_ms")
    assert not may_have_field("MetadataRequest", "max_wait_ms")
    assert not may_have_field("FetchRequest", "wait")
