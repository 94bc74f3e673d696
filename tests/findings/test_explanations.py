"""Every code that the program emits is explained, in words that can be read."""

import re
from pathlib import Path

import pytest

import dissector
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.findings.registry import CODES, explain
from dissector.index.exchange_table import KIND_NAMES
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS

MEANT = re.compile(r'Explanation\(\s*"([a-z0-9-]+)",')
SOURCES = sorted(Path(dissector.__file__).parent.rglob("*.py"))
EMITTED = re.compile(r"""(?<!message)(?:Finding|_finding|_end)\(\s*"([a-z0-9-]+)",""")


def emitted() -> set[str]:
    """Codes that stand in the source where a finding is made; those of rules, and of rows named after their kind."""
    in_source = {code for path in SOURCES for code in EMITTED.findall(path.read_text())}
    return in_source | {ERROR_RESPONSE} | {"gap", "unparsed", "tls"}


@pytest.mark.long
def test_every_code_is_explained_and_every_explanation_is_of_a_code() -> None:
    assert {"gap", "unparsed", "tls"} <= set(KIND_NAMES)
    assert len(emitted()) > 30
    finders = set(CODES) - emitted()
    assert emitted() <= set(CODES)
    registered = (Path(dissector.__file__).parent / "findings").rglob("*.py")
    explained = {code for path in registered for code in MEANT.findall(path.read_text())}
    assert explained == set(CODES)
    assert finders <= explained


@cases("code", CODES)
def test_words_are_whole_sentences(code: str) -> None:
    found = explain(code)
    assert found is not None
    assert found.code == code
    assert not found.title.endswith(".")
    for words in (found.what, found.why, found.what_to_do):
        assert words[0].isupper()
        assert words.endswith((".", ")."))
        assert "  " not in words


def test_what_is_no_code_has_no_explanation() -> None:
    assert explain("tiny") is None


def test_the_command_explains_a_finding() -> None:
    done = kdissect("explain", "tiny-batches")
    text = done.stdout.decode()
    assert done.returncode == 0
    assert text.startswith("Many tiny batches\n  tiny-batches, note\n")
    assert "linger.ms" in text


def test_the_command_lists_all_and_knows_what_is_near() -> None:
    listed = kdissect("explain", "findings").stdout.decode()
    assert [code for code in CODES if code not in listed] == []
    done = kdissect("explain", "tiny-batch")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith("kdissect: nothing is called 'tiny-batch'; did you mean tiny-batches")


@pytest.mark.long
@cases(
    ("options", "expected"),
    [
        (("--format", "json"), '"code":"sequence-gap","severity":"warning","path":"request.body.topic_data[0]'),
        (("--format", "tree"), "! warning: begins with sequence number 5, expected 2 (sequence-gap)"),
        (("--format", "text"), "OUT_OF_ORDER_SEQUENCE_NUMBER [sequence-gap] · counted[0]"),
        (("--fields", "number,findings"), "10\terror-response,sequence-gap"),
    ],
)
def test_every_form_shows_what_was_found(options: tuple[str, ...], expected: str) -> None:
    assert expected in kdissect("show", str(PCAPS / "trouble-sequence-gap.pcapng"), *options).stdout.decode()


def test_a_pipe_shows_it_too() -> None:
    data = (PCAPS / "trouble-sequence-gap.pcapng").read_bytes()
    assert b"[sequence-gap]" in kdissect("show", "-", data=data).stdout
