"""Flower's SecAgg+ in, the same protocol out with masks that cannot be guessed and exact sums."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfade.federated._agreement import FederationError, printable, sites_needed
from crossfade.federated._sums import CLIPPING, RESIDUES, STEPS

# Flower's names; its modules load when used.
CONFIGS, STATE = "secaggplus_configs", "secaggplus_state"
SETUP, COLLECT, UNMASK = "setup", "collect_masked_vectors", "unmask"


def masks(seed: bytes, residues: int, shapes: list[tuple[int, ...]]) -> list[NDArray[np.int64]]:
    """Masks drawn from all bits of a seed: the key stream of ChaCha20.

    Flower folds a seed to 32 bits (28 for a pair of sites, whose keys are base64 text) and feeds
    a Mersenne Twister. With three sites a curious server would find both masks of a site by
    trying 2**28 seeds each, and have its direction.

    Parameters
    ----------
    seed : bytes
        A secret; each is used once.
    residues : int
        Masks lie from 0 to this, a power of two.
    shapes : list of tuple
        Shapes of the masks.

    Returns
    -------
    list of ndarray
        One mask for each shape.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    key = hashlib.sha256(b"crossfade.federated mask" + seed).digest()
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    drawn = []
    for shape in shapes:
        content = stream.update(bytes(8 * int(np.prod(shape))))
        words = np.frombuffer(content, "<u8") & np.uint64(residues - 1)
        drawn.append(words.astype(np.int64).reshape(shape))
    return drawn


def whole_steps(
    parameters: list[NDArray[np.float64]], clipping: float, steps: int
) -> list[NDArray[np.int64]]:
    """Numbers in [-clipping, clipping] to whole steps, refusing what would be clipped.

    Flower rounds at random, with the global generator, to 31 bits at most.

    Parameters
    ----------
    parameters : list of ndarray
        What :func:`crossfade.federated._sums.packed` made.
    clipping : float
        Bound of the numbers.
    steps : int
        Steps between both bounds.

    Returns
    -------
    list of ndarray
        Whole numbers from 0 to `steps`.
    """
    # Asked this way round, since no comparison holds for what is not a number.
    if not all((np.abs(array) <= clipping).all() for array in parameters):
        raise FederationError(
            "A sum is not finite, or exceeds its bound and would be clipped; nothing was sent."
        )
    scale = steps / (2.0 * clipping)
    return [np.round((array + clipping) * scale).astype(np.int64) for array in parameters]


def _own_copy(name: str, **replaced: Callable[..., Any]) -> ModuleType:
    """Copy of a module of Flower with some functions replaced; Flower's own is left alone."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"This version of Flower has no {name}. Install crossfade[federated].")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for function, ours in replaced.items():
        if not hasattr(module, function):
            raise ImportError(
                f"{name} of this version of Flower has no {function}, so that its masks cannot be "
                "made safe. Install crossfade[federated] with the version of Flower it asks for."
            )
        setattr(module, function, ours)
    return module


@cache
def client_protocol() -> ModuleType:
    """Flower's client half of SecAgg+, with these masks and whole steps."""
    name = "flwr.client.mod.secure_aggregation.secaggplus_mod"
    return _own_copy(name, pseudo_rand_gen=masks, quantize=whole_steps)


@cache
def server_protocol() -> ModuleType:
    """Flower's server half of SecAgg+, with these masks."""
    name = "flwr.server.workflow.secure_aggregation.secaggplus_workflow"
    return _own_copy(name, pseudo_rand_gen=masks)


def check_request(request: Any, state: Any) -> None:
    """Refuse what a site must never answer: weak thresholds, or what lifts one site's masks.

    Flower counts the sites in a list, and not whether they are different ones.

    Parameters
    ----------
    request : ConfigRecord
        What the server asks for in this stage.
    state : mapping
        What Flower keeps of the stages before: the threshold, and whose shares are held.
    """
    stage = request.get("stage")
    if stage == SETUP:
        n_sites, threshold = int(request["sample_num"]), int(request["threshold"])
        needed = sites_needed(n_sites)
        if threshold < needed or int(request["share_num"]) != n_sites:
            raise FederationError(
                f"The server wants {threshold} of {n_sites} sites to be enough to lift masks; "
                f"this site asks for {needed}."
            )
        wanted = (CLIPPING, STEPS, RESIDUES, 1.0)
        names = ("clipping_range", "target_range", "mod_range", "max_weight")
        if tuple(request[name] for name in names) != wanted:
            raise FederationError(
                "The server wants numbers rounded otherwise than this version of Crossfade does. "
                "Use the same version everywhere."
            )
    elif stage == COLLECT:
        _check_sites(request["srcs"], state.get("ss2_dict:K", ()), state.get("threshold", 1) - 1)
    elif stage == UNMASK:
        active, dead = list(request["active_nids"]), list(request["dead_nids"])
        both = set(active) & set(dead)
        if both:
            raise FederationError(
                f"The server asked for both secrets of {len(both)} sites, which together lift "
                "their masks. Nothing was sent; do not trust this server."
            )
        held = state.get("sk1_share_dict:K", ())
        _check_sites(active, held, state.get("threshold", 1))
        _check_sites(dead, held, 0)
        if state.get("nid") in dead:
            raise FederationError(
                "The server calls this site dropped out, and asks it for a share of its own key. "
                "Nothing was sent; do not trust this server."
            )


def _check_sites(named: Any, known: Any, fewest: int) -> None:
    """Refuse a list of sites with one twice, with a stranger, or with too few."""
    different = set(named)
    if len(different) < len(named):
        what = f"one site more than once: {len(named)} names for {len(different)}"
    elif not different <= set(known):
        what = f"{len(different - set(known))} sites that have shared nothing with this one"
    elif len(different) < fewest:
        what = f"{len(different)} sites, of which {fewest} are needed"
    else:
        return
    raise FederationError(
        f"The server named {what}. That could lift the masks of a single site. Nothing was sent; "
        "do not trust this server."
    )


def secure_total(
    grid: Any, context: Any, nodes: list[int], timeout: float, report: Callable[[str], None]
) -> tuple[NDArray[np.float64], list[int]]:
    """Sum of the vectors of all nodes that stay, by the four stages of SecAgg+.

    Parameters
    ----------
    grid : Grid
        Flower's connection to the nodes.
    context : Context
        Flower's context of this run.
    nodes : list of int
        Nodes that take part.
    timeout : float
        Seconds to wait for answers in each stage.
    report : callable
        Called with a line of text on each stage.

    Returns
    -------
    total : ndarray
        The sum of the vectors.
    stayed : list of int
        Nodes whose vectors it has.
    """
    from flwr.app import ArrayRecord, ConfigRecord
    from flwr.common import parameters_to_ndarrays
    from flwr.server.compat.legacy_context import LegacyContext

    protocol = server_protocol()
    needed = sites_needed(len(nodes))
    workflow = protocol.SecAggPlusWorkflow(
        num_shares=1.0,
        reconstruction_threshold=needed,
        max_weight=1.0,
        clipping_range=CLIPPING,
        quantization_range=STEPS,
        modulus_range=RESIDUES,
        timeout=timeout,
    )
    gathered = _Gathered(nodes)
    legacy = LegacyContext(context, strategy=gathered, client_manager=_NoManager())
    legacy.state.config_records[protocol.MAIN_CONFIGS_RECORD] = ConfigRecord(
        {protocol.WorkflowKey.CURRENT_ROUND: 1}
    )
    legacy.state.array_records[protocol.MAIN_PARAMS_RECORD] = ArrayRecord()
    state = protocol.WorkflowState()
    stages = (
        ("exchange of public keys", workflow.setup_stage),
        ("sharing of secrets", workflow.share_keys_stage),
        ("collection of masked sums", workflow.collect_masked_vectors_stage),
        ("unmasking", workflow.unmask_stage),
    )
    for name, stage in stages:
        try:
            went_on = stage(grid, legacy, state)
        except Exception as reason:  # whatever a faulty answer makes Flower raise
            raise FederationError(
                f"The secure sum failed at the {name}, on an answer of the wrong length or form "
                f"({printable(reason)}). Make sure that all sites run the same version of "
                "Crossfade, and start again."
            ) from reason
        answered = len(state.active_node_ids)
        report(f"{name}: {answered} of {len(nodes)} sites")
        if not went_on:
            raise FederationError(
                f"The secure sum stopped at the {name}: {answered} of {len(nodes)} sites answered "
                f"within {timeout:g} s, and {needed} are needed.{_reasons(state.failures)} Start "
                "again once they can be reached."
            )
        if stage == workflow.share_keys_stage:
            # Flower would ask for shares of sites that left before they shared any.
            state.sampled_node_ids = set(state.active_node_ids)
            state.nid_to_neighbours = {
                node: set(state.active_node_ids) for node in state.active_node_ids
            }
    stayed = [proxy.node_id for proxy, _ in gathered.results]
    mean = parameters_to_ndarrays(gathered.results[0][1].parameters)[0]
    return mean * len(stayed), stayed


def _reasons(failures: list[Exception]) -> str:
    said = sorted({printable(failure) for failure in failures})
    return f" Sites said: {'; '.join(said)}." if said else ""


class _NoManager:
    def num_available(self) -> int:
        return 0


class _Node:
    def __init__(self, node_id: int) -> None:
        self.node_id = node_id


class _Gathered:
    """What Flower asks of a strategy in one round: whom to ask, and what to do with the mean."""

    def __init__(self, nodes: list[int]) -> None:
        self.nodes = nodes
        self.results: list[tuple[Any, Any]] = []

    def configure_fit(self, _round: int, parameters: Any, _manager: Any) -> list[tuple[Any, Any]]:
        from flwr.common import FitIns

        return [(_Node(node), FitIns(parameters, {})) for node in self.nodes]

    def aggregate_fit(
        self, _round: int, results: list[tuple[Any, Any]], _failures: Any
    ) -> tuple[None, dict[str, Any]]:
        self.results = results
        return None, {}
