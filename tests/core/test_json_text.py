"""Values as JSON's text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from dissector.core.json_text import dumps
from dissector.core.text import HOSTILE

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])) | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


def plain(value: object) -> object:
    """What a JSON reader gives back: bytes are their hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@given(VALUES, st.booleans())
def test_it_reads_back_and_holds_nothing_that_a_terminal_acts_on(value: object, indented: bool) -> None:
    text = dumps(value, indented=indented).decode()
    assert json.loads(text) == plain(value)
    assert not HOSTILE.search(text.replace("\n", "") if indented else text)
