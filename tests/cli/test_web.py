"""`kdissect FILE --web`: what it takes, and what it refuses in one line."""

import sys

import pytest
from typer.testing import CliRunner

from dissector.cli.errors import UsageError
from dissector.cli.every_command import app
from dissector.cli.options import CaptureOptions
from dissector.cli.web import show_in_browser
from tests.cli.test_commands import JAVA, kdissect
from tests.conftest import PCAPS


def test_without_the_library_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "dissector.cli.web_server", raising=False)
    with pytest.raises(UsageError, match=r"--web needs textual-serve: .*kafka-dissector\[web\]"):
        show_in_browser([JAVA], 0, None, None, CaptureOptions())


def test_standard_input_has_no_second_reader() -> None:
    with pytest.raises(UsageError, match="--web can't show standard input"):
        show_in_browser(["-"], 0, None, None, CaptureOptions())


def test_options_reach_a_page_as_they_were_given() -> None:
    options = CaptureOptions(port=[9092, 19092], decode_as=["tcp.port==1,none"], show_secrets=True, keylog=["a b"])
    assert options.arguments == [
        "--port=9092", "--port=19092", "--decode-as=tcp.port==1,none", "--show-secrets", "--keylog=a b",
    ]  # fmt: skip
    assert CaptureOptions().arguments == []


@pytest.mark.parametrize(
    ("words", "port"),
    [
        ([JAVA, "--web"], 0), ([JAVA, "--web", "8080"], 8080), (["--web=8080", JAVA], 8080), (["--web", JAVA], 0),
        (["--web", "8080", "--", JAVA], 8080), (["--web", "--", JAVA], 0), (["--", JAVA], None),
    ],
)  # fmt: skip
def test_the_port_may_be_left_out(words: list[str], port: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[object] = []
    monkeypatch.setattr("dissector.cli.web.show_in_browser", lambda files, web, *_: taken.extend((files, web)) or 0)
    assert CliRunner().invoke(app, ["open", *words]).exit_code == 0
    assert taken == ([] if port is None else [[JAVA], port])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([JAVA, "--listen", "127.0.0.1"], "--listen needs --web"),
        ([str(PCAPS / "nothing.pcapng"), "--web"], "nothing.pcapng: no such file"),
        ([JAVA, "--web", "-Y", "api =="], "-Y: "),
        ([JAVA, "--web", "--listen", "no.such.host.invalid"], "--web no.such.host.invalid:0: "),
    ],
)
def test_what_cant_be_served_is_one_line(words: list[str], complaint: str) -> None:
    pytest.importorskip("textual_serve", reason="NOT TESTED with textual_serve: it is not installed")
    done = kdissect("open", *words)
    assert done.returncode == 2
    [line] = [each for each in done.stderr.decode().splitlines() if each.startswith("kdissect: ")]
    assert complaint in line
    assert b"Traceback" not in done.stderr
