"""HTTP requests that have one time limit together, however slowly their answers come.

A timeout of a socket bounds each wait, and a server that sends a byte now and then, a header after the other or interim
answers for ever never lets one end. Here a timer shuts the connections down.

Invariants:
  * no request lasts longer than the limit, but for the resolver's part of it;
  * only http and https are spoken; with `keeps_host` no other host is asked.
"""

import base64
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPMessage, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR, socket
from threading import Timer
from typing import IO, Any, Final, Self
from urllib.parse import SplitResult, unquote, urlsplit

from dissector.core.text import clean

_SCHEMES: Final = ("http", "https")


def host_and_login(parts: SplitResult) -> tuple[str, str]:
    """Return the host and port of an address, and the value of `Authorization` for the user and password in it; empty
    without them. Raises `ValueError` for an address that is none of HTTP."""
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError("not an HTTP or HTTPS URL")
    host = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
    named = host if parts.port is None else f"{host}:{parts.port}"
    if parts.username is None:
        return named, ""
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return named, "Basic " + base64.b64encode(login.encode()).decode()


class Deadline:
    """Opens requests until the time is up."""

    def __init__(self, seconds: float, *, keeps_host: bool = False) -> None:
        self._end = time.monotonic() + seconds
        self._sockets: list[socket] = []
        self._timer = Timer(seconds, self._shut_down)
        self._timer.daemon = True
        self._director = urllib.request.OpenerDirector()
        for each in (
            urllib.request.ProxyHandler(), _Connections(self._watched), _Redirects(keeps_host=keeps_host),
            urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor(),
        ):  # fmt: skip
            self._director.add_handler(each)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for each in self._sockets:
            each.close()

    @property
    def is_over(self) -> bool:
        """Whether the time is up: an error may be its end, and what was read may lack its own."""
        return time.monotonic() >= self._end

    def reason(self, error: Exception) -> str:
        """Return in words why a request failed."""
        if self.is_over:
            return "timed out"
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        return clean(str(reason)).lower() or type(error).__name__

    def open(self, request: urllib.request.Request) -> HTTPResponse:
        """Return the answer to a request. Raises `OSError`, of which `HTTPError` is a kind, and `HTTPException`."""
        answer: HTTPResponse = self._director.open(request, timeout=max(self._end - time.monotonic(), 0.001))
        return answer

    def _watched(self, connect: Callable[..., socket], *where: Any, **how: Any) -> socket:
        made = connect(*where, **how)
        self._sockets.append(made.dup())  # TLS takes the descriptor of the other one away
        if self.is_over:
            self._shut_down()
        return made

    def _shut_down(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)


class _Connections(urllib.request.AbstractHTTPHandler):
    """Makes connections that are watched."""

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def __init__(self, watched: Callable[..., socket]) -> None:
        super().__init__()
        self._watched = watched

    def http_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(self._made, HTTPConnection), request)

    def https_open(self, request: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(self._made, HTTPSConnection), request)

    def _made(self, kind: type[HTTPConnection], host: str, **settings: Any) -> HTTPConnection:
        made = kind(host, **settings)
        attributes = vars(made)  # the standard library gives this one no type
        attributes["_create_connection"] = partial(self._watched, attributes["_create_connection"])
        return made


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, *, keeps_host: bool) -> None:
        self._keeps_host = keeps_host

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        to = urlsplit(newurl)
        if to.scheme not in _SCHEMES or (self._keeps_host and to.hostname != urlsplit(req.full_url).hostname):
            where = f"{to.scheme}://{to.hostname or ''}"
            raise urllib.error.HTTPError(req.full_url, code, f"and redirects to {where}", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
