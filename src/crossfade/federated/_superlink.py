"""An address in, Flower's SuperLink as a process out, and our part in a run on it."""

from __future__ import annotations

import io
import os
import secrets
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from crossfade.federated._agreement import FederationError

_POLL = 0.2
# A run of Flower has an app bundle, which a SuperNode would fetch and run. Sites of Crossfade run
# their own installed code and never fetch it, so that this one holds no code.
_BUNDLE = """
[project]
name = "crossfade-federation"
version = "1.0.0"
description = "One secure sum of directions"
license = "BSD-3-Clause"

[tool.flwr.app]
publisher = "crossfade"

[tool.flwr.app.components]
serverapp = "crossfade.federated:server_app"
clientapp = "crossfade.federated:client_app"

[tool.flwr.app.config]
"""


# The SuperLink watches us, so that it ends even if we are killed.
_START = """
import sys
from flwr.supercore.app_utils import start_parent_process_monitor
from flwr.superlink.cli import flower_superlink
start_parent_process_monitor(int(sys.argv.pop(1)))
sys.exit(flower_superlink())
"""


class Certificates(NamedTuple):
    """Files for TLS: who signed, the server's certificate, and its private key."""

    authority: Path
    certificate: Path
    key: Path


@contextmanager
def superlink(host: str, port: int, files: Certificates | None) -> Iterator[bytes]:
    """Flower's SuperLink as a process of its own, which ends with the context.

    Parameters
    ----------
    host, port : str and int
        Where it listens.
    files : Certificates or None
        For TLS; None is plain HTTP.

    Yields
    ------
    bytes
        The secret without which nobody may play the server.
    """
    _refuse_taken(host, port)
    with TemporaryDirectory(prefix="crossfade-") as folder:
        home = Path(folder)
        secret = secrets.token_bytes(32)
        (home / "secret").write_bytes(secret)
        command = [sys.executable, "-c", _START, str(os.getpid())]
        command += ["--host", host, "--port", str(port)]
        # Our own process is the ServerApp; the secret keeps others from claiming that part.
        command += ["--isolation", "process", "--superexec-auth-secret-file", str(home / "secret")]
        command += ["--disable-runtime-dependency-installation"]
        if files is None:
            command += ["--insecure"]
        else:
            command += ["--ssl-ca-certfile", str(files.authority)]
            command += ["--ssl-certfile", str(files.certificate), "--ssl-keyfile", str(files.key)]
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
        with open(home / "log", "wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **quiet, "FLWR_HOME": folder},
            )
        try:
            _wait_until_open(process, host, port, home / "log")
            yield secret
        finally:
            process.terminate()
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _refuse_taken(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as reason:
            raise FederationError(
                f"Cannot listen on {host}:{port}: {reason.strerror}. Choose another address."
            ) from reason


def _wait_until_open(process: subprocess.Popen[bytes], host: str, port: int, log: Path) -> None:
    reached = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            socket.create_connection((reached, port), 1.0).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    last = " ".join(log.read_text(errors="replace").split()[-40:])
    raise FederationError(
        f"Flower's SuperLink did not start on {host}:{port}. Its last words: {last}"
    )


@contextmanager
def run_on(
    address: str,
    plain: bool,
    roots: bytes | None,
    secret: bytes,
    on_message: Callable[[Any], None] | None,
) -> Iterator[tuple[Any, Any]]:
    """Start a run on a SuperLink and take its ServerApp's part until the context ends.

    Parameters
    ----------
    address : str
        Where the SuperLink listens, as host:port.
    plain : bool
        Plain HTTP.
    roots : bytes or None
        Certificates to trust.
    secret : bytes
        What :func:`superlink` gave.
    on_message : callable or None
        Called with each message from a site.

    Yields
    ------
    tuple
        Flower's grid and context.
    """
    from flwr.common.constant import SubStatus
    from flwr.common.serde import context_from_proto, run_from_proto
    from flwr.proto.control_pb2 import StartRunRequest
    from flwr.proto.fab_pb2 import Fab
    from flwr.proto.runtime_pb2 import (
        AcquireTaskRequest,
        PullTaskInputRequest,
        PushTaskOutputRequest,
    )
    from flwr.supercore.constant import TaskType
    from flwr.supercore.control import ControlHttpClient
    from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
    from flwr.supercore.interceptors import (
        RuntimeVersionHttpInterceptor,
        SuperExecAuthHttpInterceptor,
    )
    from flwr.supercore.runtime import RuntimeHttpClient
    from flwr.supercore.task_identity import TaskIdentity
    from flwr.superlink.grid import HttpGrid

    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("pyproject.toml", _BUNDLE)
    version = RuntimeVersionHttpInterceptor(component_name="crossfade")
    with ControlHttpClient.from_server_address(address, plain, roots, [version]) as control:
        control.StartRun(StartRunRequest(fab=Fab(content=bundle.getvalue())))
    ours = SuperExecAuthHttpInterceptor(
        master_secret=secret, protected_methods={"/flwr.proto.Runtime/AcquireTask"}
    )
    with RuntimeHttpClient.from_server_address(address, plain, roots, [version, ours]) as runtime:
        task = runtime.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP]))
    grid = _quick(HttpGrid, on_message)(address, plain, roots, token=task.token)
    beats = HeartbeatSender(make_task_heartbeat_fn_http(grid._runtime_client))
    try:
        beats.start()
        begun = grid._runtime_client.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id, TaskIdentity.run_id = begun.task_id, begun.run.run_id
        TaskIdentity.node_id = begun.context.node_id
        grid.set_run(run_from_proto(begun.run))
        yield grid, context_from_proto(begun.context)
    finally:
        beats.stop()
        done = PushTaskOutputRequest(sub_status=SubStatus.COMPLETED, details="")
        grid._runtime_client.PushTaskOutput(done)
        grid.close()


def _quick(grid_class: type, on_message: Callable[[Any], None] | None) -> Any:
    """Flower's grid, which asks for answers every three seconds, asking more often."""

    class QuickGrid(grid_class):
        def send_and_receive(self, messages: Any, *, timeout: float) -> list[Any]:
            waiting = set(self.push_messages(messages))
            replies: list[Any] = []
            until = time.monotonic() + timeout
            while waiting and time.monotonic() < until:
                fresh = list(self.pull_messages(waiting))
                replies += fresh
                if on_message is not None:
                    for reply in fresh:
                        on_message(reply)
                waiting -= {reply.metadata.reply_to_message_id for reply in fresh}
                if waiting:
                    time.sleep(_POLL)
            return replies

    return QuickGrid
