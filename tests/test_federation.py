"""A secure sum by files: it is the sum, it gives nobody away, and what does not fit is refused."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import reduce
from itertools import combinations
from math import fsum
from operator import add
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from crossfade import (
    Task,
    TaskPrior,
    TaskSet,
    __version__,
    cli,
    federation,
    load_mental_math,
)
from crossfade.cli._federate import _PARTS, _labels
from crossfade.federation import Agreement, agree, make_key, mask, sum_masked, write_scale
from crossfade.federation import _layout as layout
from crossfade.federation import _masked as masked
from crossfade.federation._files import content_of
from crossfade.federation._keys import PUBLIC, Site, read_secret, site_fields, spend

pytest.importorskip("cryptography")

NAMES = ("alpha", "beta", "gamma", "delta")
SCALE = (1.0, 2.0, 0.1, 1 / 3)


class Round:
    """Files of a round, all in one folder, and the tasks of each site."""

    def __init__(self, folder, tasks, n_sites=3, **options):
        self.folder, self.agreement = folder, folder / "agreement.json"
        self.sites = "abcdefgh"[:n_sites]
        self.tasks = {site: list(tasks)[place::n_sites] for place, site in enumerate(self.sites)}
        federation.write_scale(folder / "scale.csv", NAMES, SCALE)
        for site in self.sites:
            make_key(folder / site)
        public = [folder / f"{site}.pub" for site in self.sites]
        options = {"classes": ["task", "rest"]} | options
        agree(public, folder / "scale.csv", out=self.agreement, **options)
        self.secrets = {site: read_secret(self.key(site)) for site in self.sites}
        self.agreed = Agreement.load(self.agreement)

    def key(self, site):
        return self.folder / f"{site}.key"

    def file(self, site):
        return self.folder / f"{site}.masked"

    def mask(self, site, tasks=None, **files):
        given = {"agreement": self.agreement, "key": self.key(site), "out": self.file(site)}
        return mask(self.tasks[site] if tasks is None else tasks, **given | files)

    def mask_all(self):
        return [self.mask(site) for site in self.sites]

    def sum(self, sites=None):
        return sum_masked([self.file(site) for site in sites or self.sites], self.agreement)

    def words(self, site):
        return masked.read_masked(self.file(site), self.agreed)[1]

    def truth(self, site):
        prior = masked._local_prior(self.tasks[site], self.agreed)
        return layout.to_words(masked._local_sums(prior, self.agreed))


@pytest.fixture
def tasks(make_tasks):
    return make_tasks(15, n_each=(9, 11), labels=("rest", "task"), feature_names=NAMES)


@pytest.fixture
def begin(tmp_path, tasks):
    """Begin a round in a folder of its own."""

    def start(n_sites=3, folder="round", given=tasks, **options):
        (tmp_path / folder).mkdir()
        return Round(tmp_path / folder, given, n_sites, **options)

    return start


def close(one, other, tolerance=1e-12):
    """Whether two priors hold the same parts, and numbers as near as rounding leaves them."""
    # Digests of the tasks never leave a site; the sum has one of its own.
    assert one.parts.shape == (1, 32)
    assert one.without("parts").holds == other.without("parts").holds
    assert (one.classes, one.feature_names) == (other.classes, other.feature_names)
    shapes = layout.shapes_of(one.n_features, [part for part in layout.PARTS if part in one.holds])
    mine, theirs = layout.sums_of(one, shapes), layout.sums_of(other, shapes)
    for name in shapes:
        np.testing.assert_allclose(mine[name], theirs[name], rtol=tolerance, atol=tolerance)


# -- the sum is the sum -----------------------------------------------------------------------


@pytest.mark.parametrize("n_sites", [3, 4, 7])
def test_the_sum_is_what_the_sites_own_priors_add_up_to(begin, n_sites):
    work = begin(n_sites)
    own = work.mask_all()
    prior = work.sum()
    close(prior, reduce(add, own))
    assert prior.n_tasks == 15
    assert not prior.scale_learnt
    made_by = f"{n_sites} sites, by the secure sum of the agreement {work.agreed.code}"
    assert prior.about["made_by"] == made_by
    assert prior.holds == own[0].holds


def test_the_sum_is_the_prior_of_the_pooled_tasks(begin, tasks):
    work = begin(5)
    work.mask_all()
    pooled = TaskPrior.from_tasks(tasks, feature_scale=SCALE)
    # Each site replays its own people, and finds its own median of how alike they are.
    apart = {"replay": None, "class_means": None}
    close(replace(work.sum(), **apart), replace(pooled, **apart))
    mine, theirs = work.sum().class_means, pooled.class_means
    for one in fields(theirs):
        if one.name not in ("alike_sum", "clip", "person"):
            np.testing.assert_allclose(getattr(mine, one.name), getattr(theirs, one.name), 1e-12)
    assert mine.person is theirs.person is None


def test_the_sum_can_be_saved_released_and_used(begin, tasks, tmp_path):
    work = begin()
    work.mask_all()
    prior = work.sum()
    prior.save(tmp_path / "prior.npz")
    assert TaskPrior.load(tmp_path / "prior.npz") == prior
    assert prior.released(epsilon=1.0, delta=1e-5).release.scale_covered


def sessions_of(tasks, n_sessions):
    """The same tasks, so many of them of one person, who stays at one site."""
    groups = {}
    for site in range(3):
        mine = list(range(len(tasks)))[site::3]
        groups |= {place: f"p{number // n_sessions}" for number, place in enumerate(mine)}
    return [replace(task, group=groups[place]) for place, task in enumerate(tasks)]


@pytest.mark.parametrize("clip", [None, 4.0])
def test_the_sum_counts_people(begin, tasks, tmp_path, clip):
    work = begin(given=sessions_of(tasks, 2), clip=clip, min_tasks=9)
    own = work.mask_all()
    prior = work.sum()
    both = reduce(add, own)
    # Five tasks of each site are of three people; two sites' people with one name are two people.
    assert (prior.n_tasks, prior.n_people, both.n_people) == (15, 9, 9)
    np.testing.assert_allclose(prior.people.direction_sum, both.people.direction_sum, atol=1e-12)
    np.testing.assert_allclose(prior.people.outer_sum, both.people.outer_sum, atol=1e-12)
    assert prior.class_means.n_people == (15.0 if clip is None else 9.0)
    assert prior.class_means.clip == clip
    np.testing.assert_allclose(prior.class_means.mean_sum, both.class_means.mean_sum, atol=1e-12)
    assert prior.without("replay").replay is None
    prior.save(tmp_path / "prior.npz")
    assert TaskPrior.load(tmp_path / "prior.npz") == prior
    pytest.importorskip("opendp")
    public = TaskPrior.load(tmp_path / "prior.npz").released(1.0, 1e-5)
    assert public.n_tasks == 9
    assert ("class_means" in public.holds) == (clip is not None)


def test_where_everybody_has_one_session_people_are_the_tasks(begin):
    work = begin()
    work.mask_all()
    assert work.sum().people is None


def test_a_bound_is_part_of_the_agreement(begin, tasks):
    work = begin(clip=4.0)
    assert work.agreed.clip == 4.0
    assert Agreement.load(work.agreement).digest == work.agreed.digest
    assert replace(work.agreed, clip=5.0).digest != work.agreed.digest
    with pytest.raises(ValueError, match="clip must be a positive number, or None; got 0"):
        begin(folder="zero", clip=0)
    with pytest.raises(ValueError, match="clip bounds what a person adds to the class means"):
        begin(folder="none", clip=4.0, without=["class_means"])


def test_files_add_up_in_any_order(begin):
    work = begin(4)
    work.mask_all()
    assert work.sum("abcd") == work.sum("dbca")


@pytest.mark.parametrize(
    ("without", "held"),
    [
        (["class_means"], {"replay"}),
        (["replay", "class_means"], {"half_gap", "autocorrelation"}),
        (list(layout.PARTS), {"outer_sum"}),
    ],
)
def test_sites_may_agree_to_sum_less(begin, without, held):
    work = begin(without=without)
    own = work.mask_all()
    prior = work.sum()
    assert held <= set(prior.holds)
    assert not set(without) & set(prior.holds)
    close(prior, reduce(add, [one.without(*without) for one in own]))
    assert "hierarchical" not in (prior.replay or {})


def test_a_site_of_one_task_takes_part(begin, tasks):
    work = begin()
    work.tasks["a"] = tasks[:1]
    own = work.mask_all()
    close(work.sum(), reduce(add, own))


def test_who_never_played_adds_nothing(begin, tasks):
    work = begin()
    prior = masked._local_prior(work.tasks["a"], work.agreed)
    shapes = layout.shapes_of(4, layout.PARTS)
    sums = layout.sums_of(prior.without("replay"), shapes)
    assert not sums["replay.convex"].any()
    assert sums["class_means.n_people"] == 5


@given(
    st.integers(3, 1000).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(
                st.floats(-layout.largest_sum(n), layout.largest_sum(n)), min_size=1, max_size=20
            ),
        )
    )
)
def test_fixed_point_is_exact_to_its_step_and_never_overflows(case):
    n_sites, numbers = case
    # As many sites as were agreed on, each with sums as large as any.
    each = np.array([numbers[place % len(numbers)] for place in range(n_sites)])
    total = reduce(add, (layout.to_words(np.array([number])) for number in each))
    [found] = layout.of_words(total)
    expected = fsum(each)
    assert abs(found - expected) <= n_sites * layout.STEP / 2 + 2.0**-52 * abs(expected)


def test_sums_at_the_bound_do_not_overflow():
    for n_sites in (3, 7, 1000):
        most = layout.largest_sum(n_sites)
        for sign in (1.0, -1.0):
            words = n_sites * layout.to_words(np.array([sign * most, sign * 0.3]))
            np.testing.assert_allclose(
                layout.of_words(words), [sign * 2.0**46, sign * 0.3 * n_sites]
            )


@pytest.mark.parametrize("n_features", [1, 2, 5])
@pytest.mark.parametrize("parts", [(), ("half_gap",), ("class_means",), layout.PARTS])
def test_packing_can_be_undone(n_features, parts):
    shapes = layout.shapes_of(n_features, parts)
    rng = np.random.default_rng(0)
    vector = rng.normal(size=layout.n_words(shapes) // 2)
    sums = layout.unpacked(vector, shapes)
    assert {name: np.shape(value) for name, value in sums.items()} == shapes
    np.testing.assert_array_equal(sums["outer_sum"], sums["outer_sum"].T)
    np.testing.assert_array_equal(layout.packed(sums), vector)
    np.testing.assert_allclose(layout.of_words(layout.to_words(vector)), vector, atol=layout.STEP)


# -- it gives nobody away ---------------------------------------------------------------------


def recognised(words, truth):
    """Attack: whether words of a file look other than random, or like the sums in question.

    Three ways: some bit is one too often or too seldom, words correlate with the sums, or words
    less the sums are small. By chance one of these happens once in millions.
    """
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    uneven = np.abs(2.0 * bits.mean(0) - 1.0) * np.sqrt(len(words))
    left = (words - truth).view(np.int64).astype(np.float64)
    with np.errstate(invalid="ignore"):
        alike = np.corrcoef(words.view(np.int64), truth.view(np.int64))[0, 1] * np.sqrt(len(words))
    return bool(uneven.max() > 6.5 or abs(alike) > 6.5 or (np.abs(left) < 2.0**48).mean() > 0.01)


@pytest.mark.parametrize("masks", ["on", "off"])
def test_no_site_can_be_told_from_random(begin, monkeypatch, masks):
    if masks == "off":
        zeros = np.zeros(masked.n_words(layout.shapes_of(4, layout.PARTS)), np.uint64)
        monkeypatch.setattr(masked, "pair_mask", lambda *_: zeros)
    work = begin(4)
    own = work.mask_all()
    close(work.sum(), reduce(add, own))
    files = {site: work.words(site) for site in work.sites}
    truths = {site: work.truth(site) for site in work.sites}
    found = []
    # The curious adder: each file, and each sum of some of the files but not of all.
    for size in range(1, 4):
        for some in combinations(work.sites, size):
            view = reduce(add, (files[site] for site in some))
            found.append(recognised(view, reduce(add, (truths[site] for site in some))))
    assert found == [masks == "off"] * 14
    # The sum is for everybody.
    assert recognised(reduce(add, files.values()), reduce(add, truths.values()))


@pytest.mark.parametrize("masks", ["on", "off"])
def test_nobody_can_tell_which_of_two_crowds_a_site_has(begin, make_tasks, monkeypatch, masks):
    if masks == "off":
        zeros = np.zeros(masked.n_words(layout.shapes_of(4, layout.PARTS)), np.uint64)
        monkeypatch.setattr(masked, "pair_mask", lambda *_: zeros)
    others = make_tasks(30, n_each=(9, 11), labels=("rest", "task"), feature_names=NAMES)[25:]
    found = []
    for place, guess in enumerate([False, True, True, False]):
        work = begin(3, folder=f"round {place}")
        candidates = [others, work.tasks["a"]]
        truths = []
        for one in candidates:
            work.tasks["a"] = one
            truths.append(work.truth("a"))
        work.tasks["a"] = candidates[guess]
        work.mask_all()
        near = [(work.words("a") - truth == 0).mean() for truth in truths]
        # Undecided, or the one that was there.
        found.append(max(near) > 0.0 and np.argmax(near) == guess)
    assert found == [masks == "off"] * 4


def test_sites_that_collude_learn_the_sum_of_the_others_and_no_more(begin):
    work = begin(5)
    work.mask_all()
    view, truth = work.words("a"), work.truth("a")
    size = view.size
    for colluding, site in enumerate("bcde", start=1):
        # Each gives away the mask that it shares with the first.
        mine = work.secrets["a"].site
        stream = masked.pair_mask(work.secrets[site], mine, work.agreed, size)
        below = mine.fingerprint < work.secrets[site].site.fingerprint
        view = view - stream if below else view + stream
        assert recognised(view, truth) == (colluding == 4)
    # All others together know it, which no secure sum can prevent.
    np.testing.assert_array_equal(view, truth)


def test_masks_of_two_rounds_have_nothing_in_common(begin):
    first, second = begin(3, folder="first"), begin(3, folder="second")
    for work in (first, second):
        work.mask_all()
    difference = first.words("a") - second.words("a")
    assert not recognised(difference, first.truth("a"))
    np.testing.assert_array_equal(first.truth("a"), second.truth("a"))


def test_the_same_keys_would_give_other_masks_for_another_agreement(begin):
    work = begin()
    other = replace(work.agreed, round_id="another")
    one, two = (masked.site_mask(work.secrets["a"], agreed) for agreed in (work.agreed, other))
    assert not recognised(one - two, work.truth("a"))


def test_sums_of_two_rounds_give_away_who_joined_in_between(begin, tasks):
    # What no mask can prevent, and docs/federation.md says.
    first, second = begin(3, folder="first", given=tasks[:12]), begin(3, folder="second")
    before, after = ((work.mask_all(), work.sum())[1] for work in (first, second))
    joined = TaskPrior.from_tasks(tasks[12:], feature_scale=SCALE)
    np.testing.assert_allclose(after.direction_sum - before.direction_sum, joined.direction_sum)


def test_a_file_says_nothing_but_its_round_and_site(begin, tasks):
    work = begin()
    work.tasks["a"] = tasks[:1]
    work.mask_all()
    assert len({work.file(site).stat().st_size for site in work.sites}) == 1
    content = work.file("a").read_bytes()
    head = b"crossfade masked 1\n" + work.agreed.digest + work.secrets["a"].site.fingerprint
    assert content.startswith(head)
    n_words = layout.n_words(layout.shapes_of(4, layout.PARTS))
    assert len(content) == len(head) + 64 + 8 * n_words


# -- a key is used once -----------------------------------------------------------------------


def test_a_key_is_for_its_owner_alone_and_is_not_replaced(tmp_path):
    site = make_key(tmp_path / "a", "Hospital A")
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    assert site.name == "Hospital A"
    assert len(site.code.split()) == 10
    secret = (tmp_path / "a.key").read_bytes()
    with pytest.raises(FileExistsError, match=r"a\.key is there already, and is not replaced"):
        make_key(tmp_path / "a")
    (tmp_path / "b.pub").write_text("something")
    with pytest.raises(FileExistsError, match=r"b\.pub is there already"):
        make_key(tmp_path / "b")
    assert not (tmp_path / "b.key").exists()
    assert (tmp_path / "a.key").read_bytes() == secret
    # What is public says nothing of what is secret.
    public = json.loads((tmp_path / "a.pub").read_text())
    held = json.loads(secret)
    assert not {held["x25519"], held["ed25519"]} & set(public.values())
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        make_key(tmp_path / "nowhere" / "a")


def test_the_suffix_may_be_given(tmp_path):
    assert make_key(tmp_path / "a.key").name == "a"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.key", "a.pub"]


@pytest.mark.parametrize("name", ["", "  ", " a", "two\nlines", "\x1b[31mred", "a" * 81])
def test_names_that_cannot_be_shown_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="The name of a site"):
        make_key(tmp_path / "a", name)
    assert list(tmp_path.iterdir()) == []


def test_a_used_key_is_erased_and_refused(begin, tasks):
    work = begin()
    work.mask("a")
    held = json.loads(work.key("a").read_text())
    assert held["used_for"] == work.agreed.code
    assert "x25519" not in held
    before = work.file("a").read_bytes()
    with pytest.raises(ValueError, match=r"was used already, for the agreement .* is erased"):
        work.mask("a")
    other = work.folder / "other.json"
    public = [work.folder / f"{site}.pub" for site in work.sites]
    agree(public, work.folder / "scale.csv", ["rest", "task"], other)
    with pytest.raises(ValueError, match="A key serves one round"):
        work.mask("a", tasks[:2], agreement=other)
    assert work.file("a").read_bytes() == before


def test_why_a_key_is_used_once(begin, tasks, tmp_path, monkeypatch):
    # From a copy of the key: both files together have no mask left.
    work = begin()
    copy = work.key("a").read_bytes()
    work.mask("a", tasks[:5])
    first = work.words("a")
    work.key("a").write_bytes(copy)
    with pytest.raises(ValueError, match=r"A copy of .*a\.key was used already on this account"):
        work.mask("a", tasks[:6])
    with pytest.raises(ValueError, match="A copy of"):
        spend(work.secrets["a"], work.agreed.digest)
    assert work.key("a").read_bytes() == copy
    np.testing.assert_array_equal(work.words("a"), first)
    # On another machine nobody can notice.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    work.mask("a", tasks[:6])
    difference = layout.of_words(work.words("a") - first)
    shapes = layout.shapes_of(4, layout.PARTS)
    direction = layout.unpacked(difference, shapes)["direction_sum"]
    person = TaskPrior.from_tasks(tasks[5:6], feature_scale=SCALE)
    np.testing.assert_allclose(direction, person.direction_sum, atol=1e-12)


def test_nothing_is_left_of_a_used_key(begin):
    work = begin()
    secret = json.loads(work.key("a").read_text())["x25519"]
    other = work.folder / "other.key"
    other.hardlink_to(work.key("a"))
    with pytest.raises(ValueError, match=r"a\.key has a second name on this disk \(a hard link\)"):
        work.mask("a")
    other.unlink()
    with open(work.key("a"), "rb") as before:
        work.mask("a")
        assert secret.encode() not in before.read()
    assert work.key("a").stat().st_mode & 0o777 == 0o600


def test_a_register_that_cannot_be_written_leaves_the_key_whole(begin, monkeypatch):
    work = begin()
    (work.folder / "file").touch()
    with monkeypatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(work.folder / "file"))
        with pytest.raises(ValueError, match=r"register of used keys cannot be .*XDG_STATE_HOME"):
            work.mask("a")
    assert not work.file("a").exists()
    work.mask("a")


def test_nothing_that_is_read_is_replaced(begin):
    work = begin()
    public = [work.folder / f"{site}.pub" for site in work.sites]
    scale = work.folder / "scale.csv"
    before = {path: path.read_bytes() for path in work.folder.iterdir()}
    for out in (work.agreement, work.key("a")):
        with pytest.raises(ValueError, match=f"{out.name} would replace .*, which this command"):
            work.mask("a", out=out)
    for out in (public[1], scale):
        with pytest.raises(ValueError, match=f"{out.name} would replace"):
            agree(public, scale, ["rest", "task"], out)
    assert {path: path.read_bytes() for path in work.folder.iterdir()} == before
    work.mask_all()
    table = work.folder / "tasks.csv"
    TaskSet(work.tasks["a"]).write(table)
    shared = ["--agreement", str(work.agreement)]
    for words in (
        ["mask", str(table), *shared, "--key", str(work.key("a")), "-o", str(table)],
        ["sum", str(work.file("a")), str(work.file("b")), *shared, "-o", str(work.file("a"))],
        ["sum", str(work.file("a")), *shared, "-o", str(work.agreement)],
        ["scale", str(table), "-o", str(table)],
    ):
        result = CliRunner().invoke(cli.main, ["federate", *words])
        assert result.exit_code == 1
        assert "would replace" in result.stderr


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (("rest", "task"), ["rest", "task"]),
        (("1", "0"), [1, 0]),
        (("1.0", "0.0"), [1.0, 0.0]),
        (("-1", "+2e1"), [-1, 20.0]),
        (("rest", "²"), ["rest", "²"]),
        (("1", "²"), ["1", "²"]),
        (("nan", "inf"), ["nan", "inf"]),
        (("1", "rest"), ["1", "rest"]),
        (("1_0", "0x1"), ["1_0", "0x1"]),
    ],
)
def test_labels_are_read_as_in_a_table(words, labels):
    found = _labels(words)
    assert found == labels
    assert list(map(type, found)) == list(map(type, labels))


def test_another_version_of_crossfade_is_refused(begin):
    work = begin()
    assert work.agreed.crossfade == ".".join(__version__.split(".")[:2])
    replace(work.agreed, crossfade="0.1").save(work.agreement)
    with pytest.raises(ValueError, match=r"was made by Crossfade 0\.1, and this is .*not used"):
        work.mask("a")


def test_a_crash_after_the_key_was_erased_costs_the_round_alone(begin, monkeypatch):
    work = begin()
    monkeypatch.setattr(masked, "write_whole", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        work.mask("a")
    monkeypatch.undo()
    assert not work.file("a").exists()
    with pytest.raises(ValueError, match="was used already"):
        work.mask("a")


def test_a_crash_before_leaves_the_key_whole(begin, monkeypatch):
    work = begin()
    monkeypatch.setattr(masked, "spend", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        work.mask("a")
    monkeypatch.undo()
    assert not work.file("a").exists()
    work.mask("a")


def test_what_is_refused_leaves_the_key_whole(begin, tasks):
    work = begin(max_tasks=5, min_tasks=3)
    folder = work.folder / "folder"
    folder.mkdir()
    for options, message in (
        ({"tasks": tasks[:6]}, "There are 6, and a site brings 5 at most"),
        ({"out": folder}, "is a folder, and is not replaced"),
        ({"out": work.folder / "nowhere" / "a.masked"}, "There is no folder .*nowhere"),
        ({"tasks": []}, "There is no task to sum"),
    ):
        with pytest.raises((ValueError, OSError), match=message):
            work.mask("a", **options)
    work.mask("a")


def test_of_two_commands_at_once_one_gets_the_key(begin):
    work = begin()
    secret = work.secrets["a"]

    def attempt(_):
        try:
            spend(secret, work.agreed.digest)
        except ValueError as reason:
            return str(reason)
        return "spent"

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(attempt, range(32)))
    assert told.count("spent") == 1
    assert all("Another command" in one or "just now" in one for one in told if one != "spent")
    assert [path.name for path in work.folder.glob(".*")] == []


def test_a_key_in_use_is_refused_and_said_how_to_free(begin):
    work = begin()
    (work.folder / ".a.key.used").write_bytes(b"")
    with pytest.raises(ValueError, match=r"Another command is using .* \.a\.key\.used is there"):
        work.mask("a")
    (work.folder / ".a.key.used").unlink()
    work.mask("a")


# -- what does not fit is refused by name -----------------------------------------------------


def test_too_few_sites_are_refused(tmp_path):
    federation.write_scale(tmp_path / "scale.csv", NAMES, SCALE)
    for site in "ab":
        make_key(tmp_path / site)
    public = [tmp_path / "a.pub", tmp_path / "b.pub"]
    for some in ([], public[:1], public):
        with pytest.raises(ValueError, match=f"needs 3 to 1000 sites; got {len(some)}"):
            agree(some, tmp_path / "scale.csv", [0, 1], tmp_path / "agreement.json")
    with pytest.raises(ValueError, match="Two sites have one name: 'a' and 'a'"):
        agree([*public, public[0]], tmp_path / "scale.csv", [0, 1], tmp_path / "agreement.json")
    (tmp_path / "other").mkdir()
    make_key(tmp_path / "other" / "a")
    twins = [*public, tmp_path / "other" / "a.pub"]
    with pytest.raises(ValueError, match="Two sites have one name"):
        agree(twins, tmp_path / "scale.csv", [0, 1], tmp_path / "agreement.json")
    assert not (tmp_path / "agreement.json").exists()


def test_two_sites_with_one_key_are_refused(begin):
    work = begin()
    first, second, third = work.agreed.sites
    stolen = replace(third, exchange=first.exchange)
    with pytest.raises(ValueError, match="Two sites have one key: 'a' and 'c'"):
        replace(work.agreed, sites=(first, second, stolen))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["rest", "rest"]}, "two different labels; got 'rest' twice"),
        ({"classes": ["rest"]}, "classes must be two different labels; got"),
        ({"classes": ["rest", 1]}, "classes must be two different labels; got"),
        ({"min_tasks": 1}, "min_tasks must be a whole number of at least 2"),
        ({"max_tasks": 0}, "max_tasks must be a whole number of at least 1"),
        ({"max_tasks": 3}, "3 sites of at most 3 tasks cannot have 10 tasks"),
        ({"without": ["means"]}, "without must be one of 'within_covariance'"),
    ],
)
def test_bad_agreements_are_refused(begin, options, message):
    with pytest.raises(ValueError, match=message):
        begin(**options)


def test_a_feature_twice_in_the_scale_is_refused(tmp_path):
    federation.write_scale(tmp_path / "scale.csv", ("a", "b", "a"), (1.0, 1.0, 1.0))
    for site in "abc":
        make_key(tmp_path / site)
    public = [tmp_path / f"{site}.pub" for site in "abc"]
    with pytest.raises(ValueError, match="has the feature 'a' twice"):
        agree(public, tmp_path / "scale.csv", [0, 1], tmp_path / "agreement.json")


def test_an_agreement_travels_to_the_last_bit(begin):
    work = begin()
    work.agreed.save(work.folder / "again.json")
    again = Agreement.load(work.folder / "again.json")
    assert again.digest == work.agreed.digest
    np.testing.assert_array_equal(again.feature_scale, SCALE)
    assert again.classes == ("rest", "task")
    assert repr(again) == "Agreement(n_sites=3, n_features=4, classes=('rest', 'task'))"
    assert begin(folder="other").agreed.digest != again.digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: told["features"][0].update(scale=2.0), "was altered after it was made"),
        (lambda told: told.update(min_tasks=2), "was altered after it was made"),
        (lambda told: told.update(crossfade="0.1"), "was altered after it was made"),
        (lambda told: told.update(round_id="00"), "was altered after it was made"),
        (lambda told: told.update(extra=1), "was altered after it was made"),
        (lambda told: told.update(digest="00"), "was altered after it was made"),
        (lambda told: told.update(code="00"), "was altered after it was made"),
        (lambda told: told["fixed_point"].update(n_words=1), "another version of Crossfade"),
        (lambda told: told["fixed_point"].update(step=1.0), "was altered after it was made"),
        (lambda told: told["sites"][0].update(name="x"), "the fingerprint of 'x' is not that"),
        (lambda told: told["sites"][0].update(x25519="00"), "the fingerprint of 'a' is not"),
        (lambda told: told["sites"][0].update(x25519="?"), "has no keys of a site"),
        (
            lambda told: told["sites"][0].update(name=7),
            "printable text without spaces around it; got 7",
        ),
        (lambda told: told["sites"].pop(), "needs 3 to 1000 sites; got 2"),
        (lambda told: told.update(sites=3), "holds no valid agreement"),
        (lambda told: told.pop("classes"), "holds no valid agreement: 'classes' is missing"),
        (lambda told: told["features"][0].update(scale=-1.0), "positive"),
        (lambda told: told["features"][0].update(scale=10**400), "holds no valid agreement"),
        (lambda told: told["features"][0].update(scale=float("nan")), "must be finite"),
        (lambda told: told.update(max_tasks=True), "max_tasks must be a whole number"),
        (lambda told: told.update(parts=["all"]), "part must be one of"),
        (lambda told: told.update(version=2), "is of version 2; this Crossfade knows version 1"),
        (lambda told: told.update(format="x"), "is something else, not an agreement"),
    ],
)
def test_an_altered_agreement_is_refused(begin, change, message):
    work = begin()
    told = json.loads(work.agreement.read_text())
    change(told)
    work.agreement.write_text(json.dumps(told))
    for use in (lambda: work.mask("a"), lambda: work.sum()):
        with pytest.raises(ValueError, match=message):
            use()


def test_files_in_the_place_of_others_are_refused_by_what_they_are(begin):
    work = begin()
    scale, out = work.folder / "scale.csv", work.folder / "out"
    work.mask("b")
    public = [work.folder / f"{site}.pub" for site in work.sites]
    with pytest.raises(ValueError, match=r"a\.key is a secret key, not a public key.* to yourself"):
        agree([work.key("a"), *public[1:]], scale, [0, 1], out)
    with pytest.raises(ValueError, match=r"b\.masked is a masked file, not a public key"):
        agree([work.file("b"), *public[1:]], scale, [0, 1], out)
    with pytest.raises(ValueError, match=r"scale\.csv is something else, not a public key"):
        agree([scale, *public[1:]], scale, [0, 1], out)
    with pytest.raises(ValueError, match=r"a\.pub is a public key, not a secret key"):
        work.mask("a", key=public[0])
    with pytest.raises(ValueError, match=r"a\.pub is a public key, not an agreement"):
        work.mask("a", agreement=public[0])
    with pytest.raises(ValueError, match=r"agreement\.json is not a masked file"):
        sum_masked([work.agreement], work.agreement)
    with pytest.raises(ValueError, match="is an agreement, not a secret key"):
        work.mask("a", key=work.agreement)
    with pytest.raises(ValueError, match="is a folder, and no file to read"):
        work.mask("a", key=work.folder)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        sum_masked([work.folder], work.agreement)
    (work.folder / "huge.json").write_bytes(bytes(8_000_001))
    with pytest.raises(ValueError, match="has 8000001 bytes, and a file of its kind"):
        work.mask("a", agreement=work.folder / "huge.json")
    work.key("c").write_text(json.dumps({"format": "crossfade-secret-key", "version": 1}))
    with pytest.raises(ValueError, match="holds no secret key, or was altered"):
        work.mask("c")
    (work.folder / "new.masked").write_bytes(b"crossfade masked 2\n" + bytes(200))
    with pytest.raises(ValueError, match="one of another version of Crossfade"):
        sum_masked([work.folder / "new.masked"], work.agreement)
    work.mask("a")


def test_a_key_of_another_agreement_is_refused(begin):
    work, other = begin(folder="one"), begin(folder="other")
    with pytest.raises(ValueError, match=r"is the key of 'a' .* which is no site of .*'a', 'b'"):
        work.mask("a", key=other.key("a"))
    other.mask("a")


def test_a_public_key_whose_secret_is_known_is_refused(begin):
    work = begin()
    weak = Site("weak", bytes(32), work.agreed.sites[2].signing)
    (work.folder / "weak.pub").write_bytes(content_of(PUBLIC, site_fields(weak)))
    public = [work.folder / f"{site}.pub" for site in ("a", "b", "weak")]
    agree(public, work.folder / "scale.csv", ["rest", "task"], work.agreement)
    with pytest.raises(ValueError, match="The public key of 'weak' is none"):
        work.mask("a")


def renamed(tasks, **changes):
    return [
        Task(task.X, changes.get("y", task.y), task.name, feature_names=changes.get("names", NAMES))
        for task in tasks
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"names": ("alpha", "beta", "gamma", "mu")},
            "Features of the agreement are missing: 'del",
        ),
        (
            {"names": NAMES[::-1]},
            "in another order: 'delta' stands where the agreement has 'alpha'",
        ),
        ({"names": None}, "Features of the agreement are missing"),
        ({"y": np.repeat([0, 1], [9, 11])}, r"classes are \(0, 1\), the agreed ones \('rest', 'ta"),
    ],
)
def test_tasks_that_were_not_agreed_on_are_refused(begin, tasks, change, message):
    work = begin()
    with pytest.raises(ValueError, match=message):
        work.mask("a", renamed(tasks[:5], **change))
    work.mask("a")


def test_parts_that_a_site_cannot_give_are_refused(begin, make_tasks):
    work = begin()
    few = make_tasks(3, n_each=(2, 2), labels=("rest", "task"), feature_names=NAMES)
    with pytest.raises(ValueError, match=r"give no direction_noise, .* --without direction_noise"):
        work.mask("a", few)
    less = begin(folder="less", without=["direction_noise"])
    less.tasks["a"] = few
    own = less.mask_all()
    assert less.sum().n_tasks == sum(one.n_tasks for one in own)


def test_sums_too_large_for_fixed_point_are_refused(begin, tasks):
    work = begin()
    off = np.array([0.0, 0.0, 1e8, 0.0])
    far = [Task(task.X + off, task.y, task.name, feature_names=NAMES) for task in tasks[:5]]
    with pytest.raises(
        ValueError, match=r"class_means has .* the feature 'gamma', .* allows 2\.35e\+13"
    ):
        work.mask("a", far)
    work.mask("a")


# -- masked files -----------------------------------------------------------------------------


def test_a_missing_file_is_named(begin):
    work = begin(4)
    work.mask_all()
    with pytest.raises(ValueError, match="masked file of 'b', 'd' is missing; only all 4 together"):
        work.sum("ac")


def test_a_file_twice_is_refused(begin):
    work = begin()
    work.mask_all()
    copy = work.folder / "copy.masked"
    copy.write_bytes(work.file("a").read_bytes())
    with pytest.raises(ValueError, match=r"a\.masked and .*copy\.masked are both of 'a'"):
        sum_masked([*map(work.file, work.sites), copy], work.agreement)


def test_a_file_of_another_agreement_is_refused(begin):
    work, other = begin(folder="one"), begin(folder="other")
    for one in (work, other):
        one.mask_all()
    message = r"other.a\.masked was masked for another agreement.* Sites, scale, labels or limits"
    with pytest.raises(ValueError, match=message):
        sum_masked([other.file("a"), work.file("b"), work.file("c")], work.agreement)


def test_a_file_of_an_unknown_site_is_refused(begin):
    work, other = begin(folder="one"), begin(folder="other")
    for one in (work, other):
        one.mask_all()
    stranger = bytearray(other.file("a").read_bytes())
    stranger[19:51] = work.agreed.digest
    other.file("a").write_bytes(stranger)
    with pytest.raises(ValueError, match=r"a\.masked comes from an unknown site, "):
        sum_masked([other.file("a"), work.file("b"), work.file("c")], work.agreement)


@pytest.mark.parametrize("place", [80, 134, 135, 1000, -1])
def test_an_altered_file_is_refused(begin, place):
    work = begin()
    work.mask_all()
    content = bytearray(work.file("b").read_bytes())
    content[place] ^= 1
    work.file("b").write_bytes(content)
    with pytest.raises(ValueError, match=r"b\.masked was cut or altered after 'b' wrote it"):
        work.sum()


@pytest.mark.parametrize("change", [lambda told: told[:-8], lambda told: told + bytes(8)])
def test_a_cut_file_is_refused(begin, change):
    work = begin()
    work.mask_all()
    work.file("b").write_bytes(change(work.file("b").read_bytes()))
    with pytest.raises(ValueError, match="was cut or altered after 'b' wrote it"):
        work.sum()


def test_a_file_under_the_name_of_another_site_is_refused(begin):
    work = begin()
    work.mask_all()
    content = bytearray(work.file("b").read_bytes())
    content[51:71] = work.secrets["c"].site.fingerprint
    work.file("b").write_bytes(content)
    with pytest.raises(ValueError, match="was cut or altered after 'c' wrote it"):
        work.sum()


def test_too_few_tasks_are_refused(begin, tasks):
    work = begin(given=tasks[:9])
    work.mask_all()
    with pytest.raises(ValueError, match="together have 9 tasks; they agreed on 10 at least"):
        work.sum()


def test_too_few_people_are_refused(begin, tasks):
    work = begin(given=sessions_of(tasks, 2))
    work.mask_all()
    with pytest.raises(ValueError, match="have 9 people, in 15 tasks; they agreed on 10 at least"):
        work.sum()


def test_a_key_twice_in_a_file_is_refused(begin):
    work = begin()
    text = work.agreement.read_text()
    work.agreement.write_text(text.replace("{", '{"min_tasks": 2,', 1))
    with pytest.raises(ValueError, match="is something else, not an agreement"):
        work.mask("a")


def lie(**changes):
    """A site that hands over something else."""

    def change(sums):
        return layout.packed(sums | {name: make(sums) for name, make in changes.items()})

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lie(n_tasks=lambda told: 5.5), "the number of tasks is 15.5, of 3 sites"),
        (lie(n_tasks=lambda told: -50.0), "the number of tasks is -40, of 3 sites"),
        (lie(n_tasks=lambda told: 1e6), "the number of tasks is 1000010"),
        (lie(n_tasks=lambda told: 6), "the trace of the outer products is 15, not 16"),
        (lie(direction_sum=lambda told: 9.0 * told["direction_sum"]), "sum to a length of"),
        (lie(outer_sum=lambda told: 2.0 * told["outer_sum"]), "the trace of the outer products is"),
        (
            lie(outer_sum=lambda told: 5.0 * np.diag([-9.0, 10.0, 0.0, 0.0])),
            "the sum and the outer products contradict each other",
        ),
        (
            lie(within_covariance=lambda told: -99.0 * told["within_covariance"]),
            "within_covariance must have no negative eigenvalue",
        ),
        (
            lie(**{"class_means.outer_sum": lambda told: -1e3 * np.eye(8)}),
            "class_means must have no negative eigenvalue",
        ),
        (
            lie(**{"class_means.n_people": lambda told: 4}),
            "class means are of 14 people, not 15",
        ),
        (
            lie(**{"people.n_people": lambda told: 6}),
            "the number of people is 16, of 15 tasks",
        ),
        (
            lie(**{"people.n_people": lambda told: 4}),
            "the trace of the outer products is 15, not 14",
        ),
        (
            lie(**{"people.direction_sum": lambda told: 9.0 * told["direction_sum"]}),
            "sum to a length of",
        ),
        (
            lie(**{"replay.convex": lambda told: -1.0 + told["replay.convex"]}),
            "These are no sums of forecasts",
        ),
    ],
)
def test_sums_that_no_tasks_have_are_refused(begin, monkeypatch, change, message):
    work = begin()
    for site in "bc":
        work.mask(site)
    monkeypatch.setattr(masked, "packed", change)
    work.mask("a")
    with pytest.raises(ValueError, match=f"The sum fails its check: .*{message}"):
        work.sum()


def test_features_centred_at_some_sites_alone_are_refused(begin):
    work = begin()
    for site in "bc":
        work.mask(site)
    centred = [
        Task(task.X - np.mean(task.X, 0), task.y, task.name, feature_names=NAMES)
        for task in work.tasks["a"]
    ]
    work.mask("a", centred)
    with pytest.raises(ValueError, match="Some sites have features that were centred person by pe"):
        work.sum()


# -- scales and commands ----------------------------------------------------------------------


def test_the_scale_travels_through_its_file_to_the_last_bit(tmp_path):
    scale = np.random.default_rng(0).lognormal(size=4)
    federation.write_scale(tmp_path / "scale.csv", NAMES, scale)
    names, read = federation.read_scale(tmp_path / "scale.csv")
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
        federation.read_scale(tmp_path / "scale.csv")


def test_without_cryptography_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.delattr(federation, "_primitives", raising=False)
    monkeypatch.setitem(sys.modules, "crossfade.federation._primitives", None)
    with pytest.raises(ImportError, match=r"pip install \"crossfade\[federation\]\""):
        make_key(tmp_path / "a")
    federation.write_scale(tmp_path / "scale.csv", NAMES, SCALE)
    assert federation.read_scale(tmp_path / "scale.csv")[0] == NAMES


def test_commands_know_all_parts():
    assert _PARTS == layout.PARTS


def test_a_masked_file_is_not_masked_again(begin):
    work = begin()
    work.mask_all()
    words = ["federate", "mask", str(work.file("b")), "--agreement", str(work.agreement)]
    words += ["--key", str(work.key("a")), "-o", str(work.folder / "x.masked")]
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 1
    assert "is a masked file, which `crossfade federate sum` adds up" in result.stderr
    assert not Path(work.folder / "x.masked").exists()


def test_names_of_classes_are_labels_where_they_were_agreed_on(tmp_path, monkeypatch):
    """Mental Math has the labels 0 and 1, which people call rest and arithmetic."""
    monkeypatch.chdir(tmp_path)
    tasks = load_mental_math()
    write_scale("scale.csv", tasks.feature_names, TaskPrior.from_tasks(tasks[:9]).feature_scale)
    for site in "abc":
        make_key(site)
    words = ["rest", "arithmetic"]
    agree(["a.pub", "b.pub", "c.pub"], "scale.csv", words, "agreement.json")
    own = [
        mask(tasks[4 * place : 4 * place + 4], "agreement.json", f"{site}.key", f"{site}.masked")
        for place, site in enumerate("abc")
    ]
    both = sum_masked(["a.masked", "b.masked", "c.masked"], "agreement.json")
    assert both.classes == ("arithmetic", "rest")
    expected = own[0] + own[1] + own[2]
    np.testing.assert_allclose(both.direction_sum, expected.direction_sum, atol=1e-9)
