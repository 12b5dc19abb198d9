"""Federation without a network: what each side refuses, and that the secure sum is the sum."""

import socket
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from crossfade import Task, TaskPrior, cli
from crossfade.cli import main

pytest.importorskip("flwr")

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.common import bytes_to_ndarray
from flwr.common.secure_aggregation.crypto.shamir import combine_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key
from flwr.supercore.task_identity import TaskIdentity

from crossfade.federated import (
    Agreement,
    FederationError,
    _apps,
    client_app,
    join,
    read_scale,
    serve,
    server_app,
    sites_needed,
    write_scale,
)
from crossfade.federated._secure import CONFIGS, RESIDUES, client_protocol, masks, whole_steps
from crossfade.federated._site import _reply
from crossfade.federated._sums import local_prior, packed, rounding, unpacked

NAMES = ("alpha", "beta", "gamma", "delta")
STAGES = ("setup", "share_keys", "collect_masked_vectors", "unmask")


def draw_directions(n_tasks, n_features=4, seed=0):
    """Unit vectors around the first axis."""
    rng = np.random.default_rng([seed, n_tasks, n_features])
    W = 0.4 * rng.standard_normal((n_tasks, n_features))
    W[:, 0] += 1.0
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def agreed(**changes):
    fields = {
        "feature_scale": [1.0, 2.0, 0.1, 1 / 3],
        "classes": ("rest", "task"),
        "feature_names": NAMES,
        "max_tasks": 8,
    }
    return Agreement(**fields | changes)


def sites_of(W, n_sites=5):
    return dict(zip("ABCDEFGHIJ", np.array_split(W, n_sites), strict=False))


class LocalGrid:
    """Flower's grid with the sites in this process; keeps what the server gets to see."""

    def __init__(self, apps, leaves=None):
        self.apps = apps
        self.leaves = leaves or {}
        self.contexts = {node: Context(1, node, {}, RecordDict(), {}) for node in apps}
        self.seen = []

    def get_node_ids(self):
        return list(self.apps)

    def send_and_receive(self, messages, *, timeout):
        replies = []
        for message in messages:
            node, content = message.metadata.dst_node_id, message.content
            stage = content.config_records.get(CONFIGS, {}).get("stage")
            if node not in self.apps or stage == self.leaves.get(node, "never"):
                self.apps = {kept: app for kept, app in self.apps.items() if kept != node}
                continue
            replies.append(_reply(self.apps[node], deepcopy(message), self.contexts[node]))
            self.seen.append((node, stage, replies[-1]))
        return replies


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def federation(sites, agreement, *, n_sites=None, leaves=None, held=None, names=None):
    """Run a federation in this process: the prior, what sites ended with, the lines, the grid."""
    ends, priors, lines = {}, [], []
    apps = {}
    for place, (name, W) in enumerate(sites.items()):
        theirs = (held or {}).get(name, agreement)
        called = (names or {}).get(name, name)
        apps[11 + place] = client_app(
            W, theirs, called, lambda end, name=name: ends.update({name: end})
        )
    grid = LocalGrid(apps, leaves)
    app = server_app(
        agreement,
        len(sites) if n_sites is None else n_sites,
        priors.append,
        wait=0.0,
        timeout=1.0,
        report=lines.append,
    )
    try:
        app(grid, Context(1, 1, {}, RecordDict(), {}))
    except FederationError as reason:
        return None, ends, [*lines, str(reason)], grid
    return priors[0], ends, lines, grid


# -- what is agreed on ------------------------------------------------------------------------


@pytest.mark.parametrize("n_sites", [1, 2])
def test_too_few_sites_are_refused_with_the_number_needed(n_sites):
    with pytest.raises(ValueError, match=f"at least 3 sites; got {n_sites}"):
        sites_needed(n_sites)
    with pytest.raises(ValueError, match="at least 3 sites"):
        server_app(agreed(), n_sites, print)


@pytest.mark.parametrize("n_sites", range(3, 40))
def test_no_two_halves_of_the_sites_are_both_enough(n_sites):
    needed = sites_needed(n_sites)
    assert 3 <= needed <= n_sites
    assert 2 * needed > n_sites + n_sites // 3 - 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"feature_scale": [1.0, 0.0, 1.0, 1.0]}, "positive"),
        ({"feature_scale": [1.0, np.nan, 1.0, 1.0]}, "finite"),
        ({"classes": None}, "would cancel out"),
        ({"classes": ("task", "rest")}, "sorted order"),
        ({"feature_names": NAMES[:2]}, "4 names; got 2"),
        ({"max_tasks": 0}, "at least 1"),
        ({"max_tasks": 5000}, "at most 1024"),
    ],
)
def test_bad_agreements_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        agreed(**changes)


def test_an_agreement_travels_to_the_last_bit():
    ours = agreed(classes=(0, 1))
    theirs = Agreement.from_text(ours.to_text())
    assert theirs.difference(ours) == ""
    np.testing.assert_array_equal(theirs.feature_scale, ours.feature_scale)
    assert theirs.classes == (0, 1)


def test_the_scale_travels_through_its_file_to_the_last_bit(tmp_path):
    scale = np.random.default_rng(0).lognormal(size=4)
    write_scale(tmp_path / "scale.csv", NAMES, scale)
    names, read = read_scale(tmp_path / "scale.csv")
    assert names == NAMES
    np.testing.assert_array_equal(read, scale)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,scale\na,1\n", "columns feature and scale; found name, scale"),
        ("feature,scale\na,-1\n", "positive"),
        ("feature,scale\na,wide\n", "must be numbers"),
        ("", "not a table of scales"),
    ],
)
def test_bad_scale_files_are_refused(tmp_path, text, words):
    (tmp_path / "scale.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_scale(tmp_path / "scale.csv")


# -- what a site brings -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (2.0 * draw_directions(2), "unit vectors; row 0 has length 2"),
        (np.full((1, 4), np.nan), "finite"),
        (draw_directions(2, 5), "4 features"),
        (draw_directions(9), "9 tasks; the federation agreed on at most 8"),
        (np.zeros((1, 4)), "must not be zero"),
        ([], "at least 2 axes"),
    ],
    ids=["not unit", "not finite", "wrong length", "too many", "zero", "none"],
)
def test_a_site_refuses_its_own_bad_vectors_before_it_joins(source, words):
    with pytest.raises(ValueError, match=words):
        client_app(source, agreed(), "A")


def tasks_of(make_target, labels=("rest", "task"), names=NAMES):
    X, y = make_target()
    return Task(X, np.array(labels)[y], feature_names=names)


def test_a_task_is_as_good_as_its_direction(make_target):
    task = tasks_of(make_target)
    prior = local_prior(task, agreed())
    same = TaskPrior.from_tasks([task], feature_scale=agreed().feature_scale)
    np.testing.assert_array_equal(prior.direction_sum, same.direction_sum)
    assert local_prior([task, task], agreed()).n_tasks == 2
    assert local_prior(iter([task]), agreed()).n_tasks == 1


def test_tasks_with_other_classes_or_features_are_refused(make_target):
    with pytest.raises(ValueError, match=r"classes: \('a', 'b'\) here, \('rest', 'task'\) there"):
        client_app(tasks_of(make_target, ("a", "b")), agreed(), "A")
    with pytest.raises(ValueError, match="in another order: 'delta' stands where"):
        client_app(tasks_of(make_target, names=NAMES[::-1]), agreed(), "A")
    with pytest.raises(ValueError, match="feature names: None here"):
        client_app(tasks_of(make_target, names=None), agreed(), "A")
    X, y = make_target(5)
    with pytest.raises(ValueError, match="There are 5 features; the agreed scale has 4"):
        client_app(Task(X, np.array(["rest", "task"])[y]), agreed(), "A")


def test_a_scale_of_other_features_is_refused_by_their_names(make_target):
    other = agreed(feature_scale=np.ones(3), feature_names=("alpha", "beta", "theta"))
    with pytest.raises(ValueError, match="not what the federation agreed on") as refused:
        client_app(tasks_of(make_target), other, "A")
    assert "Features of the agreed scale are missing: 'theta'." in str(refused.value)
    assert "does not know: 'gamma', 'delta'." in str(refused.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [(" ", "empty"), ("A\x1b[2J", "can be seen"), ("A" * 81, "at most 80 characters")],
)
def test_a_site_has_a_name(name, words):
    with pytest.raises(ValueError, match=words):
        client_app(draw_directions(2), agreed(), name)


# -- sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 4, 30])
def test_sums_survive_the_vector(d):
    agreement = Agreement(np.ones(d), (0, 1), max_tasks=1024)
    parts = [draw_directions(7, d, seed) for seed in range(4)]
    vectors = [packed(local_prior(W, agreement), 1024) for W in parts]
    assert max(np.abs(vector).max() for vector in vectors) <= 1.0
    prior = unpacked(np.sum(vectors, axis=0), 4, agreement)
    W = np.concatenate(parts)
    assert prior.n_tasks == 28
    assert np.abs(prior.direction_sum - W.sum(0)).max() <= rounding(4, 1024)
    assert np.abs(prior.outer_sum - W.T @ W).max() <= rounding(4, 1024)
    assert not prior.scale_learnt


def corrupted(change):
    W = draw_directions(6)
    total = packed(local_prior(W, agreed()), 8)
    change(total)
    return total


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda total: total.__setitem__(0, 6.4 / 8), "number of tasks is 6.4"),
        (lambda total: total.__setitem__(0, 1 / 8), "number of tasks is 1, of 3 sites"),
        (lambda total: total.__setitem__(5, 9.0), "trace of the outer products"),
        (lambda total: total.__setitem__(1, 7 / 8), "has length"),
        (lambda total: total.__setitem__(slice(1, 5), total[1:5][::-1].copy()), "contradict"),
        (lambda total: total.__setitem__(2, np.nan), "finite numbers"),
    ],
    ids=["not whole", "too few", "trace", "too long", "contradiction", "not finite"],
)
def test_the_server_refuses_sums_that_unit_directions_cannot_have(change, words):
    with pytest.raises(FederationError, match=words):
        unpacked(corrupted(change), 3, agreed())


def test_the_server_refuses_a_sum_of_the_wrong_length():
    with pytest.raises(FederationError, match="15 finite numbers"):
        unpacked(np.zeros(4), 3, agreed())


# -- masks ------------------------------------------------------------------------------------


def test_masks_use_every_bit_of_their_seed():
    # Both fold to the same 32 bits, which is all that Flower's own masks see of them.
    one, other = bytes(range(32)), bytes([*range(4, 32), *range(4)])
    flower = [pseudo_rand_gen(seed, 2**32, [(50,)])[0] for seed in (one, other)]
    np.testing.assert_array_equal(*flower)
    ours = [masks(seed, RESIDUES, [(50,)])[0] for seed in (one, other)]
    assert not (ours[0] == ours[1]).any()


def test_masks_are_uniform_and_repeatable():
    first, second = masks(b"seed", RESIDUES, [(1,), (100_000,)])
    assert first.shape == (1,)
    assert second.min() >= 0
    assert second.max() < RESIDUES
    counts = np.bincount(second >> 52, minlength=16)
    # Chi square with 15 degrees of freedom; its mean is 15, its deviation 5.5.
    assert ((counts - 6250) ** 2 / 6250).sum() < 15 + 5 * 5.5
    np.testing.assert_array_equal(masks(b"seed", RESIDUES, [(1,), (100_000,)])[1], second)


def test_flower_itself_is_left_alone():
    from flwr.client.mod.secure_aggregation import secaggplus_mod

    assert client_protocol().pseudo_rand_gen is masks
    assert sys.modules[secaggplus_mod.__module__].pseudo_rand_gen is pseudo_rand_gen


@pytest.mark.parametrize("number", [1.5, -1.5, np.nan, np.inf])
def test_nothing_is_clipped(number):
    with pytest.raises(FederationError, match="not finite, or exceeds its bound"):
        whole_steps([np.array([0.5, number])], 1.0, 2**40)


# -- the secure sum ---------------------------------------------------------------------------


def test_the_federated_prior_is_the_pooled_one():
    W = draw_directions(13)
    prior, ends, lines, _ = federation(sites_of(W), agreed())
    pooled = TaskPrior.from_projections(W)
    assert prior.n_tasks == 13
    assert np.abs(prior.direction_sum - pooled.direction_sum).max() <= rounding(5, 8)
    assert np.abs(prior.outer_sum - pooled.outer_sum).max() <= rounding(5, 8)
    assert prior.classes == ("rest", "task")
    assert prior.feature_names == NAMES
    assert [line for line in lines if "unmasking" in line] == ["unmasking: 5 of 5 sites"]
    for end in ends.values():
        np.testing.assert_array_equal(end.outer_sum, prior.outer_sum)
    assert len(ends) == 5


def test_the_total_is_the_sum_of_the_vectors_to_the_last_bits():
    W, agreement = draw_directions(12, seed=3), agreed()
    prior, *_ = federation(sites_of(W, 3), agreement)
    vectors = [packed(local_prior(part, agreement), 8) for part in sites_of(W, 3).values()]
    plain = unpacked(np.sum(vectors, axis=0), 3, agreement)
    np.testing.assert_allclose(prior.outer_sum, plain.outer_sum, rtol=0, atol=1e-14)


@pytest.mark.parametrize("stage", STAGES)
def test_one_site_of_five_may_leave_at_any_stage(stage):
    W = draw_directions(15)
    sites = sites_of(W)
    prior, ends, lines, _ = federation(sites, agreed(), leaves={13: stage})
    # Who leaves after sending has sent: the vector is in the sum.
    stayed = [name for name in sites if name != "C" or stage == "unmask"]
    pooled = TaskPrior.from_projections(np.concatenate([sites[name] for name in stayed]))
    assert prior.n_tasks == pooled.n_tasks
    assert np.abs(prior.direction_sum - pooled.direction_sum).max() <= rounding(5, 8)
    assert ("dropped out, and not in the prior: C" in lines) == (stage != "unmask")
    assert set(ends) == {"A", "B", "D", "E"}


def test_two_of_ten_may_leave_at_different_stages():
    W = draw_directions(30)
    sites = sites_of(W, 10)
    prior, *_ = federation(sites, agreed(), leaves={13: "share_keys", 15: STAGES[2]})
    stayed = np.concatenate([sites[name] for name in sites if name not in "CE"])
    assert np.abs(prior.direction_sum - stayed.sum(0)).max() <= rounding(10, 8)


@pytest.mark.parametrize(
    ("stage", "name"),
    [
        ("setup", "exchange of public keys"),
        ("share_keys", "sharing of secrets"),
        ("collect_masked_vectors", "collection of masked sums"),
        ("unmask", "unmasking"),
    ],
)
def test_when_too_many_leave_the_failed_stage_is_named(stage, name):
    prior, ends, lines, _ = federation(
        sites_of(draw_directions(10)), agreed(), leaves={12: stage, 13: stage}
    )
    assert prior is None
    assert f"stopped at the {name}: 3 of 5 sites answered" in lines[-1]
    assert "4 are needed" in lines[-1]
    assert set(ends) == {"A", "D", "E"}
    assert all(str(end) == lines[-1] for end in ends.values())


# -- what the server sees ---------------------------------------------------------------------


def masked_vectors(grid):
    return {
        node: np.concatenate(
            [
                bytes_to_ndarray(content)
                for content in reply.content.config_records[CONFIGS]["masked_params"]
            ]
        )[1:]
        for node, stage, reply in grid.seen
        if stage == "collect_masked_vectors"
    }


def test_no_masked_vector_resembles_a_site():
    d = 30
    agreement = Agreement(np.ones(d), ("rest", "task"), max_tasks=8)
    sites = sites_of(draw_directions(5, d))
    *_, grid = federation(sites, agreement)
    truth = {name: packed(local_prior(W, agreement), 8) for name, W in sites.items()}
    seen = masked_vectors(grid)
    assert len(seen) == 5
    for masked in seen.values():
        assert masked.min() >= 0
        assert masked.max() < RESIDUES
        for vector in truth.values():
            # Correlation of independent numbers: 0 with a deviation of 1 / sqrt(size).
            correlation = np.corrcoef(masked, vector)[0, 1]
            assert abs(correlation) < 4.5 / np.sqrt(vector.size)
    # Uniform: mean a half, with a deviation of 1 / sqrt(12 size).
    everything = np.concatenate(list(seen.values())) / RESIDUES
    assert abs(everything.mean() - 0.5) < 4.5 / np.sqrt(12 * everything.size)


def test_all_that_the_server_gets_cannot_unmask_one_site():
    """Lift every mask whose seed the server can have; the pairwise ones stay."""
    agreement = agreed()
    sites = sites_of(draw_directions(5))
    *_, grid = federation(sites, agreement)
    shares = {}
    for _, stage, reply in grid.seen:
        if stage == "unmask":
            told = reply.content.config_records[CONFIGS]
            for owner, share in zip(told["nids"], told["shares"], strict=True):
                shares.setdefault(owner, []).append(share)
    d = agreement.n_features
    size = d + 1 + d * (d + 1) // 2
    left = {}
    for node, masked in masked_vectors(grid).items():
        own = masks(combine_shares(shares[node]), RESIDUES, [(1,), (size,)])[1]
        left[node] = (masked - own) & (RESIDUES - 1)
    clear = {
        11 + place: whole_steps([packed(local_prior(W, agreement), 8)], 1.0, 2**40)[0]
        for place, W in enumerate(sites.values())
    }
    for node in left:
        assert not (left[node] == clear[node]).any()
    # All together the pairwise masks cancel, and only then.
    np.testing.assert_array_equal(sum(left.values()) & (RESIDUES - 1), sum(clear.values()))


def test_the_server_sees_nobodys_number_of_tasks():
    W = draw_directions(13)
    *_, grid = federation({"A": W[:8], "B": W[8:9], "C": W[9:]}, agreed())
    for _, stage, reply in grid.seen:
        if stage == "collect_masked_vectors":
            (counted,) = reply.content.metric_records.values()
            assert dict(counted) == {"num_examples": 1}
            assert all(len(arrays) == 0 for arrays in reply.content.array_records.values())


# -- refusals between the two -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ({"feature_scale": [1.0, 2.0, 0.1, 1 / 3 + 1e-16]}, "feature scale of delta"),
        ({"feature_names": ("alpha", "beta", "gamma", "theta")}, "feature names"),
        ({"classes": ("left", "right")}, "classes"),
        ({"max_tasks": 9}, "max tasks"),
    ],
)
def test_a_site_with_another_agreement_does_not_take_part(held, words):
    other = agreed(**held)
    W = draw_directions(8)
    sites = sites_of(W, 4)
    prior, ends, lines, _ = federation(sites, agreed(), n_sites=4, held={"B": other})
    assert isinstance(ends["B"], FederationError)
    assert words in str(ends["B"])
    assert any(line.startswith("B does not take part") for line in lines)
    # Of four, three are enough.
    np.testing.assert_allclose(prior.direction_sum, W.sum(0) - sites["B"].sum(0), atol=1e-9)


def test_a_site_that_joins_twice_counts_once():
    W = draw_directions(8)
    sites = sites_of(W, 4)
    prior, ends, lines, _ = federation(sites, agreed(), n_sites=4, names={"D": "A"})
    assert "A site called A has joined already; each sends once." in lines
    assert "joined already" in str(ends["D"])
    assert prior.n_tasks == 6


def test_a_site_sends_once():
    agreement = agreed()
    *_, grid = federation(sites_of(draw_directions(6), 3), agreement)
    again = server_app(agreement, 3, print, wait=0.0, timeout=1.0)
    with pytest.raises(FederationError, match=r"0 of 3 sites answered.*has sent its sums already"):
        again(grid, Context(1, 1, {}, RecordDict(), {}))


def test_a_site_sends_once_in_whatever_run():
    agreement = agreed()
    *_, grid = federation(sites_of(draw_directions(8), 4), agreement)
    fewer = LocalGrid({node: app for node, app in grid.apps.items() if node != 13})
    again = server_app(agreement, 3, print, wait=0.0, timeout=1.0)
    with pytest.raises(FederationError, match=r"0 of 3 sites answered.*has sent its sums already"):
        again(fewer, Context(2, 1, {}, RecordDict(), {}))


@pytest.mark.parametrize("change", [lambda v: np.append(v, 0.1), lambda v: v[:-1]])
def test_a_vector_of_the_wrong_length_ends_the_sum_and_all_are_told(monkeypatch, change):
    sites = sites_of(draw_directions(11))

    def pack(prior, most):
        vector = packed(prior, most)
        return change(vector) if prior.n_tasks == 3 else vector

    # Of eleven tasks the first site has three, the others two each.
    monkeypatch.setattr(_apps, "packed", pack)
    prior, ends, lines, _ = federation(sites, agreed())
    assert prior is None
    assert "failed at the collection of masked sums, on an answer of the wrong length" in lines[-1]
    assert set(ends) == set(sites)
    assert all(str(end) == lines[-1] for end in ends.values())


def test_a_site_that_is_not_finite_sends_nothing(monkeypatch):
    sites = sites_of(draw_directions(15))
    spoilt = sites["B"].sum(0)

    def pack(prior, most):
        mine = np.array_equal(prior.direction_sum, spoilt)
        return packed(prior, most) * (np.nan if mine else 1.0)

    monkeypatch.setattr(_apps, "packed", pack)
    prior, _, lines, _ = federation(sites, agreed())
    assert "dropped out, and not in the prior: B" in lines
    assert prior.n_tasks == 12


class Answers:
    """A node that answers every message with the same records, whatever it is asked."""

    def __init__(self, **records):
        self.records = RecordDict({name: ConfigRecord(told) for name, told in records.items()})

    def __call__(self, message, context):
        return Message(deepcopy(self.records), reply_to=message)


def beside_a_stranger(stranger):
    """Five are awaited: four sites, and a node that answers as it likes."""
    W, agreement = draw_directions(8), agreed()
    lines, priors = [], []
    apps = {11 + k: client_app(W[2 * k : 2 * k + 2], agreement, "ABCD"[k]) for k in range(4)}
    app = server_app(agreement, 5, priors.append, wait=0.0, timeout=1.0, report=lines.append)
    try:
        app(LocalGrid({**apps, 15: stranger}), Context(1, 1, {}, RecordDict(), {}))
    except FederationError as reason:
        return None, [*lines, str(reason)]
    return priors[0], lines


@pytest.mark.parametrize(
    "records",
    [{}, {"crossfade": {}}, {"crossfade": {"place": "A"}}, {"other": {"site": "A"}}],
    ids=["nothing", "an empty record", "no name", "another record"],
)
def test_a_node_that_answers_otherwise_has_not_joined(records):
    prior, lines = beside_a_stranger(Answers(**records))
    assert "1 connected, and did not answer as a site does" in lines
    assert prior.n_tasks == 8


def test_a_site_that_answers_otherwise_in_the_sum_is_named_as_a_failure():
    prior, lines = beside_a_stranger(Answers(crossfade={"site": "E"}))
    assert prior is None
    assert "failed at the exchange of public keys" in lines[-1]


def test_names_and_reasons_cannot_steer_the_terminal():
    steering = "E\x1b[2J\r\u202ename" + "!" * 5000
    for told in ({"site": steering}, {"site": "E", "refused": steering}):
        _, lines = beside_a_stranger(Answers(crossfade=told))
        assert any("E\ufffd[2J\ufffd\ufffdname" in line for line in lines)
        assert all(line.isprintable() for line in lines)
        assert max(map(len, lines)) <= 2000
    ends = []
    app = client_app(draw_directions(2), agreed(), "A", ends.append)
    content = RecordDict({"crossfade": ConfigRecord({"failed": steering})})
    app(
        Message(content, dst_node_id=11, message_type="query"),
        Context(1, 11, {}, RecordDict(), {}),
    )
    assert str(ends[0]).isprintable()


def test_too_few_that_came_are_refused_and_told():
    prior, ends, lines, _ = federation(sites_of(draw_directions(6), 3), agreed(), n_sites=5)
    assert prior is None
    assert "Too few sites for a secure sum: 3 of 5 joined" in lines[-1]
    assert "4 are needed" in lines[-1]
    assert all("Too few sites" in str(end) for end in ends.values())


def asked(**configs):
    app = client_app(draw_directions(2), agreed(), "A")
    content = RecordDict({CONFIGS: ConfigRecord(configs)})
    message = Message(content, dst_node_id=11, message_type="train")
    return app(message, Context(1, 11, {}, RecordDict(), {}))


SETUP = {
    "stage": "setup",
    "sample_num": 5,
    "share_num": 5,
    "threshold": 4,
    "clipping_range": 1.0,
    "target_range": 2**40,
    "mod_range": 2**56,
    "max_weight": 1.0,
}


def test_a_fair_server_is_answered():
    assert asked(**SETUP).has_content()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threshold": 2}, "wants 2 of 5 sites to be enough .* asks for 4"),
        ({"share_num": 3}, "wants 4 of 5"),
        ({"target_range": 2**22}, "rounded otherwise"),
        ({"clipping_range": 8.0}, "rounded otherwise"),
    ],
)
def test_a_server_that_asks_for_too_much_is_refused(changes, words):
    with pytest.raises(FederationError, match=words):
        asked(**SETUP | changes)


def test_a_secure_sum_of_two_is_refused_by_the_site():
    with pytest.raises(ValueError, match="at least 3 sites; got 2"):
        asked(**SETUP | {"sample_num": 2, "share_num": 2, "threshold": 2})


def test_nobody_gets_both_secrets_of_a_site():
    with pytest.raises(FederationError, match="both secrets of 1 sites"):
        asked(stage="unmask", active_nids=[1, 2, 3, 4], dead_nids=[4])


# -- a server that does not follow the protocol -------------------------------------------------


class DishonestServer:
    """Asks five sites for what it likes; keeps keys, encrypted shares and refusals."""

    def __init__(self):
        self.sites = sites_of(draw_directions(15))
        self.nodes = [11, 12, 13, 14, 15]
        apps = [client_app(W, agreed(), name) for name, W in self.sites.items()]
        self.grid = LocalGrid(dict(zip(self.nodes, apps, strict=True)))
        self.refusals = {}
        keys = self.ask(dict.fromkeys(self.nodes, SETUP))
        self.keys = {str(node): [told["pk1"], told["pk2"]] for node, told in keys.items()}
        request = {"stage": "share_keys", **self.keys}
        shared = self.ask(dict.fromkeys(self.nodes, request))
        self.encrypted = {
            (node, other): content
            for node, told in shared.items()
            for other, content in zip(told["dsts"], told["ctxts"], strict=True)
        }

    def ask(self, requests):
        messages = []
        for node, request in requests.items():
            content = RecordDict({CONFIGS: ConfigRecord(dict(request))})
            content["fitins.parameters"] = ArrayRecord()
            content["fitins.config"] = ConfigRecord()
            messages.append(Message(content, dst_node_id=node, message_type="train"))
        answers = {}
        for reply in self.grid.send_and_receive(messages, timeout=1.0):
            node = reply.metadata.src_node_id
            if reply.has_error():
                self.refusals.setdefault(node, reply.error.reason)
            else:
                answers[node] = reply.content.config_records[CONFIGS]
        return answers

    def collect(self, sources=None):
        """Ask all for masked sums; `sources` says whose shares some of them get."""
        requests = {}
        for node in self.nodes:
            others = [other for other in self.nodes if other != node]
            named = (sources or {}).get(node, others)
            requests[node] = {
                "stage": "collect_masked_vectors",
                "srcs": named,
                "ctxts": [self.encrypted.get((other, node), b"") for other in named],
            }
        return self.ask(requests)


def sums_of_a_lone_site():
    """Attack on site 11 by one neighbour three times; its sums, and the true ones."""
    server = DishonestServer()
    masked = server.collect({11: [12, 12, 12]})
    honest_looking = {"stage": "unmask", "active_nids": [11, 13, 14, 15], "dead_nids": [12]}
    requests = dict.fromkeys((13, 14, 15), honest_looking)
    requests[11] = {"stage": "unmask", "active_nids": [11] * 4, "dead_nids": [12]}
    shares = {}
    for told in server.ask(requests).values():
        for owner, share in dict(zip(told["nids"], told["shares"], strict=True)).items():
            shares.setdefault(owner, []).append(share)
    if 11 not in masked or min(len(shares[11]), len(shares[12])) < 4:
        return None, server
    shapes = [(1,), (15,)]
    own = masks(combine_shares(shares[11]), RESIDUES, shapes)[1]
    secret = bytes_to_private_key(combine_shares(shares[12]))
    pair = generate_shared_key(secret, bytes_to_public_key(server.keys["11"][0]))
    covered = bytes_to_ndarray(masked[11]["masked_params"][1]).astype(np.int64)
    # Site 11 subtracted the mask that it has with 12, since its number is the smaller.
    return (covered - own + 3 * masks(pair, RESIDUES, shapes)[1]) & (RESIDUES - 1), server


def test_a_dishonest_server_would_have_one_sites_sums_if_sites_did_not_check(monkeypatch):
    monkeypatch.setattr(_apps, "check_request", lambda request, state: None)
    found, server = sums_of_a_lone_site()
    vector = packed(local_prior(server.sites["A"], agreed()), 8)
    np.testing.assert_array_equal(found, whole_steps([vector], 1.0, 2**40)[0])


def test_a_dishonest_server_gets_nothing_from_the_site_that_it_attacks():
    found, server = sums_of_a_lone_site()
    assert found is None
    assert "named one site more than once: 3 names for 1" in server.refusals[11]
    assert set(server.refusals) == {11}


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ([12, 12, 13, 14], "one site more than once: 4 names for 3"),
        ([12, 13], "named 2 sites, of which 3 are needed"),
        ([11, 12, 13], "1 sites that have shared nothing with this one"),
        ([12, 13, 99], "1 sites that have shared nothing with this one"),
    ],
    ids=["twice", "too few", "itself", "stranger"],
)
def test_masked_sums_go_out_under_enough_different_masks(sources, words):
    server = DishonestServer()
    assert 11 not in server.collect({11: sources})
    assert words in server.refusals[11]


@pytest.mark.parametrize(
    ("active", "dead", "words"),
    [
        ([11] * 4, [12], "one site more than once: 4 names for 1"),
        ([11, 13, 14, 15], [12, 12], "one site more than once: 2 names for 1"),
        ([11, 13, 14], [12], "named 3 sites, of which 4 are needed"),
        ([11, 12, 13, 14], [99], "1 sites that have shared nothing"),
        ([12, 13, 14, 99], [], "1 sites that have shared nothing"),
        ([12, 13, 14, 15], [11], "calls this site dropped out"),
        ([11, 12, 13, 14], [14, 15], "both secrets of 1 sites"),
    ],
    ids=["twice", "dead twice", "too few", "stranger", "active stranger", "itself", "both"],
)
def test_shares_go_out_for_enough_different_sites(active, dead, words):
    server = DishonestServer()
    assert set(server.collect()) == set(server.nodes)
    request = {"stage": "unmask", "active_nids": active, "dead_nids": dead}
    assert server.ask({11: request}) == {}
    assert words in server.refusals[11]


def test_a_site_gives_shares_to_a_server_once():
    server = DishonestServer()
    server.collect()
    fair = {"stage": "unmask", "active_nids": [11, 13, 14, 15], "dead_nids": [12]}
    assert set(server.ask({11: fair})) == {11}
    assert server.ask({11: fair | {"active_nids": [11, 12, 14, 15], "dead_nids": [13]}}) == {}


@pytest.mark.parametrize("stage", ["share_keys", "collect_masked_vectors"])
def test_a_stage_out_of_turn_is_refused(stage):
    with pytest.raises(ValueError, match="expect setup stage"):
        asked(stage=stage, srcs=[], ctxts=[])


# -- addresses and commands -------------------------------------------------------------------


def test_plain_http_is_for_loopback():
    with pytest.raises(ValueError, match="not a loopback address: name the certificates"):
        join(draw_directions(2), agreed(), "A", "192.0.2.1:8000")
    with pytest.raises(ValueError, match="not a loopback address"):
        serve(agreed(), 3, address="0.0.0.0:8000")


@pytest.mark.parametrize("address", ["localhost", ":8000", "127.0.0.1:http", "127.0.0.1:0"])
def test_bad_addresses_are_refused(address):
    with pytest.raises(ValueError, match="must be host:port"):
        join(draw_directions(2), agreed(), "A", address)


def test_missing_certificates_are_named(tmp_path):
    files = (tmp_path / "ca.pem", tmp_path / "server.pem", tmp_path / "server.key")
    with pytest.raises(FileNotFoundError, match="no certificate file"):
        serve(agreed(), 3, address="0.0.0.0:8000", certificates=files)


def test_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(FederationError, match=f"Cannot listen on {address}: .* in use"):
            serve(agreed(), 3, address=address)


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(FederationError, match=r"No connection to the server at 127\.0\.0\.1:9"):
        join(draw_directions(2), agreed(), "A", "127.0.0.1:9", wait=0.0)


@pytest.fixture
def files(tmp_path, make_target):
    import pandas as pd

    rows = []
    for name in "ab":
        X, y = make_target(seed=ord(name))
        frame = pd.DataFrame(X, columns=NAMES)
        frame.insert(0, "label", np.array(["rest", "task"])[y])
        frame.insert(0, "task", name)
        rows.append(frame)
    pd.concat(rows).to_csv(tmp_path / "tasks.csv", index=False)
    return tmp_path


def test_the_scale_command_writes_what_the_sites_read(files):
    words = ["federate", "scale", str(files / "tasks.csv"), "-o", str(files / "scale.csv")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    names, scale = read_scale(files / "scale.csv")
    assert names == NAMES
    assert (scale > 0.0).all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "--sites", "2"], "at least 3 sites; got 2"),
        (["serve", "--sites", "3", "--address", "0.0.0.0:8000"], "not a loopback address"),
        (["serve", "--sites", "3", "--key", "scale.csv"], "all of --certificate, --key"),
    ],
)
def test_what_the_server_command_refuses(files, monkeypatch, words, said):
    monkeypatch.chdir(files)
    write_scale("scale.csv", NAMES, np.ones(4))
    more = ["--scale", "scale.csv", "--classes", "rest", "task", "-o", "prior.npz"]
    result = CliRunner().invoke(main, ["federate", *words, *more])
    assert result.exit_code == 1
    assert said in " ".join(result.output.split())
    assert "Usage" not in result.output


JOIN = ["federate", "join", "tasks.csv", "--server", "127.0.0.1:9", "--site", "A", "--wait", "0"]


def test_what_the_site_command_refuses(files, monkeypatch):
    monkeypatch.chdir(files)
    write_scale("scale.csv", NAMES[::-1], np.ones(4))
    result = CliRunner().invoke(main, [*JOIN, "--scale", "scale.csv"])
    assert result.exit_code == 1
    assert "The features are in another order: 'alpha'" in " ".join(result.output.split())
    assert "Usage" not in result.output


def test_the_site_command_says_that_there_is_no_server(files, monkeypatch):
    monkeypatch.chdir(files)
    write_scale("scale.csv", NAMES, np.ones(4))
    result = CliRunner().invoke(main, [*JOIN, "--scale", "scale.csv"])
    assert result.exit_code == 1
    assert "Error: No connection to the server at 127.0.0.1:9" in result.output


@pytest.mark.parametrize("command", ["serve", "join"])
def test_a_place_that_cannot_be_written_to_is_refused_before_the_round(files, monkeypatch, command):
    monkeypatch.chdir(files)
    write_scale("scale.csv", NAMES, np.ones(4))
    monkeypatch.setattr(f"crossfade.federated.{command}", lambda *_, **__: pytest.fail("began"))
    words = JOIN
    if command == "serve":
        words = ["federate", "serve", "--sites", "3", "--classes", "rest", "task"]
    result = CliRunner().invoke(main, [*words, "--scale", "scale.csv", "-o", "nowhere/prior.npz"])
    assert result.exit_code == 1
    assert "nowhere: No such file or directory. Name another file" in result.output
    assert sorted(file.name for file in files.iterdir()) == ["scale.csv", "tasks.csv"]


def test_commands_use_public_names_of_the_federation():
    for file in Path(cli.__file__).parent.glob("*.py"):
        assert "federated._" not in file.read_text(), file.name


def test_the_example_keeps_flowers_log_away():
    example = Path(__file__).parents[1] / "examples" / "federation.py"
    code = (
        "import logging, runpy, sys, flwr; runpy.run_path(sys.argv[1]); "
        "print(logging.getLogger('flwr').isEnabledFor(logging.WARNING))"
    )
    words = [sys.executable, "-c", code, str(example)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_flower_loads_only_when_used():
    code = "import sys, crossfade.federated, crossfade.cli; print('flwr' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
