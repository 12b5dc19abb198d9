"""The page of a session: one address on this machine, one socket, and a token for both."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
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
#: The page loads nothing from elsewhere, is not cached, and sends no referrer.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
#: The port of the page, if no other program has it.
_PORT = 8770
#: Bytes that a page may send at once; its commands have a few dozen.
_LARGEST = 4096
_COMMANDS = ("start", "pause", "undo", "finish", "label")


class _Client:
    """One open page, and the messages that wait for it."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        # The participant's screen only shows the cue.
        self.controls = socket.query_params.get("view") != "participant"
        self.pending: dict[str, str] = {}
        self.wake = asyncio.Event()

    def send(self, kind: str, text: str) -> None:
        """Send this soon, in place of an older message of the same kind."""
        self.pending[kind] = text
        self.wake.set()

    async def run(self) -> None:
        """Send messages until the page is closed."""
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                await self.wake.wait()
                self.wake.clear()
                pending, self.pending = self.pending, {}
                for text in pending.values():
                    await self.socket.send_text(text)


class Hub:
    """All open pages."""

    def __init__(self, session: Session, about: dict[str, Any]) -> None:
        self._session, self._about = session, about
        self._clients: list[_Client] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state = json.dumps(session.message(), allow_nan=False)
        session.tell = self.tell

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to all pages, from the thread of the session."""
        text = json.dumps(message, allow_nan=False)
        if message["kind"] == "state":
            self._state = text
        if self._loop is not None:
            # The server may have stopped.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._spread, message["kind"], text)

    def _spread(self, kind: str, text: str) -> None:
        for client in self._clients:
            client.send(kind, text)

    async def serve(self, socket: WebSocket) -> None:
        """Talk to one page until it is closed."""
        self._loop = asyncio.get_running_loop()
        client = _Client(socket)
        sender = asyncio.create_task(client.run())
        self._clients.append(client)
        course = {"kind": "course", "course": list(self._session.view.course)}
        client.send("hello", json.dumps({"kind": "hello", **self._about}))
        client.send("course", json.dumps(course))
        client.send("state", self._state)
        if client.controls:
            self._session.do({"do": "back"})
        try:
            while True:
                text = await socket.receive_text()
                if client.controls:
                    self._heed(text)
        except (WebSocketDisconnect, KeyError):
            pass
        finally:
            sender.cancel()
            self._clients.remove(client)
            if not any(other.controls for other in self._clients):
                self._session.do({"do": "left"})

    def _heed(self, text: str) -> None:
        """Pass a command of a page to the session."""
        with suppress(ValueError, RecursionError):
            command = json.loads(text)
            # Only the server says that a page left or is back.
            if isinstance(command, dict) and command.get("do") in _COMMANDS:
                self._session.do(command)


def make_app(hub: Hub, token: str) -> Starlette:
    """The page and its socket, which need the token."""

    def is_known(given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), token.encode())

    async def page(request: Request) -> Response:
        if not is_known(request.query_params.get("token")):
            return PlainTextResponse(_FORBIDDEN, 403, _HEADERS)
        return HTMLResponse(live_page(), headers=_HEADERS)

    async def talk(socket: WebSocket) -> None:
        # A page may be closed before it is answered.
        with suppress(WebSocketDisconnect):
            if not is_known(socket.query_params.get("token")):
                await socket.send_denial_response(PlainTextResponse(_FORBIDDEN, 403, _HEADERS))
                return
            await socket.accept()
            await hub.serve(socket)

    return Starlette(routes=[Route("/", page), WebSocketRoute("/socket", talk)])


def _open_port() -> socket.socket:
    """A socket that only this machine can reach."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", _PORT))
        listener.listen()
    except OSError:
        # Another program has the port.
        listener.close()
        listener = socket.create_server(("127.0.0.1", 0))
    return listener


@contextmanager
def _signals_end(server: Any) -> Iterator[None]:
    """Let signals end the server and nothing else; uvicorn would raise them again."""
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
    """Whether a line of uvicorn's log is not about a socket without the token."""
    return "without completing handshake" not in record.getMessage()


def run_server(session: Session, about: dict[str, Any], started: Callable[[str], None]) -> None:
    """Serve the page until SIGINT or SIGTERM, with the session in a thread of its own."""
    listener, token = _open_port(), secrets.token_urlsafe(16)
    failed: list[BaseException] = []
    config = uvicorn.Config(
        make_app(Hub(session, about), token),
        log_level="error",
        ws="websockets-sansio",
        ws_max_size=_LARGEST,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    # uvicorn logs a refused handshake as an error.
    logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)

    def work() -> None:
        try:
            session.run()
        except BaseException as reason:
            failed.append(reason)
        finally:
            server.should_exit = True

    thread = threading.Thread(target=work, name="session")
    # Before the thread starts, since an interrupt would leave the thread behind.
    with _signals_end(server):
        try:
            thread.start()
            started(f"http://127.0.0.1:{listener.getsockname()[1]}/?token={token}")
            server.run(sockets=[listener])
        finally:
            session.stop()
            thread.join()
            listener.close()
            logging.getLogger("uvicorn.error").removeFilter(_is_no_refusal)
    if failed:
        raise failed[0]
