"""Shows the screen in a browser. Each page has a process of its own, which draws by Textual's driver for the web; a
websocket carries what it draws to the page, and keys, clicks and sizes back. The page's own parts, a terminal in
JavaScript and a font, are those of textual-serve; nothing comes from another host.

Invariants:
  * whatever lies outside the path of the token is answered with 403, the websocket too. The token is compared in
    constant time, is no argument or variable of a process, and there is no log of requests, nor of what is none.
  * a page that is closed ends its process, and a process that ends closes its page; if this process is gone, theirs
    end by themselves (`tui/run.py`).
"""

import asyncio
import contextlib
import hmac
import html
import json
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from aiohttp import WSMsgType, web

from dissector.core.text import clean, endpoint_name

LARGEST: Final = 1000
"""Columns and lines of a page at most: memory of a screen is proportional to their product."""
PATIENCE: Final = 5.0
"""Seconds that a process gets to end by itself."""
HEARTBEAT: Final = 15.0
"""Seconds after which a page that doesn't answer is gone: a laptop that was closed."""
REFUSED: Final = "403: the address lacks the token; open the whole one that kdissect printed\n"
_BEGINS: Final = b"__GANGLION__\n"
"""What Textual's driver writes before its first packet."""
_TYPED, _ABOUT = b"D", b"M"
"""Kinds of packets to and from it: what is typed or drawn, and facts as JSON. A packet is its kind, its size as a
big-endian int32, and its data."""


class MissingError(ImportError):
    """textual-serve is not installed."""


class WebServer:
    """Serves the screen that `command` draws with `variables` in its environment, to whoever knows the token."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], title: str) -> None:
        """Raises `MissingError`."""
        self._command, self._variables, self._title = command, variables, title
        self._token = secrets.token_urlsafe(24)
        self._pages: set[web.WebSocketResponse] = set()
        found = find_spec("textual_serve")
        if found is None or not found.submodule_search_locations:
            raise MissingError("textual-serve is not installed")
        self._parts = Path(found.submodule_search_locations[0]) / "static"

    def url(self, where: socket.socket) -> str:
        """Return what a user opens; by this machine's name if it serves on all of its addresses."""
        host, port = where.getsockname()[:2]
        host = socket.gethostname() if host in ("0.0.0.0", "::") else host
        return f"http://{endpoint_name(host, port)}/{self._token}/"

    def run(self, where: socket.socket) -> None:
        """Serve on a bound socket until the user interrupts."""
        logging.getLogger("aiohttp.server").disabled = True  # it quotes requests, which anyone may send, and tracebacks
        web.run_app(self.application(), sock=where, access_log=None, print=None, shutdown_timeout=PATIENCE)

    def application(self) -> web.Application:
        """Return the application: the page, its parts, its websocket."""

        async def with_token(request: web.Request, handler: Callable[[web.Request], Awaitable[Any]]) -> Any:
            given = request.path.removeprefix("/").partition("/")[0].encode("utf-8", "replace")
            if not hmac.compare_digest(given, self._token.encode()):
                raise web.HTTPForbidden(text=REFUSED)
            return await handler(request)

        application = web.Application(middlewares=[web.middleware(with_token)])
        application.router.add_get(f"/{self._token}/", self._page)
        application.router.add_get(f"/{self._token}/ws", self._session)
        application.router.add_static(f"/{self._token}/static", self._parts)
        application.on_shutdown.append(self._close_pages)
        return application

    async def _close_pages(self, _: web.Application) -> None:
        for each in list(self._pages):
            await each.close()

    async def _page(self, _: web.Request) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
            "font-src 'self' data:; img-src 'self' data:; connect-src 'self' ws: wss:; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        text = _PAGE.replace("NONCE", nonce).replace("TITLE", html.escape(clean(self._title)))
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def _session(self, request: web.Request) -> web.WebSocketResponse:
        """Run a process for a page until one of them ends."""
        page = web.WebSocketResponse(heartbeat=HEARTBEAT)
        await page.prepare(request)
        self._pages.add(page)
        size = {"COLUMNS": _cells(request.query.get("width")), "ROWS": _cells(request.query.get("height"))}
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env=os.environ | self._variables | {name: str(cells) for name, cells in size.items() if cells},
        )  # fmt: skip
        drawing = asyncio.create_task(_draw(process, page))
        try:
            async for message in page:
                if message.type is WSMsgType.TEXT:
                    await _hand_on(message.data, process, page)
        except ConnectionError:
            pass  # the process has ended
        finally:
            self._pages.discard(page)
            drawing.cancel()
            await _end(process)
            await page.close()
        return page


async def _draw(process: asyncio.subprocess.Process, page: web.WebSocketResponse) -> None:
    """Send what a process draws to its page, which is closed when it ends."""
    assert process.stdout is not None
    with contextlib.suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        await process.stdout.readuntil(_BEGINS)
        while True:
            head = await process.stdout.readexactly(5)
            data = await process.stdout.readexactly(int.from_bytes(head[1:], "big"))
            if head[:1] == _TYPED:
                await page.send_bytes(data)
            elif head[:1] == _ABOUT and json.loads(data).get("type") == "exit":
                break
    await page.close()


async def _hand_on(text: str, process: asyncio.subprocess.Process, page: web.WebSocketResponse) -> None:
    """Hand what a page says on to its process. What no page of ours would say is dropped. Raises `ConnectionError` if
    the process has ended."""
    assert process.stdin is not None
    try:
        kind, value = (*json.loads(text), None)[:2]
    except (ValueError, TypeError):
        return
    if kind == "stdin" and isinstance(value, str):
        process.stdin.write(_packet(_TYPED, value.encode("utf-8", "replace")))
    elif kind == "resize" and isinstance(value, dict):
        size = {name: _cells(value.get(name)) for name in ("width", "height")}
        if all(size.values()):
            process.stdin.write(_packet(_ABOUT, json.dumps({"type": "resize", **size}).encode()))
    elif kind in ("focus", "blur"):
        process.stdin.write(_packet(_ABOUT, json.dumps({"type": kind}).encode()))
    elif kind == "ping":
        await page.send_str(json.dumps(["pong", value]))
    await process.stdin.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process as a terminal that hangs up would, and wait for it."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _packet(kind: bytes, data: bytes) -> bytes:
    return kind + len(data).to_bytes(4, "big") + data


def _cells(value: object) -> int | None:
    """Return a width or a height that a page gives; None for what is none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value[:6])
    return min(value, LARGEST) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>TITLE</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="static/css/xterm.css">
<style>
@font-face {
  font-family: "Roboto Mono"; font-weight: 100 700; src: url("static/fonts/RobotoMono-VariableFont_wght.ttf")
}
body { margin: 0; background: #101418; color: #e6e6e6; font: 16px "Roboto Mono", monospace; overflow: hidden }
#terminal { width: 100vw; height: 100vh }
#ended { display: none; position: fixed; inset: 0; place-items: center; background: #101418cc; z-index: 10 }
body.-closed #ended { display: grid }
#ended a { color: #7fc8ff }
</style>
<script nonce="NONCE">
addEventListener("DOMContentLoaded", async () => {
  const url = new URL("ws", location.href)
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:"
  url.search = url.hash = ""
  document.getElementById("terminal").dataset.sessionWebsocketUrl = url.href
  await document.fonts.load('15px "Roboto Mono"').catch(() => {})  // the terminal measures a character once
  const script = document.createElement("script")
  script.src = "static/js/textual.js"
  script.onload = () => { if (document.readyState === "complete") window.onload() }
  document.body.append(script)
})
</script>
</head>
<body>
<div id="terminal" class="textual-terminal" data-font-size="15"></div>
<div id="ended"><p>kdissect has ended. <a href="">Open it again</a></p></div>
</body>
</html>
"""
