"""Jars of a release that nobody has seen: Kafka's newest, as the tables have it, and what a test adds to it."""

import json
import zipfile
from pathlib import Path
from typing import Any

from dissector.protocol.schema.importer.write import table_text
from dissector.protocol.schema.loader import message

Schema = dict[str, Any]


def schema(name: str) -> Schema:
    """A message as Kafka's own file would have it, to be changed."""
    found: Schema = json.loads(table_text(message(name)))
    return {key: value for key, value in found.items() if key not in ("releases", "aliases", "deprecatedVersions")}


def haunt() -> list[Schema]:
    """An API of key 201 with two versions, the second one flexible."""
    head: Schema = {"apiKey": 201, "validVersions": "0-1", "flexibleVersions": "1+"}
    house = {"name": "House", "type": "string", "versions": "0+", "about": "Which house."}
    ghosts = {"name": "Ghosts", "type": "[]int32", "versions": "1+", "nullableVersions": "1+"}
    error = {"name": "ErrorCode", "type": "int16", "versions": "0+"}
    return [
        head | {"type": "request", "name": "HauntRequest", "listeners": ["broker"], "fields": [house, ghosts]},
        head | {"type": "response", "name": "HauntResponse", "fields": [error]},
    ]


def newer_heartbeat() -> list[Schema]:
    """Heartbeat with a version more than the tables have, a field added and a field gone."""
    request_schema, response_schema = schema("HeartbeatRequest"), schema("HeartbeatResponse")
    high = message("HeartbeatRequest").valid_versions.high
    for each in (request_schema, response_schema):
        each["validVersions"] = f"0-{high + 1}"
    for field in request_schema["fields"]:
        if field["name"] == "MemberId":
            field["versions"] = f"0-{high}"
    request_schema["fields"].insert(1, {"name": "MemberUuid", "type": "uuid", "versions": f"{high + 1}+"})
    return [request_schema, response_schema]


def jar(path: Path, schemas: list[Schema], version: str = "9.9.0") -> Path:
    """A jar as kafka-clients is one."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kafka/kafka-version.properties", f"commitId=0\nversion={version}\n")
        for each in schemas:
            archive.writestr(f"common/message/{each['name']}.json", "// A comment.\n" + json.dumps(each))
    return path
