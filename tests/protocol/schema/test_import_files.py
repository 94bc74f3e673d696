"""Jars in, tables out: what is read of a schema file, and what an import does to a folder."""

import json
import zipfile
from pathlib import Path

import pytest

from dissector.protocol.schema.importer.jars import read_release, schema_of
from dissector.protocol.schema.importer.run import UnresolvedError, import_jars
from dissector.protocol.schema.importer.write import table_text, write_tables
from dissector.protocol.schema.model import SchemaError


def jar(path: Path, *schemas: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number, text in enumerate(schemas):
            archive.writestr(f"common/message/S{number}.json", text)
    return path


SCHEMA = """// A licence.
{ "type": "data", "name": "Sample", "validVersions": "0-1", "flexibleVersions": "1+",
  // Why.
  "fields": [ { "name": "A", "type": "int8", "tag": "0", "taggedVersions": "1+", "about": "Some // prose." } ] }"""


def test_a_schema_file_gives_fields_and_no_prose() -> None:
    message = schema_of(SCHEMA, "S.json")
    assert message is not None
    assert (message.fields[0].tag, str(message.fields[0].versions)) == (0, "1+")
    assert "prose" not in table_text(message)


def test_a_message_without_a_version_is_not_there(tmp_path: Path) -> None:
    gone = json.dumps({"type": "request", "name": "GoneRequest", "validVersions": "none", "apiKey": 4})
    found = read_release("2.0", [jar(tmp_path / "a.jar", SCHEMA, gone)])
    assert list(found.messages) == ["Sample"]


def test_a_message_in_two_jars_of_a_release_or_a_broken_jar_is_refused(tmp_path: Path) -> None:
    one, two = jar(tmp_path / "a.jar", SCHEMA), jar(tmp_path / "b.jar", SCHEMA)
    with pytest.raises(SchemaError, match=r"b\.jar: Sample: another jar of 2.0 has it too"):
        read_release("2.0", [one, two])
    one.write_bytes(b"not a zip")
    with pytest.raises(SchemaError, match=r"a\.jar: cannot be read"):
        read_release("2.0", [one])


def test_an_import_that_stops_leaves_the_tables_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "resolutions.json").write_text("{}")
    import_jars({"1.0": [jar(tmp_path / "a.jar", SCHEMA)]}, tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    other = jar(tmp_path / "b.jar", SCHEMA.replace("int8", "int16"))
    with pytest.raises(UnresolvedError):
        import_jars({"1.0": [tmp_path / "a.jar"], "2.0": [other]}, tmp_path)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "tables").iterdir()}
    assert set(before) == {"Sample.json", "index.json"}


def test_tables_of_messages_that_are_gone_are_removed_and_writing_twice_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "Gone.json").write_text("{}")
    message = schema_of(SCHEMA, "S.json")
    assert message is not None
    write_tables(tmp_path, [message])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_tables(tmp_path, [message])
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"Sample.json", "index.json"}


def test_what_older_releases_spell_otherwise_is_understood(tmp_path: Path) -> None:
    """Kafka 2.4 leaves flexibleVersions out, 2.8 has a brace too many, 4.1 an unused struct, 4.2 a flag as text."""
    field = {"name": "A", "type": "S", "versions": "0+", "ignorable": "true"}
    structs = [
        {"name": name, "versions": "0+", "fields": [{"name": "B", "type": "int8", "versions": "0+"}]}
        for name in ("S", "Unused")
    ]
    text = json.dumps(
        {"type": "data", "name": "Old", "validVersions": "0-1", "fields": [field], "commonStructs": structs}
    )
    message = read_release("2.4", [jar(tmp_path / "a.jar", text + "}")]).messages["Old"]
    assert not message.flexible_versions
    assert message.fields[0].ignorable
    assert message.common_structs == ("S",)
    assert '"S"' in table_text(message)
