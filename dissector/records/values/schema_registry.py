"""Schemas of a registry, asked by id over HTTP: Confluent's API, which Karapace and Apicurio (`/apis/ccompat/v7`) have
too, and Apicurio's own (`/apis/registry/v2`, `v3`).

Invariants:
  * a schema with all that it refers to takes at most `limits.registry_seconds`, however slowly bytes come: its
    connections are shut down then; an answer has at most `limits.schema_bytes`;
  * a registry redirects to http and https alone, and user and password go nowhere else;
  * a registry that failed to give a schema three times in a row, or was late with it, is not asked again;
  * no name of a topic is sent: only ids, and what schemas refer to.
"""

import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

import orjson

from dissector.core import limits
from dissector.core.text import clean
from dissector.records.values.http_deadline import Deadline, host_and_login
from dissector.records.values.opened import UnreadableError
from dissector.records.values.schema_reference import CONTENT_ID, GLOBAL_ID, GUID, ID, SchemaKey
from dissector.records.values.schemas import AVRO_SCHEMA, JSON_SCHEMA, PROTOBUF_TEXT, SchemaText

_FAILURES: Final = 3
_REFERENCES: Final = 64
"""Schemas that one may refer to, those that these refer to included."""
_REFERENCE: Final = ("name", "subject", "version")
_APICURIO: Final = "/apis/registry/"
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json, */*;q=0.5"


class _NoAnswerError(UnreadableError):
    """The registry can't be reached, or is late."""


class SchemaRegistry:
    """A schema registry."""

    is_remote = True

    def __init__(self, url: str, bounds: limits.Limits = limits.DEFAULT) -> None:
        """Raises `ValueError` for an address that is none. A user and a password may stand in it."""
        parts = urlsplit(url)
        try:
            self.host, self._authorization = host_and_login(parts)
        except ValueError:
            raise ValueError("not the URL of a schema registry: http://host:port") from None
        self._base = urlunsplit((parts.scheme, self.host, parts.path.rstrip("/"), "", ""))
        self._bounds = bounds
        self._failures = 0

    def text(self, key: SchemaKey) -> SchemaText | None:
        """Return a schema as it is written; None for one that is not there. Raises `UnreadableError`."""
        if self._failures >= _FAILURES:
            raise UnreadableError(f"{self.host} did not answer {_FAILURES} times: no further requests are sent")
        with Deadline(self._bounds.registry_seconds, keeps_host=bool(self._authorization)) as self._deadline:
            try:
                found = self._text(key)
            except _NoAnswerError as error:
                self._failures += 1
                raise UnreadableError(str(error)) from None
            except UnreadableError:
                self._failures = 0
                raise
        self._failures = 0
        return found

    def _text(self, key: SchemaKey) -> SchemaText | None:
        is_native = _APICURIO in self._base
        if key.kind in (GLOBAL_ID, CONTENT_ID) or (is_native and key.kind == ID):
            kind = CONTENT_ID if key.kind == ID else key.kind
            content = self._get(f"{'' if is_native else _APICURIO + 'v2'}/ids/{kind}s/{key.name}")
            return None if content is None else SchemaText(_type_of(content), content)
        if key.kind not in (ID, GUID):
            return None
        answer = self._get(f"/schemas/{'guids' if key.kind == GUID else 'ids'}/{key.name}")
        return None if answer is None else self._of_answer(answer, "")

    def _of_answer(self, answer: bytes, name: str) -> SchemaText:
        found = _object(answer)
        imports = tuple(self._references(found, set()))
        return SchemaText(_type(found), _schema(found), name, imports)

    def _references(self, found: dict[str, Any], seen: set[str]) -> Iterator[SchemaText]:
        """Yield the schemas that one refers to, each before those that refer to it."""
        references = found.get("references")
        for each in references if isinstance(references, list) else ():
            name, subject, version = (each.get(part) if isinstance(each, dict) else None for part in _REFERENCE)
            if not isinstance(name, str) or not isinstance(subject, str) or name in seen:
                continue
            seen.add(name)
            if len(seen) > _REFERENCES:
                raise UnreadableError(f"the schema refers to more than {_REFERENCES} others")
            answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/{quote(str(version), safe='')}")
            if answer is None:
                raise UnreadableError(f"the schema refers to {subject} version {version}, which is not there"[:200])
            referred = _object(answer)
            yield from self._references(referred, seen)
            yield SchemaText(_type(referred), _schema(referred), name)

    def _get(self, path: str) -> bytes | None:
        """Return an answer; None if nothing is there. Raises `UnreadableError`, and `_NoAnswerError` if none came."""
        request = urllib.request.Request(self._base + path, headers={"Accept": _ACCEPT})
        if self._authorization:
            request.add_unredirected_header("Authorization", self._authorization)
        try:
            with self._deadline.open(request) as answer:
                content = self._content(answer)
        except urllib.error.HTTPError as error:
            if self._deadline.is_over:
                raise _NoAnswerError(f"{self.host}: timed out") from None
            if error.code == 404:
                return None
            raise UnreadableError(f"{self.host} answers {error.code} {clean(error.reason)}"[:200]) from None
        except (OSError, HTTPException, ValueError) as error:
            raise _NoAnswerError(f"{self.host}: {self._deadline.reason(error)}"[:200]) from None
        return content

    def _content(self, answer: HTTPResponse) -> bytes:
        """Read an answer, up to a byte more than a schema may have."""
        content = answer.read(self._bounds.schema_bytes + 1)
        if self._deadline.is_over:  # a connection that was shut down looks like its end
            raise TimeoutError("timed out")
        return content


def _object(answer: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(answer)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UnreadableError("the registry's answer is not a JSON object")
    return found


def _schema(found: dict[str, Any]) -> bytes:
    schema = found.get("schema")
    if not isinstance(schema, str):
        raise UnreadableError("the registry's answer has no schema")
    return schema.encode("utf-8", "replace")


def _type(found: dict[str, Any]) -> str:
    """Return the type of a schema; Avro is the one that registries leave out."""
    return str(found.get("schemaType") or AVRO_SCHEMA)


def _type_of(content: bytes) -> str:
    """Return the type of a schema that comes without a word about it."""
    try:
        found = orjson.loads(content)
    except ValueError:
        return PROTOBUF_TEXT
    is_json_schema = isinstance(found, dict) and ("$schema" in found or found.get("type") == "object")
    return JSON_SCHEMA if is_json_schema else AVRO_SCHEMA
