"""The screen in a browser: served to who has the token, with a process for each page."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.emulated import Emulated
from tests.tui.main_driver import JAVA

aiohttp = pytest.importorskip("aiohttp", reason="NOT TESTED with aiohttp: it is not installed")
pytest.importorskip("textual_serve", reason="NOT TESTED with textual_serve: it is not installed")

PATIENCE: Final = 60.0
SIZE: Final = (100, 30)


@asynccontextmanager
async def served(*words: str) -> AsyncIterator[tuple[str, subprocess.Popen[str]]]:
    """The address that `kdissect --web` prints, and its process."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-m", "dissector", *words], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        said = ""
        while "open http" not in said:
            line = await asyncio.to_thread(process.stderr.readline)
            assert line, said
            said += line
        yield re.search(r"http://\S+/", said)[0], process
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


async def shown(page: Any, screen: Emulated, words: str) -> None:
    """Read what is drawn until the screen has these words."""
    async with asyncio.timeout(PATIENCE):
        while words not in "\n".join(screen.lines):
            message = await page.receive()
            assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), (message, screen.lines)
            if message.type is aiohttp.WSMsgType.BINARY:
                screen.feed(message.data)


def children(pid: int) -> list[list[str]]:
    """The arguments of the processes of a process."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{each}/cmdline").read_text().split("\0") for each in found]


async def ended(process: "subprocess.Popen[str]") -> None:
    """Wait until a process has no processes of its own any more."""
    async with asyncio.timeout(PATIENCE):
        while children(process.pid):
            await asyncio.sleep(0.05)


@pytest.mark.long
@pytest.mark.slow
async def test_a_page_shows_the_capture_takes_keys_and_sizes_and_ends_with_its_process() -> None:
    async with served(JAVA, "--web", "-Y", "api == Produce") as (url, process), aiohttp.ClientSession() as session:
        assert urlsplit(url).hostname == "127.0.0.1"
        page = await session.get(url)
        text = await page.text()
        assert page.status == 200
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert re.findall(r"https?://", text) == []  # nothing comes from another host
        for part in re.findall(r'"(static/[^"]+)"', text):
            assert (await session.get(url + part)).status == 200, part
        async with session.ws_connect(f"{url}ws?width={SIZE[0]}&height={SIZE[1]}") as socket:
            screen = Emulated(*SIZE)
            await shown(socket, screen, "Produce")
            assert "ApiVersions" not in "\n".join(screen.lines)
            [words] = children(process.pid)
            assert urlsplit(url).path.strip("/") not in " ".join(words)
            for hostile in ("no json", "[]", "7", '["resize", {"width": "x"}]', '["stdin", 7]', '["?"]', "{}"):
                await socket.send_str(hostile)
            await socket.send_str(json.dumps(["stdin", "?"]))
            await shown(socket, screen, "Next error")
            await socket.send_str(json.dumps(["stdin", "q"]))
            await socket.send_str(json.dumps(["resize", {"width": 132, "height": 40}]))
            wider = Emulated(132, 40)
            await shown(socket, wider, "100%")
            await socket.send_str(json.dumps(["stdin", "q"]))
            async with asyncio.timeout(PATIENCE):
                while (await socket.receive()).type not in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED):
                    pass
        await ended(process)


@pytest.mark.long
@pytest.mark.slow
async def test_a_page_that_is_closed_ends_its_process() -> None:
    async with served(JAVA, "--web") as (url, process), aiohttp.ClientSession() as session:
        async with session.ws_connect(f"{url}ws") as socket:
            await shown(socket, Emulated(80, 24), "ApiVersions")
            assert len(children(process.pid)) == 1
        await ended(process)


@pytest.mark.long
@pytest.mark.slow
async def test_without_the_token_nothing_is_served() -> None:
    async with served("open", JAVA, "--web", "0") as (url, process), aiohttp.ClientSession() as session:
        token = urlsplit(url).path.strip("/")
        base = url.removesuffix(f"{token}/")
        near = (token[:-1], token + "x", token.swapcase(), "é", "")
        for path in ("", "ws", "static/js/textual.js", *(f"{each}/{part}" for each in near for part in ("", "ws"))):
            answer = await session.get(base + path)
            assert (answer.status, "token" in await answer.text()) == (403, True), path
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"{base}ws?width=80&height=24&token={token}")
        assert refused.value.status == 403
        assert (await session.get(f"{url}static/../../server.py")).status in (403, 404)
        for line in ("OPTIONS * HTTP/1.1", "CONNECT a.example:80 HTTP/1.1", "GET http://a.example HTTP/1.1"):
            assert await answer_to(url, line) == "HTTP/1.1 403 Forbidden", line
        for line in (
            "GET ?x HTTP/1.1",
            "\x16\x03\x01",
            "GET / HTTP/1.1\r\n\x1b]0;title\x07",
        ):  # said to nobody (`served`)
            assert "400 Bad Request" in await answer_to(url, line), line
        assert children(process.pid) == []


async def answer_to(url: str, line: str) -> str:
    """The first line of the answer to a request that begins with a line."""
    reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
    writer.write(f"{line}\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.readline()
    writer.close()
    return answer.decode().strip()


@pytest.mark.long
@pytest.mark.slow
async def test_a_page_is_titled_by_any_name_of_a_file(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\x1b]0;<b>.pcapng")
    (tmp_path / name).write_bytes(Path(JAVA).read_bytes())
    async with served(str(tmp_path / name), "--web") as (url, _), aiohttp.ClientSession() as session:
        text = await (await session.get(url)).text()
    assert "<title>\\u{dcff}␛]0;&lt;b&gt;.pcapng – kdissect</title>" in text


@pytest.mark.long
@pytest.mark.slow
async def test_another_address_is_warned_of() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "dissector", "open", JAVA, "--web", "--listen", "0.0.0.0"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert "other machines can reach it" in await asyncio.to_thread(process.stderr.readline)
        assert "0.0.0.0" not in await asyncio.to_thread(process.stderr.readline)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
