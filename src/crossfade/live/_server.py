"""The page of a session: one address on this machine, one socket, and a token for both.

The session runs in a thread of its own. Messages to the page are the latest of their kind: a page
that is slow, or asleep, misses pictures and holds up nothing.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from crossfade.live._page import live_page
from crossfade.live._session import Session

_FORBIDDEN = (
    "This page needs the token that crossfade live printed with its address. Copy the whole "
    "address, with ?token=...\n"
)
#: Nothing is loaded from elsewhere, kept, or told to others.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
#: Bytes that a page may send at once; its commands have a few dozen.
_LARGEST = 4096
_LOCAL = ("127.0.0.1", "localhost", "::1")


class _Client:
    """One open page, and what it has not been sent yet."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        # The participant's own screen never controls.
        self.may_control = socket.query_params.get("view") != "participant"
        self.pending: dict[str, str] = {}
        self.wake = asyncio.Event()

    def send(self, kind: str, text: str) -> None:
        """Send this soon, instead of an older message of its kind."""
        self.pending[kind] = text
        self.wake.set()

    async def run(self) -> None:
        """Send what there is, until the page is closed."""
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                await self.wake.wait()
                self.wake.clear()
                pending, self.pending = self.pending, {}
                for text in pending.values():
                    await self.socket.send_text(text)


class Hub:
    """All open pages; the first controls, the others watch, and may take over when it is closed."""

    def __init__(self, session: Session, about: dict[str, Any]) -> None:
        self.session, self.about = session, about
        self.clients: list[_Client] = []
        self.controller: _Client | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        session.tell = self.tell

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to all pages, from the thread of the session."""
        if self.loop is None or not self.clients:
            return
        text = json.dumps(message, allow_nan=False)
        # The server may have stopped by now.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._spread, message["kind"], text)

    def _spread(self, kind: str, text: str) -> None:
        for client in self.clients:
            client.send(kind, text)

    def _roles(self) -> None:
        """Tell each page whether it controls, and how many there are."""
        for client in self.clients:
            role = {
                "kind": "role",
                "controls": client is self.controller,
                "controlled": self.controller is not None,
            }
            client.send("role", json.dumps(role))

    async def serve(self, socket: WebSocket) -> None:
        """Talk to one page until it is closed."""
        self.loop = asyncio.get_running_loop()
        client = _Client(socket)
        client.send("hello", json.dumps({"kind": "hello", **self.about}))
        self.clients.append(client)
        self._take_control(client)
        self._roles()
        self.session.do({"do": "hello"})
        sender = asyncio.create_task(client.run())
        try:
            while True:
                self._heed(client, await socket.receive_text())
        except (WebSocketDisconnect, KeyError):
            pass
        finally:
            sender.cancel()
            self.clients.remove(client)
            if client is self.controller:
                self.controller = None
                self.session.do({"do": "left"})
                self._roles()

    def _take_control(self, client: _Client) -> None:
        """Let a page control, if no other does."""
        if self.controller is None and client.may_control:
            self.controller = client
            self.session.do({"do": "back"})

    def _heed(self, client: _Client, text: str) -> None:
        """Pass a command on, if this page controls, or let it take control."""
        if len(text) > _LARGEST:
            return
        try:
            command = json.loads(text)
        except (ValueError, RecursionError):
            return
        deed = command.get("do") if isinstance(command, dict) else None
        if deed == "control":
            self._take_control(client)
            self._roles()
        # What the server itself says of pages is not for pages to say.
        elif client is self.controller and deed in _COMMANDS:
            self.session.do(command)


_COMMANDS = ("start", "pause", "undo", "finish", "label")


def make_app(hub: Hub, token: str) -> Starlette:
    """The page and its socket, for those who have the token."""

    def is_known(given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), token.encode())

    async def page(request: Request) -> Response:
        if not is_known(request.query_params.get("token")):
            return PlainTextResponse(_FORBIDDEN, 403, _HEADERS)
        return HTMLResponse(live_page(), headers=_HEADERS)

    async def no_socket(request: Request) -> Response:
        if not is_known(request.query_params.get("token")):
            return PlainTextResponse(_FORBIDDEN, 403, _HEADERS)
        return PlainTextResponse("The page talks here, by WebSocket.\n", 426, _HEADERS)

    async def talk(socket: WebSocket) -> None:
        if not is_known(socket.query_params.get("token")):
            await socket.send_denial_response(PlainTextResponse(_FORBIDDEN, 403, _HEADERS))
            return
        await socket.accept()
        await hub.serve(socket)

    routes = [Route("/", page), Route("/socket", no_socket), WebSocketRoute("/socket", talk)]
    return Starlette(routes=routes)


def open_port(host: str, port: int) -> socket.socket:
    """A socket that listens; says what to do if another program has the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as reason:
        listener.close()
        if isinstance(reason, socket.gaierror) or reason.errno == errno.EADDRNOTAVAIL:
            raise OSError(
                f"{host} is no address of this machine: {reason.strerror or reason}. Give one of "
                "its own with --host, or leave --host out to keep the page on this machine."
            ) from reason
        raise OSError(
            f"Port {port} of {host} cannot be used: {reason.strerror or reason}. Choose another "
            "with --port; --port 0 takes any that is free."
        ) from reason
    return listener


def address_of(listener: socket.socket, token: str) -> str:
    """The address of the page, with its token."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={quote(token)}"


def reach_of(host: str) -> str | None:
    """What it means to listen on another interface than this machine's own."""
    if host in _LOCAL:
        return None
    return (
        f"The page listens on {host}: whoever reaches this machine over the network and has the "
        "address with its token can watch and control the session, and what is sent is not "
        "encrypted. Leave --host out to keep it on this machine."
    )


@contextmanager
def _signals_end(server: Any) -> Iterator[None]:
    """Let a signal end the server alone, before it runs, too; uvicorn raises it again later."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        server.should_exit = True

    before = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's log is about something else than a socket without the token."""
    return "without completing handshake" not in record.getMessage()


def run_server(
    session: Session,
    listener: socket.socket,
    token: str,
    about: dict[str, Any],
    started: Callable[[], None],
) -> None:
    """Serve the page until SIGINT or SIGTERM, with the session in a thread of its own."""
    import uvicorn

    hub = Hub(session, about)
    failed: list[BaseException] = []
    config = uvicorn.Config(
        make_app(hub, token),
        log_level="error",
        ws="websockets-sansio",
        ws_max_size=_LARGEST,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    # uvicorn calls a refused handshake an incomplete one.
    logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)

    def work() -> None:
        try:
            session.run()
        except BaseException as reason:
            failed.append(reason)
        finally:
            server.should_exit = True

    thread = threading.Thread(target=work, name="session")
    # From the first moment on, or an interrupt would leave the thread behind.
    with _signals_end(server):
        try:
            thread.start()
            started()
            server.run(sockets=[listener])
        finally:
            session.stop()
            thread.join()
            listener.close()
            logging.getLogger("uvicorn.error").removeFilter(_is_no_refusal)
    if failed:
        raise failed[0]
