"""An exchange in a few words: no error of a response is overlooked."""

from dissector.protocol.schema import enums, loader
from dissector.protocol.schema.errors import advice
from dissector.protocol.schema.model import Field
from dissector.session.summary import ERROR_CODES, error_findings, info


def _names(fields: tuple[Field, ...]) -> set[str]:
    return {f.snake_name for f in fields} | {name for f in fields for name in _names(f.fields)}


def test_every_field_that_holds_an_error_is_looked_at() -> None:
    holding = {
        name
        for entry in loader.entries()
        for name in _names(loader.message(entry.name).fields)
        if enums.enum_of(entry.name, name) == enums.ERROR_CODE
    }
    assert holding == set(ERROR_CODES)


def test_errors_are_counted_and_say_what_to_do_but_not_in_the_list() -> None:
    body: dict[str, object] = {"error_code": 0, "results": [{"error_code": 16}, {"partition_error_code": 16}]}
    [finding] = error_findings(body)
    assert finding.message == f"NOT_COORDINATOR (2 times): {advice(16)}"
    assert "\n" not in finding.message
    assert info({}, body, [finding], {}) == "NOT_COORDINATOR (2 times)"


def test_an_unknown_error_has_a_number_and_no_advice() -> None:
    assert [f.message for f in error_findings({"error_code": 12345})] == ["UNKNOWN(12345)"]


def test_groups_and_coordinators_asked_for_are_named() -> None:
    assert info({"groups": [{"group_id": "billing"}, {"group_id": "other"}]}, {}, [], {}) == "billing +1"
    assert info({"coordinator_keys": ["billing"]}, {}, [], {}) == "billing"
    assert info({"groups": []}, {}, [], {}) == ""
    assert info({"group_id": "billing", "groups": ["x"]}, {}, [], {}) == "billing"
