"""An exchange in a few words: no error of a response is overlooked."""

from dissector import decode_request, decode_response, encode_request, encode_response
from dissector.core.finding import Finding
from dissector.exchange.decoding_findings import error_response
from dissector.exchange.from_json import api_key_of
from dissector.exchange.info_column import info
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.schema import enums, loader
from dissector.protocol.schema.errors import advice, error_name
from dissector.protocol.schema.field_names import ERROR_CODES
from dissector.protocol.schema.model import Field


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


def _response(api: str, version: int, body: dict[str, object]) -> ExchangeMessage:
    key = api_key_of(api, "api")
    return decode_response(encode_response(api, version, body), api_key=key, api_version=version)


def _request(api: str, version: int, body: dict[str, object]) -> ExchangeMessage:
    return decode_request(encode_request(api, version, body))


def _errors(api: str, response: ExchangeMessage) -> list[Finding]:
    return error_response(api_key_of(api, "api"), response)


def test_errors_are_counted_and_say_what_to_do_but_not_in_the_list() -> None:
    partition = {"partition_index": 0, "error_code": 16}
    group = {"group_id": "billing", "error_code": 16, "topics": [{"name": "orders", "partitions": [partition]}]}
    response = _response("OffsetFetch", 8, {"groups": [group]})
    [finding] = _errors("OffsetFetch", response)
    assert finding.message == f"NOT_COORDINATOR (2 times): {advice(16)}"
    assert "\n" not in finding.message
    assert info(None, response, [finding], {}) == "NOT_COORDINATOR (2 times)"


def test_an_unknown_error_has_a_number_and_no_advice() -> None:
    response = _response("Heartbeat", 4, {"error_code": 12345})
    assert [f.message for f in _errors("Heartbeat", response)] == ["UNKNOWN(12345)"]


def test_steps_of_the_protocol_are_notes_where_they_belong_and_nowhere_else() -> None:
    def severity(api: str, version: int, code: int) -> str:
        [finding] = _errors(api, _response(api, version, {"error_code": code}))
        assert finding.message.startswith(error_name(code))
        return finding.severity

    assert severity("ApiVersions", 0, 35) == severity("JoinGroup", 5, 79) == "note"
    assert severity("ApiVersions", 0, 42) == severity("JoinGroup", 5, 35) == severity("Heartbeat", 4, 79) == "warning"


def test_requested_groups_and_coordinators_are_named() -> None:
    def words(api: str, version: int, body: dict[str, object]) -> str:
        return info(_request(api, version, body), None, [], {})

    groups: list[dict[str, object]] = [{"group_id": name, "topics": None} for name in ("billing", "other")]
    assert words("OffsetFetch", 8, {"groups": groups}) == "billing +1"
    assert words("FindCoordinator", 4, {"coordinator_keys": ["billing"]}) == "billing"
    assert words("OffsetFetch", 8, {"groups": []}) == ""
    assert words("OffsetFetch", 7, {"group_id": "billing", "topics": None}) == "billing"
