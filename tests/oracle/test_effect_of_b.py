"""Algorithm 1 by its number of draws: against plain loops, the exact minimum and the paper."""

import numpy as np
import pytest
from scipy.special import ndtr

from crossfade import load_mental_math
from crossfade.risk._choose import least_risk
from crossfade.risk._law import BlendLaw
from crossfade.simulate._repeats import reference
from crossfade.study import CalibrationStudy
from crossfade.study._batch import Batch
from crossfade.study._budgets import windows_of_each_class
from crossfade.study._effect_of_b import _drawn_alphas, _unscaled, _visible, effect_of_b
from crossfade.study._paper_methods import as_printed
from crossfade.study._sources import Sources
from crossfade.study._splits import draw_splits
from crossfade.study._validate import check_tasks

GRID = np.linspace(0.0, 1.0, 11)


def world(proportion, n_splits):
    """Training sets of subject 6 of Mental Math, and the law of its blends on each."""
    classes, participants = check_tasks(load_mental_math())
    sources = Sources.of(participants, classes, 0, keep_windows=False)
    one = participants[6]
    n_each = windows_of_each_class(proportion, one.counts)
    splits = draw_splits(one.label, n_each, n_splits, "consecutive", np.random.default_rng(0))
    batch = Batch(one.X, classes, splits)
    own = as_printed(batch)
    crowd = sources.without(one.group)
    prior = crowd.paper_prior
    law = BlendLaw(own, prior.mean_direction, prior.crowd.psi("authors"))
    return batch, sources.sums.balanced[crowd.kept], law


@pytest.mark.parametrize("proportion", [0.05, 0.1, 0.2])
def test_what_is_drawn_has_the_exact_risks(proportion):
    _, _, law = world(proportion, 4)
    exact = least_risk(law, GRID).risks
    rng = np.random.default_rng(1)
    means, roots = _visible(law)
    for place in range(4):
        for at in range(GRID.size):
            mean, root = means[place, at], roots[place, at]
            drawn = rng.standard_normal((20_000, mean.size)) @ root.T + mean
            risks = ndtr(-drawn[:, -1] / np.linalg.norm(drawn[:, :-1], axis=1))
            error = risks.std() / np.sqrt(risks.size)
            assert abs(risks.mean() - exact[place, at]) < 4.5 * error + 1e-9


@pytest.mark.parametrize(("proportion", "n_draws"), [(0.05, 10), (0.1, 100), (0.2, 10)])
def test_alphas_scatter_like_those_of_a_plain_loop(proportion, n_draws):
    """Points 2, 8 and 14 of the paper's authors, one run of Algorithm 1 after the other."""
    batch, W, law = world(proportion, 3)
    rng = np.random.default_rng(2)
    mean = W.mean(0)
    mu = mean / np.linalg.norm(mean)
    psi = (1.0 - ((W @ mu) ** 2).mean()) / (len(W) * (mean @ mean))
    for place, labelled in enumerate(batch.splits.labelled):
        X, y = batch.X[labelled], batch.splits.label
        gap = (X[y == 1].mean(0) - X[y == 0].mean(0)) / 2
        size = np.linalg.norm(gap)
        nu = gap / size
        centred = np.concatenate([X[y == k] - X[y == k].mean(0) for k in (0, 1)]) / size
        sigma = centred.T @ centred / (len(y) - 2)
        inverse = np.linalg.pinv(sigma, rcond=1e-10, hermitian=True)
        raw = inverse @ nu
        own = ((1.0 + nu @ raw) * inverse - np.outer(raw, raw)) / len(y)
        omega = raw / np.linalg.norm(raw)
        plain = []
        for _ in range(150):
            risks = []
            for alpha in GRID:
                drawn = rng.multivariate_normal(
                    alpha * omega + (1 - alpha) * mu,
                    alpha**2 * own + (1 - alpha) ** 2 * psi * np.eye(9),
                    size=n_draws,
                    method="eigh",
                )
                score = drawn @ nu / np.sqrt(np.vecdot(drawn @ sigma, drawn))
                risks.append(ndtr(-score).mean())
            plain.append(GRID[np.argmin(risks)])
        means, roots = _visible(law)
        ours = _drawn_alphas(means[place], roots[place], n_draws, 1500, rng)
        error = np.hypot(np.std(plain) / np.sqrt(150), ours.std() / np.sqrt(1500)) + 1e-3
        assert abs(ours.mean() - np.mean(plain)) < 4.5 * error
        assert ours.std() == pytest.approx(np.std(plain), rel=0.35, abs=0.01)


@pytest.fixture(scope="module")
def table():
    return effect_of_b(
        load_mental_math(), task="Subject06", n_draws=(10, 100, 1000), n_splits=20, n_repeats=10
    )


def test_more_draws_come_nearer_the_exact_alpha(table):
    for _, part in table.groupby("proportion"):
        assert part["n_draws"].tolist() == [10, 100, 1000, 10_000]
        assert (np.diff(part["to_exact"]) < 0.0).all()
        # Steps of the grid are 0.1: with 10,000 draws most alphas are the exact one.
        assert part["to_exact"].iloc[-1] < 0.05
        assert (np.diff(part["error"].iloc[:-1]) < 0.0).all()
        assert part["error"].isna().tolist() == [False, False, False, True]


def test_the_papers_numbers_stand_beside_ours(table):
    printed = reference("figure8_effect_of_B.csv").set_index(["p", "B"])["mean_absolute_error"]
    shown = table.dropna(subset="reference").set_index(["proportion", "n_draws"])["reference"]
    assert len(shown) == 9
    for cell, value in shown.items():
        assert value == printed[cell]


def test_the_papers_curve_is_of_windows_that_were_not_scaled(table):
    """Figure 8 is what its authors ran; the algorithm of the text has a third of its errors."""
    both = table.dropna(subset="reference")
    assert (both["reference"] - both["error"]).max() > 0.1
    # All of the figure: the draws of a part are others, and a cell has a standard error of 0.01.
    theirs = effect_of_b(load_mental_math(), recipe="authors", task="Subject06")
    theirs = theirs.dropna(subset="reference")
    assert len(theirs) == 21
    assert (theirs["error"] - theirs["reference"]).abs().max() < 0.03


@pytest.mark.parametrize("proportion", [0.05, 0.2])
def test_the_law_of_unscaled_windows(proportion):
    """pinv(S) m_1 of unit length, with the covariance of the text for the raw vector."""
    batch, W, scaled = world(proportion, 3)
    law = scaled._replace(person=_unscaled(scaled.person))
    means, roots = _visible(law)
    exact = least_risk(law, GRID).risks
    mean = W.mean(0)
    mu = mean / np.linalg.norm(mean)
    psi = (1.0 - ((W @ mu) ** 2).mean()) / (len(W) * (mean @ mean))
    rng = np.random.default_rng(3)
    for place, labelled in enumerate(batch.splits.labelled):
        X, y = batch.X[labelled], batch.splits.label
        nu = X[y == 1].mean(0)
        centred = np.concatenate([X[y == k] - X[y == k].mean(0) for k in (0, 1)])
        sigma = centred.T @ centred / (len(y) - 2)
        inverse = np.linalg.pinv(sigma, rcond=1e-10, hermitian=True)
        raw = inverse @ nu
        own = ((1.0 + nu @ raw) * inverse - np.outer(raw, raw)) / len(y)
        omega = raw / np.linalg.norm(raw)
        for at, alpha in enumerate(GRID):
            drawn = rng.multivariate_normal(
                alpha * omega + (1 - alpha) * mu,
                alpha**2 * own + (1 - alpha) ** 2 * psi * np.eye(9),
                size=20_000,
                method="eigh",
            )
            plain = ndtr(-(drawn @ nu) / np.sqrt(np.vecdot(drawn @ sigma, drawn)))
            mean_at, root = means[place, at], roots[place, at]
            seen = rng.standard_normal((20_000, mean_at.size)) @ root.T + mean_at
            ours = ndtr(-seen[:, -1] / np.linalg.norm(seen[:, :-1], axis=1))
            error = plain.std() / np.sqrt(20_000)
            assert abs(plain.mean() - ours.mean()) < 4.5 * np.sqrt(2.0) * error + 1e-9
            assert abs(plain.mean() - exact[place, at]) < 4.5 * error + 1e-6


def small(make_tasks, **options):
    options = {"proportions": [0.3], "n_draws": [5], "n_splits": 4, "n_repeats": 3} | options
    return effect_of_b(make_tasks(5, n_each=(12, 10)), **options)


def test_the_session_is_the_one_nearest_the_median(make_tasks):
    tasks = make_tasks(5, n_each=(12, 10))
    study = CalibrationStudy(tasks, methods=["paper"], budgets=[0.1], n_splits=4, random_state=3)
    accuracy = study.run().rows.groupby("task")["balanced_accuracy"].mean()
    [chosen] = small(make_tasks, random_state=3)["task"].unique()
    assert accuracy[chosen] == accuracy.median()


def test_a_seed_says_it_all(make_tasks):
    first, again, other = (small(make_tasks, task="p1", random_state=k) for k in (0, 0, 1))
    assert first.equals(again)
    assert not first.equals(other)


def test_the_result_does_not_depend_on_the_number_of_processes(make_tasks):
    one, two = (small(make_tasks, task="p1", n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.equals(two)


def test_progress_is_reported(make_tasks):
    seen = []
    small(make_tasks, task="p1", on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "nobody"}, "no task 'nobody'.*'p0'"),
        ({"proportions": [2]}, "below 1"),
        ({"proportions": []}, "at least one"),
        ({"n_draws": [0]}, "n_draws must be a whole number of at least 1"),
        ({"n_repeats": 0}, "n_repeats"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"recipe": "text"}, "recipe must be one of 'printed', 'authors'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make_tasks, options, message):
    with pytest.raises(ValueError, match=message):
        small(make_tasks, **options)
