"""The tables as they are written down."""

from dissector.pipeline.arrow import arrow_schema
from dissector.pipeline.table_schemas import BY_NAME, PARTITION_TABLES, TABLES
from tools.lab.tables import PAGE, page


def test_the_page_of_the_tables_is_that_of_the_pipeline() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tools.lab.tables"


def test_every_column_is_named_once_and_has_words() -> None:
    for table in TABLES:
        names = [column.name for column in table.columns]
        assert len(names) == len(set(names))
        assert all(column.words and not column.words.endswith(".") for column in table.columns)


def test_rows_that_go_to_spark_have_all_columns() -> None:
    for name in PARTITION_TABLES:
        columns = [each.name for each in BY_NAME[name].columns]
        assert arrow_schema(BY_NAME[name], partitions=True).names == ["day", "capture", *columns]
        assert arrow_schema(BY_NAME[name], partitions=False).names == columns
