"""The TLS of captures, read from their tables: what `show` says of the captures themselves."""

from pathlib import Path

import pytest

from tests.cli.test_commands import kdissect
from tests.conftest import ENCRYPTED, some_of

pytestmark = pytest.mark.slow

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
MUTUAL = next(str(path) for path in ENCRYPTED if path.stem == "librdkafka-1.3-mtls")
OLDER = next(str(path) for path in ENCRYPTED if path.stem == "java-1.2-resumed")


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("tls") / "tables")
    done = kdissect("ingest", MUTUAL, OLDER, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
@pytest.mark.parametrize("words", some_of([
    ("-f", "json"), ("--fields", "number,tls.version,tls.cipher,tls.sni,tls.principal,tls.resumed,tls.state"),
    ("-Y", 'tls.version == "TLS 1.3"'), ("-Y", "tls.principal contains alice && api == Fetch"),
    ("-Y", "tls.resumed == true"), ("-Y", "tls.state == decrypted", "--limit", "5"),
], ("-f", "json"), ("-Y", "tls.resumed == true")))  # fmt: skip
def test_tables_say_of_tls_what_the_captures_do(encrypted: str, words: tuple[str, ...]) -> None:
    found, wanted = kdissect("show", encrypted, *words), kdissect("show", OLDER, MUTUAL, *words)
    assert found.returncode == wanted.returncode == 0, found.stderr
    assert found.stdout.splitlines() == wanted.stdout.splitlines()
    assert wanted.stdout


@pytest.mark.long
def test_a_key_log_of_the_environment_is_not_for_tables(encrypted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDISSECT_KEYLOG", "/nowhere/keys.log")
    assert kdissect("show", encrypted, "--limit", "2").returncode == 0
    done = kdissect("show", encrypted, "--keylog", "/nowhere/other.log")
    assert done.returncode == 2
    assert b"--keylog" in done.stderr


@pytest.mark.long
def test_captures_with_a_key_log_are_not_replaced_without_it(tmp_path: Path) -> None:
    log, folder = tmp_path / "keys.log", str(tmp_path / "tables")
    log.write_bytes(b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\n")
    assert kdissect("ingest", MUTUAL, "--keylog", str(log), "--out", folder).returncode == 0
    done = kdissect("tables", "replace", folder, MUTUAL)
    assert done.returncode == 2
    assert b"which was not kept: give --keylog" in done.stderr


def test_a_key_log_that_is_not_there_is_one_plain_line(tmp_path: Path) -> None:
    done = kdissect("ingest", MUTUAL, "--keylog", str(tmp_path / "none"), "--out", str(tmp_path / "tables"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(b"none: no such file or directory")
