"""What the program writes to a terminal has no control byte of the wire, whatever screen shows it.

The program runs in this process with a driver that keeps what it would write: all of it is then read strictly, as
ECMA-48 has it. So nothing waits for a clock. That what a driver is given reaches a pty: `test_terminal.py`.
"""

import json
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot

from dissector.capture_session import Capture
from dissector.protocol.codec.writer import write
from dissector.protocol.records.from_json import batch_bytes
from dissector.records.values.schemas import opener_with
from tests.terminal import Output
from tests.traffic import Turn, capture_of, conversation, request, response
from tests.tui.main_driver import Screen
from tui.app import KDissectApp
from tui.screens.main_screen import MainScreen

EVIL = "a\x1b]0;gone\x07\x1b[2J\x9b31mz\u202e[/b]"
"""A title, an erased screen, a color by a C1 byte, text from right to left, markup."""
SEEN = "␛]0;gone"
"""What is shown instead."""


class Kept(HeadlessDriver):
    """Keeps what is written."""

    written = ""

    @property
    def is_headless(self) -> bool:
        return False

    def write(self, data: str) -> None:
        Kept.written += data


def avro(folder: Path) -> bytes:
    schema = {"type": "record", "name": "R", "fields": [{"name": "order", "type": "string"}]}
    (folder / "7.avsc").write_text(json.dumps(schema))
    out = (folder / "value").open("w+b")
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"order": EVIL})
    out.seek(0)
    return b"\0" + struct.pack(">I", 7) + out.read()


def protobuf(folder: Path) -> bytes:
    (folder / "8.proto").write_text("syntax = 'proto3'; message P { string order = 1; }")
    text = EVIL.encode()
    return b"\0" + struct.pack(">I", 8) + b"\0" + b"\x0a" + bytes([len(text)]) + text


def hostile(folder: Path) -> list[Any]:
    """Records with hostile words as JSON, Avro, Protobuf, text, keys and headers."""
    values = [json.dumps({EVIL: EVIL}).encode(), json.dumps({"order": EVIL}, ensure_ascii=False).encode(),
              avro(folder), protobuf(folder), EVIL.encode()]  # fmt: skip
    header = {"key": EVIL, "value": EVIL.encode().hex()}
    return [
        {"offset": at, "timestamp": 1_700_000_000_000, "key": EVIL.encode().hex(), "value": value.hex(),
         "headers": [header]} for at, value in enumerate(values)
    ]  # fmt: skip


async def driven(capture: Capture, drive: Callable[[Screen], Awaitable[None]]) -> str:
    """Return what the program writes while it is driven."""
    app = KDissectApp(MainScreen(capture))
    app.driver_class = Kept
    failed: list[BaseException] = []

    async def pilot(pilot: Pilot[Any]) -> None:
        try:
            screen = Screen(pilot)
            await screen.settle()
            await drive(screen)
        except BaseException as error:
            failed.append(error)
        app.exit()

    Kept.written = ""
    await app.run_async(size=(120, 40), auto_pilot=pilot)
    if failed:
        raise failed[0]
    return Kept.written


@pytest.mark.long
async def test_no_control_byte_of_the_wire_is_written(tmp_path: Path) -> None:
    topic = {"name": EVIL, "partition_data": [{"index": 0, "records": batch_bytes({"records": hostile(tmp_path)})}]}
    body = write("ProduceRequest", 3, {"acks": 1, "timeout_ms": 9, "transactional_id": EVIL, "topic_data": [topic]})
    produce = request(1, api_key=0, version=3, client_id=EVIL.encode(), body=body)
    turns = [Turn(True, request(0)), Turn(False, response(0)), Turn(True, produce)]
    path = capture_of(tmp_path, conversation(turns))
    seen: dict[str, bool] = {}

    async def drive(screen: Screen) -> None:
        async def look(name: str, *keys: str) -> None:
            await screen.press(*keys)
            seen[name] = SEEN in screen.lines()

        await look("list", "G")
        for name, keys in (("facts", "W"), ("text", "V"), ("graph", "I"), ("sequence", "D"), ("overview", "o")):
            await look(name, keys)
            await screen.press("escape")
        await look("saved filters", "B")
        await screen.press("escape")
        await look("command", "colon", *"filter")
        await screen.press("escape")
        for at in range(5):
            await look(f"record {at}", "R", str(at + 1), "G", "tab")
            await screen.press("b", "escape", "escape")

    with Capture([path], opener=opener_with(str(tmp_path))) as capture:
        written = await driven(capture, drive)
    shown = Output.of(written.encode("utf-8", "surrogatepass"))
    assert SEEN in shown.text
    assert not [each for each in shown.sequences if "gone" in each]
    assert {name for name, found in seen.items() if not found} == {"graph"}, "it has no words of the wire"
