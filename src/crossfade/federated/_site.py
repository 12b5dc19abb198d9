"""A Flower app in, its answers to a SuperLink out; the code is ours, none comes from there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from crossfade.federated._agreement import FederationError

_POLL = 0.2
_HEARTBEAT = 30.0


def answer_until_done(
    app: Any, outcome: list[Any], address: str, plain: bool, roots: bytes | None, wait: float
) -> None:
    """Answer the server's messages with the app until it says that all is over.

    Parameters
    ----------
    app : ClientApp
        What answers.
    outcome : list
        Filled by the app once all is over.
    address : str
        Address of the server, as host:port.
    plain : bool
        Plain HTTP.
    roots : bytes or None
        Certificates to trust.
    wait : float
        Seconds to wait for the server, and for its next word.
    """
    import httpx
    from flwr.app import Context, RecordDict
    from flwr.proto.fleet_pb2 import PullMessagesRequest

    with _connected(address, plain, roots, wait) as (client, node):
        context = None
        until = time.monotonic() + wait
        while not outcome and time.monotonic() < until:
            received = None
            with suppress(httpx.TransportError):  # a lost connection may come back
                received = client.PullMessages(PullMessagesRequest(node=node))
            if received is None or not received.messages_list:
                time.sleep(_POLL)
                continue
            message = _whole(received, client, node)
            run = message.metadata.run_id
            if context is None:
                context = Context(run, node.node_id, {}, RecordDict(), {})
            if run == context.run_id:
                _send(_reply(app, message, context), client, node)
                until = time.monotonic() + wait


@contextmanager
def _connected(
    address: str, plain: bool, roots: bytes | None, wait: float
) -> Iterator[tuple[Any, Any]]:
    """Node of the SuperLink at an address, which hears from us until we leave."""
    import httpx
    from flwr.proto.fleet_pb2 import (
        ActivateNodeRequest,
        RegisterNodeFleetRequest,
        UnregisterNodeFleetRequest,
    )
    from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
    from flwr.proto.node_pb2 import Node
    from flwr.supercore.heartbeat import HeartbeatSender
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
    from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
    from flwr.supernode.fleet_http_client import FleetHttpClient
    from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

    private, public = generate_key_pairs()
    key = public_key_to_bytes(public)
    interceptors: list[Any] = [
        RuntimeVersionHttpInterceptor(component_name="crossfade"),
        NodeAuthHttpInterceptor(private, public),
    ]
    with FleetHttpClient.from_server_address(address, plain, roots, interceptors) as client:
        until = time.monotonic() + wait
        while True:
            try:
                client.RegisterNode(RegisterNodeFleetRequest(public_key=key))
                break
            except httpx.ConnectError as reason:
                untrusted = "certificate" in str(reason).lower()
                if untrusted or time.monotonic() > until:
                    raise FederationError(
                        f"No connection to the server at {address}: {reason}."
                    ) from reason
                time.sleep(1.0)
        active = ActivateNodeRequest(public_key=key, heartbeat_interval=_HEARTBEAT)
        node = Node(node_id=client.ActivateNode(active).node_id)

        def beat() -> bool:
            try:
                request = SendNodeHeartbeatRequest(node=node, heartbeat_interval=_HEARTBEAT)
                return bool(client.SendNodeHeartbeat(request).success)
            except httpx.HTTPError:
                return False

        beats = HeartbeatSender(beat)
        beats.start()
        try:
            yield client, node
        except httpx.HTTPError as reason:
            raise FederationError(
                f"The server at {address} is gone ({reason}). Ask whether the federation has "
                "ended, and join the next one."
            ) from reason
        finally:
            beats.stop()
            with suppress(httpx.HTTPError):
                client.UnregisterNode(UnregisterNodeFleetRequest(node_id=node.node_id))


def _whole(received: Any, client: Any, node: Any) -> Any:
    """Message with its content, which Flower sends in pieces."""
    from flwr.app import Message
    from flwr.supercore.inflatable.inflatable_protobuf_utils import (
        make_confirm_message_received_fn_protobuf,
        make_pull_object_fn_protobuf,
    )
    from flwr.supercore.inflatable.inflatable_utils import pull_and_inflate_object_from_tree

    run = received.messages_list[0].metadata.run_id
    tree = received.message_object_trees[0]
    message = pull_and_inflate_object_from_tree(
        tree,
        make_pull_object_fn_protobuf(client.PullObject, node, run),
        make_confirm_message_received_fn_protobuf(client.ConfirmMessageReceived, node, run),
        return_type=Message,
    )
    message.metadata.__dict__["_message_id"] = tree.object_id
    return message


def _reply(app: Any, message: Any, context: Any) -> Any:
    """Answer of the app; what it refuses is told to the server in words."""
    from flwr.app import Error, Message
    from flwr.common.constant import ErrorCode

    try:
        return app(message, context)
    except Exception as reason:
        error = Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, str(reason))
        return Message(error, reply_to=message)


def _send(reply: Any, client: Any, node: Any) -> None:
    """Send a message and the pieces of its content."""
    from flwr.app.message import remove_content_from_message
    from flwr.common.serde import message_to_proto
    from flwr.proto.fleet_pb2 import PushMessagesRequest
    from flwr.supercore.inflatable.inflatable_object import (
        get_all_nested_objects,
        get_object_tree,
        no_object_id_recompute,
    )
    from flwr.supercore.inflatable.inflatable_protobuf_utils import make_push_object_fn_protobuf
    from flwr.supercore.inflatable.inflatable_utils import push_objects

    reply.metadata.__dict__["_message_id"] = reply.object_id
    run = reply.metadata.run_id
    with no_object_id_recompute():
        head = remove_content_from_message(reply) if reply.has_content() else reply
        request = PushMessagesRequest(
            node=node,
            messages_list=[message_to_proto(head)],
            message_object_trees=[get_object_tree(reply)],
        )
        answer = client.PushMessages(request)
        push_objects(
            get_all_nested_objects(reply),
            make_push_object_fn_protobuf(client.PushObject, node, run, answer.session_id),
            object_ids_to_push=set(answer.objects_to_push),
        )
