"""No bytes are forgotten: whatever Kafka's schemas call bytes has a format, is a secret, or is opaque for a reason."""

from collections.abc import Iterator
from typing import Final

from dissector.protocol.embedded.extra_schemas import extra_schemas
from dissector.protocol.embedded.formats import FORMATS
from dissector.protocol.embedded.secrets import METADATA_CARRIERS, SECRET_CARRIERS, SECRET_FIELDS
from dissector.protocol.embedded.topics import CONTROL_VALUES, RECORDS_FIELDS
from dissector.protocol.schema.field_enums import ControlRecordType
from dissector.protocol.schema.loader import entries, message
from dissector.protocol.schema.model import Field, MessageSchema

OPAQUE: Final = {
    "ConsumerProtocolAssignment.user_data": "AssignmentInfo of Streams is not decoded; other assignors send none",
    "EnvelopeRequest.client_host_address": "an address of 4 or 16 bytes",
    "RemoteLogSegmentMetadataRecord.custom_metadata": "what the plugin of remote storage likes (KIP-917)",
    "RemoteLogSegmentMetadataSnapshotRecord.custom_metadata": "what the plugin of remote storage likes (KIP-917)",
    "RemoteLogSegmentMetadataUpdateRecord.custom_metadata": "what the plugin of remote storage likes (KIP-917)",
    "SubscriptionInfoData.user_end_point": "text: host and port",
    "SubscriptionInfoData.client_tags.key": "text that the user chose",
    "SubscriptionInfoData.client_tags.value": "text that the user chose",
}
SCHEMAS: Final = [*(message(entry.name) for entry in entries()), *extra_schemas().values()]


def _fields(fields: tuple[Field, ...], above: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        path = f"{above}.{field.snake_name}"
        yield path, field
        yield from _fields(field.fields, path)


def _paths(schema: MessageSchema, kind: str) -> set[str]:
    return {path for path, field in _fields(schema.fields, schema.name) if field.element_type == kind}


def test_every_bytes_field_has_a_format_or_is_a_secret_or_is_opaque_for_a_reason() -> None:
    formats = {f"{name}.{path}" for name, paths in FORMATS.items() for path in paths}
    secrets = {f"{name}.{path}" for name, paths in SECRET_FIELDS.items() for path in paths}
    found = set().union(*(_paths(schema, "bytes") for schema in SCHEMAS))
    assert formats <= found
    assert found - formats - secrets == OPAQUE.keys()
    assert not formats & secrets


def test_every_secret_is_a_field() -> None:
    found = {path for schema in SCHEMAS for path, _ in _fields(schema.fields, schema.name)}
    assert {f"{name}.{path}" for name, paths in SECRET_FIELDS.items() for path in paths} <= found
    assert FORMATS.keys() >= SECRET_CARRIERS
    assert RECORDS_FIELDS.keys() >= METADATA_CARRIERS


def test_every_records_field_is_known() -> None:
    found = set().union(*(_paths(schema, "records") for schema in SCHEMAS))
    assert found == {f"{name}.{path}" for name, path in RECORDS_FIELDS.items()}


def test_every_control_record_type_has_a_message() -> None:
    assert CONTROL_VALUES.keys() == set(ControlRecordType) - {ControlRecordType.UNKNOWN}
    assert set(CONTROL_VALUES.values()) <= {schema.name for schema in SCHEMAS}
