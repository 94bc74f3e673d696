"""Captures of TLS in tables: what `show` decrypts, and no secret anywhere."""

import pickle
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.capture_session.tally import OTHER_CONNECTIONS
from dissector.cli.errors import UsageError
from dissector.cli.table_upkeep import replace
from dissector.core.finding import Finding
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.tls.key_log import KeyLog
from tests.conftest import ENCRYPTED, VARIED_TLS, some_of
from tests.pipeline.contents import rows_that_count
from tests.pipeline.without_spark import differences, problems, shown, shown_by_tables, tables

SECRETS_BLOCK = 10
recordings = pytest.mark.parametrize("path", some_of(ENCRYPTED, *VARIED_TLS), ids=lambda path: path.stem)


def blocks(data: bytes) -> list[bytes]:
    """The blocks of a pcapng file, little-endian."""
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        found.append(data[at : at + size])
        at += size
    return found


def parted(path: Path, folder: Path) -> tuple[Path, Path, list[bytes]]:
    """A copy without secrets, a key log with them, and its lines."""
    kept, lines = b"", []
    for block in blocks(path.read_bytes()):
        if int.from_bytes(block[:4], "little") == SECRETS_BLOCK:
            size = int.from_bytes(block[12:16], "little")
            lines += block[16 : 16 + size].splitlines()
        else:
            kept += block
    bare, log = folder / f"{path.stem}.pcapng", folder / "keys.log"
    bare.write_bytes(kept)
    log.write_bytes(b"\n".join(lines) + b"\n")
    assert lines
    return bare, log, lines


def problems_of(path: Path, *key_logs: Path) -> list[str]:
    with Capture([str(path)], key_logs=[str(each) for each in key_logs]) as capture:
        for _ in capture.read():
            pass
        return messages(capture.problems)


def messages(found: list[Finding]) -> list[str]:
    """Of connections that are not shown, the screen and `show` tell apart from problems."""
    return sorted(each.message for each in found if each.code != OTHER_CONNECTIONS)


@pytest.mark.long
@pytest.mark.slow
@recordings
@pytest.mark.parametrize("parts", some_of([1, 3], 3))
def test_tables_of_an_encrypted_capture_are_what_show_prints(path: Path, parts: int) -> None:
    made = tables([path], parts=parts)
    assert not list(differences(shown([path]), shown_by_tables(made)))
    assert messages(problems(made)) == problems_of(path)
    assert {row["kind"] for row in made["exchanges"]} >= {"exchange"}


@pytest.mark.long
@pytest.mark.slow
@recordings
@pytest.mark.parametrize("of", some_of([0, 1, 2], 1))
def test_a_key_log_beside_a_capture_decrypts_what_it_has(path: Path, of: int, tmp_path: Path) -> None:
    """None of its lines, every second one, and all of them."""
    bare, log, lines = parted(path, tmp_path)
    log.write_bytes(b"".join(line + b"\n" for line in lines[: len(lines) * of // 2]))
    made = tables([bare], parts=3, key_logs=[str(log)])
    assert not list(differences(shown([bare], [str(log)]), shown_by_tables(made)))
    assert messages(problems(made)) == problems_of(bare, log)


@pytest.mark.long
@pytest.mark.slow
def test_no_secret_is_in_a_table_or_in_a_text_of_what_carries_them(tmp_path: Path) -> None:
    path = next(each for each in ENCRYPTED if each.stem == "java-1.3")
    bare, log, lines = parted(path, tmp_path)
    keys = KeyLog()
    keys.add_lines(lines)
    secrets = {secret for random in keys.client_randoms for secret in keys.secrets(random).values()}
    held = TlsSecrets([str(log)])
    assert all(secret.hex().encode() in held.text for secret in secrets)
    out = tmp_path / "tables"
    result = ingest_here([str(bare)], str(out), WriteOptions(key_logs=True), key_logs=[str(log)])
    assert result.counts["exchanges"] > 10
    assert all(row["kind"] == "exchange" for row in rows_that_count(out)["exchanges"])
    texts = [repr(held).encode(), repr(result).encode(), repr(rows_that_count(out)).encode()]
    texts += [each.read_bytes() for each in out.rglob("*") if each.is_file()]
    for secret in secrets:
        for form in (secret, secret.hex().encode(), secret.hex().upper().encode()):
            assert not any(form in text for text in texts)
    with pytest.raises(TypeError):
        pickle.dumps(held)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_what_was_ingested_before_its_secrets_came_is_replaced_with_them(tmp_path: Path) -> None:
    bare, log, lines = parted(next(path for path in ENCRYPTED if path.stem == "java-1.3"), tmp_path)
    early, out = tmp_path / "early.log", tmp_path / "tables"
    early.write_bytes(lines[0] + b"\n")
    ingest_here([str(bare)], str(out), WriteOptions(key_logs=True), key_logs=[str(early)])
    before = len(rows_that_count(out)["exchanges"])
    assert replace(str(out), [bare.stem], [str(log)]) == 0
    assert before < 5 < len(rows_that_count(out)["exchanges"])
    with pytest.raises(UsageError, match="ingested with a key log, which was not kept: give --keylog"):
        replace(str(out), [bare.stem])


@pytest.mark.long
@pytest.mark.slow
def test_a_capture_is_ingested_again_once_there_is_a_key_log(tmp_path: Path) -> None:
    path = next(each for each in ENCRYPTED if each.stem == "java-1.3")
    bare, log, _ = parted(path, tmp_path)
    out = str(tmp_path / "tables")
    ingest_here([str(bare)], out, WriteOptions())
    assert not rows_that_count(Path(out))["exchanges"]
    assert ingest_here([str(bare)], out, WriteOptions(key_logs=True), key_logs=[str(log)]).read == 1
    assert {row["kind"] for row in rows_that_count(Path(out))["exchanges"]} == {"exchange"}
    assert ingest_here([str(bare)], out, WriteOptions(key_logs=True), key_logs=[str(log)]).already_ingested
