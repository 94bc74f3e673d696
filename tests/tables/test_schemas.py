"""The tables as they are written down."""

from dissector.tables.arrow_types import arrow_schema
from dissector.tables.schemas import KEYS, TABLES, ddl
from tools.lab.tables import PAGE, page


def test_the_page_of_the_tables_is_that_of_the_pipeline() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tools.lab.tables"


def test_every_column_is_named_once_and_has_words() -> None:
    for table in TABLES:
        names = [column.name for column in table.columns]
        assert len(names) == len(set(names))
        assert all(column.words and not column.words.endswith(".") for column in table.columns)


def test_files_and_spark_have_the_same_columns() -> None:
    for table in TABLES:
        names = arrow_schema(table).names
        assert names[:3] == ["day", "capture", "epoch"]
        assert ddl(table) == ", ".join(f"{each.name} {each.type}" for each in (*KEYS, *table.columns))
        assert names == [each.name for each in (*KEYS, *table.columns)]
