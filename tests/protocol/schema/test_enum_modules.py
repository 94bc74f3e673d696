"""Kafka's numbers as Python enums: generated, and equal to the tables."""

from enum import IntEnum

from dissector.protocol.schema import enums, field_enums
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import known_errors
from dissector.protocol.schema.importer.run import SCHEMA_FOLDER
from dissector.protocol.schema.loader import apis
from tests.cases import cases
from tools.lab.schemas.enum_modules import FIELD_ENUMS, enum_modules


@cases(("name", "text"), enum_modules().items())
def test_the_generator_writes_exactly_the_module_that_is_checked_in(name: str, text: str) -> None:
    assert (SCHEMA_FOLDER / name).read_text(encoding="utf-8") == text


def test_api_keys_are_those_of_the_tables() -> None:
    assert {each.name.replace("_", ""): each for each in ApiKey} == {api.name.upper(): api.key for api in apis()}


def test_error_codes_are_those_of_the_tables() -> None:
    assert {each: each.name for each in ErrorCode} == {code: error.name for code, error in known_errors().items()}


@cases("name", FIELD_ENUMS)
def test_enums_of_fields_are_those_of_the_tables(name: str) -> None:
    enum: type[IntEnum] = getattr(field_enums, name)
    assert {each: each.name for each in enum} == dict(enums.members(name))
