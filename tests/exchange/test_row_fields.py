"""The registry of row fields: every name is valid everywhere, and all surfaces agree on values."""

import json
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from ssl import TLSVersion
from tempfile import mkdtemp
from typing import Any

import pytest

from dissector.analysis.stats.row_field_counts import group_keys
from dissector.capture_session import Capture
from dissector.cli.render.fields import exchange_lines, index_lines, parse
from dissector.cli.stats import breakdown
from dissector.exchange.index_rows import IndexRows, RowValues
from dissector.exchange.model import Exchange
from dissector.exchange.row_field import FieldType, RowField
from dissector.exchange.row_fields import EXCHANGE, ROW_FIELDS, by_name, row_fields
from dissector.exchange.to_json import json_line
from dissector.filter import cell_expression, complete
from dissector.filter import parse as parse_filter
from dissector.tables.row_to_exchange import TLS_COLUMNS
from dissector.tables.schemas import BY_NAME
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.tls import sessions
from tests.traffic import capture_of, conversation
from tests.traffic import exchanges as talk
from tui.labels import path_cell
from tui.list_columns import ListColumns, column_of
from tui.value_filters import column_filter

NAMES = [*ROW_FIELDS]
CAPTURES = ("java", "compare-librdkafka-1", "tls", "tls-no-keys")


@cache
def opened(name: str) -> Capture:
    if name.startswith("tls"):
        folder = Path(mkdtemp(dir=sessions.folder().name))
        made = sessions.session(talk(3), TLSVersion.TLSv1_2, client_certificate=True)
        (folder / "keys.log").write_bytes(made.key_log)
        key_logs = [str(folder / "keys.log")] if name == "tls" else []
        capture = Capture([capture_of(folder, conversation(made.turns))], key_logs=key_logs)
    else:
        capture = Capture([str(PCAPS / f"{name}.pcapng")])
    for _ in (*capture.read(), *capture.findings.examine()):
        pass
    return capture


@cache
def decoded(name: str) -> tuple[Exchange, ...]:
    return tuple(opened(name).exchanges())


@cache
def objects(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(json_line(exchange)) for exchange in decoded(name))


def printed(value: object) -> str:
    return "" if value is None else str(value)


@pytest.mark.slow
@pytest.mark.parametrize("capture", CAPTURES)
@cases("name", NAMES)
def test_all_surfaces_agree_on_values(capture: str, name: str) -> None:
    field, exchanges = ROW_FIELDS[name], decoded(capture)
    values = [field.from_exchange(exchange) for exchange in exchanges]
    assert b"".join(exchange_lines(parse(name), exchanges)).decode() == "".join(
        f"{printed(value)}\n" for value in values
    )
    if field.is_indexed:
        assert opened(capture).index.columns([name], range(len(exchanges))) == [values]
        rows = range(len(exchanges))
        assert b"".join(index_lines(opened(capture), parse(name), rows)) == b"".join(exchange_lines([name], exchanges))
    for value, whole in zip(values, objects(capture), strict=True):
        if whole["kind"] == EXCHANGE or name.startswith("tls."):
            assert in_json(whole, field) in (value, NOT_IN_JSON)


NOT_IN_JSON = object()


def in_json(value: dict[str, Any], field: RowField) -> object:
    """The value of a field in the JSON object of an exchange, which has some of them below other keys."""
    if field.json_key:
        return value[field.json_key]
    side, _, key = field.name.partition(".")
    if field.name == "response.packet":  # of a copy of the capture it is another one
        return NOT_IN_JSON
    if side in ("request", "response", "tls") and key:
        found = value[side][key] if value.get(side) else None
        return str(found).lower() if isinstance(found, bool) else found
    if field.type is FieldType.PRESENCE:
        return "true" if value[side] else None
    if field.name == "finding":
        return ",".join(finding["code"] for finding in value["findings"]) or None
    if field.name == "time":
        return (value["request"] or value["response"])["time_ns"]
    return NOT_IN_JSON


@pytest.mark.long
@pytest.mark.slow
@cases("capture", CAPTURES)
@cases("name", NAMES)
def test_a_filter_finds_the_rows_that_have_a_value(capture: str, name: str) -> None:
    field, exchanges = ROW_FIELDS[name], decoded(capture)
    whole = opened(capture)
    present = [row for row, exchange in enumerate(exchanges) if field.from_exchange(exchange) is not None]
    assert rows_of(whole, name) == present
    if field.type is FieldType.PRESENCE:
        return
    for value in dict.fromkeys(value for exchange in exchanges[:8] for value in field.values(exchange)):
        expected = [row for row, exchange in enumerate(exchanges) if value in [*field.values(exchange)]]
        assert rows_of(whole, cell_expression(name, value)) == expected


def rows_of(capture: Capture, text: str) -> list[int]:
    return [int(row) for found in capture.select(parse_filter(text)) for row in found.rows]


@pytest.mark.long
@cases("name", NAMES)
def test_every_name_is_completed_and_has_a_heading(name: str) -> None:
    assert name in [each.text for each in complete(name, len(name))]
    assert ROW_FIELDS[name].heading
    assert ROW_FIELDS[name].description


def test_the_names_that_the_interface_promises_are_there() -> None:
    promised = {
        "number": "number", "time": "time_ns", "connection": "conn", "client": "client", "server": "broker",
        "api": "api", "api_key": "api_key", "api_version": "version", "correlation_id": "corr",
        "client_id": "client_id", "latency": "latency_ns", "request.size": "request.size",
        "response.size": "response.size", "error": "error", "topic": "topic", "partition": "partition",
        "group": "group", "finding": "findings", "severity": "severity", "info": "info",
    }  # fmt: skip
    assert all(ROW_FIELDS[alias].name == name for name, alias in promised.items())


def test_no_two_fields_share_a_name_or_a_heading() -> None:
    names = [name for field in row_fields() for name in field.names]
    assert sorted(names) == sorted(set(names)) == sorted(ROW_FIELDS)
    headings = [field.heading for field in row_fields()]
    assert len(headings) == len(set(headings))


def test_columns_of_tables_are_columns_of_the_exchanges() -> None:
    columns = {column.name for column in BY_NAME["exchanges"].columns} | {"number", "conn", *TLS_COLUMNS}
    assert all(columns.issuperset(field.table_columns) for field in row_fields())


@cases(
    ("text", "expected"),
    [
        ("latency_ns > 1", "latency > 1ns"),
        ("correlation_id == 5", "corr == 5"),
        ("request.size > 0.1k", "request.size > 100"),
        ("broker contains 9092", "server contains 9092"),
    ],
)
def test_aliases_and_units_mean_the_same(text: str, expected: str) -> None:
    capture = opened("java")
    assert rows_of(capture, text) == rows_of(capture, expected) != []


def test_a_bare_number_of_time_ns_is_nanoseconds_since_1970() -> None:
    capture, exchanges = opened("java"), decoded("java")
    middle = exchanges[30].fields.time_ns
    expected = [row for row, exchange in enumerate(exchanges) if exchange.fields.time_ns >= middle]
    assert rows_of(capture, f"time_ns >= {middle}") == expected
    assert rows_of(capture, f"request.time_ns in {{{middle}..{2**62}}}") == expected
    assert rows_of(capture, f"time_ns >= {middle - capture.start_ns}ns") == expected


def test_a_new_field_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    field = RowField(
        "round_trip_us", "microseconds", FieldType.INTEGER, "µs",
        lambda exchange: None if exchange.fields.latency_ns is None else exchange.fields.latency_ns // 1000,
        aliases=("rtt",),
    )  # fmt: skip
    for name in field.names:
        monkeypatch.setitem(ROW_FIELDS, name, field)
    try:
        exchange = decoded("java")[3]
        value = field.from_exchange(exchange)
        for name in field.names:
            assert [*exchange_lines(parse(name), [exchange])] == [f"{value}\n".encode()]
            assert parse_filter(f"{name} == {value}").matches(exchange)
            assert 3 in rows_of(opened("java"), f"{name} == {value}")
            assert name in [each.text for each in complete(name, len(name))]
            assert breakdown(name) is field
            assert group_keys(field, exchange) == [str(value)]
            assert ListColumns.of([name]).words() == ["µs"]
            assert column_filter(exchange, "µs") == f"rtt == {value}"
            assert path_cell(exchange, column_of("µs").field) == str(value)
    finally:
        monkeypatch.undo()


@cases(
    "from_index,table_columns",
    [((), ()), ((IndexRows.latency,), ()), ((), ("latency_ns",)), ((IndexRows.latency,), ("latency_ns",))],
)
def test_a_key_of_json_without_columns_fails_at_load(
    from_index: tuple[Callable[[IndexRows], RowValues], ...], table_columns: tuple[str, ...]
) -> None:
    field = RowField(
        "took", "nanoseconds", FieldType.DURATION, "Took", lambda exchange: exchange.fields.latency_ns,
        from_index, json_key="took", table_columns=table_columns,
    )  # fmt: skip
    if from_index and table_columns:
        assert by_name([field]) == {"took": field}
    else:
        with pytest.raises(ValueError, match="row field took: a key of JSON needs columns"):
            by_name([field])
    assert by_name([field._replace(json_key="")])


def test_the_command_line_takes_aliases() -> None:
    done: subprocess.CompletedProcess[bytes] = kdissect(
        "show", str(PCAPS / "java.pcapng"), "--fields", "conn,latency,time", "-Y", "latency_ns > 1"
    )
    same = kdissect("show", str(PCAPS / "java.pcapng"), "--fields", "connection,latency_ns,time_ns", "-Y", "latency")
    assert done.returncode == 0
    assert done.stdout == same.stdout
