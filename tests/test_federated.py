"""Federation without a network: what each side refuses, and that the secure sum is the sum."""

import socket
import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest
from click.testing import CliRunner

from crossfade import Task, TaskPrior
from crossfade.cli import main

pytest.importorskip("flwr")

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common import bytes_to_ndarray
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from flwr.supercore.task_identity import TaskIdentity

from crossfade.federated import (
    Agreement,
    FederationError,
    client_app,
    join,
    serve,
    server_app,
    sites_needed,
)
from crossfade.federated._agreement import read_scale, write_scale
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
    with pytest.raises(ValueError, match=r"feature names: .* here, .* there"):
        client_app(tasks_of(make_target, names=NAMES[::-1]), agreed(), "A")
    X, y = make_target(5)
    with pytest.raises(ValueError, match="5"):
        client_app(Task(X, np.array(["rest", "task"])[y]), agreed(), "A")


def test_a_site_has_a_name():
    with pytest.raises(ValueError, match="empty"):
        client_app(draw_directions(2), agreed(), " ")


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


def test_nothing_is_clipped():
    with pytest.raises(FederationError, match="would be clipped"):
        whole_steps([np.array([1.5])], 1.0, 2**40)


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
    from flwr.common.secure_aggregation.crypto.shamir import combine_shares

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
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_what_the_site_command_refuses(files, monkeypatch):
    monkeypatch.chdir(files)
    write_scale("scale.csv", NAMES[::-1], np.ones(4))
    words = ["tasks.csv", "--scale", "scale.csv", "--server", "127.0.0.1:9", "--site", "A"]
    result = CliRunner().invoke(main, ["federate", "join", *words])
    assert result.exit_code == 2
    assert "not what the federation agreed on (feature names:" in " ".join(result.output.split())


def test_flower_loads_only_when_used():
    code = "import sys, crossfade.federated, crossfade.cli; print('flwr' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
