"""Every output format has a renderer."""

from dissector.cli.diff import RENDERERS as DIFF_RENDERERS
from dissector.cli.formats import DiffFormat, Format
from dissector.cli.render.printing import FORMATS


def test_every_format_of_rows_has_a_renderer() -> None:
    assert set(FORMATS) == set(Format)


def test_every_format_of_a_diff_has_a_renderer() -> None:
    assert set(DIFF_RENDERERS) | {DiffFormat.JSON} == set(DiffFormat)
