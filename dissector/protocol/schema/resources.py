"""Reads the JSON files of this package. A file that can't be read is a `SchemaError`."""

import json
from typing import Any

from dissector.core.files import package_file
from dissector.protocol.schema.model import SchemaError


def read_json(path: str) -> Any:
    """Return the content of a file, by its path in this package (``errors.json``, ``tables/index.json``)."""
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise SchemaError(f"{path}: cannot be read: {error}") from error


def read_text(path: str) -> str:
    """Return the text of a file, by its path in this package."""
    try:
        return package_file("protocol", "schema", path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SchemaError(f"{path}: cannot be read: {error}") from error
