"""Sites' own tasks in, one prior out: a secure sum over Flower, without anybody's direction."""

from crossfade.federated._agreement import (
    Agreement,
    FederationError,
    read_scale,
    sites_needed,
    write_scale,
)
from crossfade.federated._apps import client_app, server_app
from crossfade.federated._network import join, serve

__all__ = [
    "Agreement",
    "FederationError",
    "client_app",
    "join",
    "read_scale",
    "serve",
    "server_app",
    "sites_needed",
    "write_scale",
]
