"""Rehearsals: sums by loops, the regression by hand, and are the forecasts true?"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

from crossfade import (
    ConvexBlendClassifier,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    Task,
    TaskPrior,
    forecast_labels,
)
from crossfade.blend import fit_rule
from crossfade.fisher import ClassMoments
from crossfade.prior import ForecastRecord, label_count_of
from crossfade.simulate import draw_directions

#: Curves begin with fewer labels than there are, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:The blend has")

LABEL_COUNTS = (0, 1, 2, 3, 5, 8, 13, 21, 34)
BLENDS = {
    "convex": ConvexBlendClassifier,
    "posterior": PosteriorBlendClassifier,
    "hierarchical": HierarchicalBlendClassifier,
}


def draw_people(rng, n_people, n_each, d=5, spread=0.5, gap=0.7, n_classes=2):
    """Tasks of people whose class means are normal about those of a crowd, windows independent."""
    axis = np.zeros((n_classes, d))
    axis[np.arange(n_classes), np.arange(n_classes)] = gap * np.sqrt(2.0)
    sizes = np.broadcast_to(n_each, (n_people, n_classes))
    tasks = []
    for own in sizes:
        label = np.repeat(np.arange(n_classes), own)
        means = axis + spread * rng.normal(size=(n_classes, d)) + 0.5 * rng.normal(size=d)
        tasks.append(Task(rng.normal(size=(label.size, d)) + means[label], label))
    return tasks


def plain_sums(forecast, outcome):
    """Sums of 1, z, a, z^2, za, a^2 for every pair of rungs, one person and run at a time."""
    n_people, n_runs, n_rungs = forecast.shape
    sums = np.zeros((n_rungs, n_rungs, 6))
    for person in range(n_people):
        for first in range(n_rungs):
            for second in range(n_rungs):
                for run in range(n_runs):
                    raw, later = forecast[person, run, first], outcome[person, run, second]
                    if np.isnan(raw) or np.isnan(later):
                        continue
                    z, a = ndtri(np.clip(raw, 0.02, 0.98)), ndtri(np.clip(later, 0.02, 0.98))
                    terms = np.array([1.0, z, a, z * z, z * a, a * a])
                    sums[first, second] += terms / n_runs
    return sums


def draw_runs(rng, n_people=20, n_runs=2):
    """Forecasts and accuracies of people of whom some lack windows for the higher label counts."""
    level = rng.normal(0.6, 0.5, size=(n_people, 1, 1))
    forecast = ndtr(level + 0.4 * rng.normal(size=(n_people, n_runs, 9)))
    outcome = ndtr(level + 0.3 * rng.normal(size=(n_people, n_runs, 9)))
    forecast[..., 0] = 0.5
    for person, most in enumerate(rng.integers(3, 10, n_people)):
        forecast[person, :, most:] = outcome[person, :, most:] = np.nan
    # Beyond the clip.
    forecast[0, 0, 1], outcome[1, 1, 2] = 1.0, 0.0
    return forecast, outcome


def test_sums_are_those_of_a_loop_and_a_person_counts_once():
    forecast, outcome = draw_runs(np.random.default_rng(51))
    record = ForecastRecord.of(forecast, outcome)
    np.testing.assert_allclose(record.sums, plain_sums(forecast, outcome), rtol=1e-10, atol=1e-12)
    tried = np.isfinite(forecast[:, 0]).sum(0)
    np.testing.assert_allclose(record.n_people, tried)


def plain_line(z, a):
    """zbar, abar, b+, s^2, se^2 and J of probits of people, as the design has them."""
    n, slope_known = len(z), np.ptp(z) > 0.0
    s_zz, s_aa = np.var(z), np.var(a)
    s_za = np.mean((z - z.mean()) * (a - a.mean()))
    if not slope_known:
        return z.mean(), a.mean(), 0.0, s_aa * n / (n - 1), 0.0, n
    b = s_za / s_zz
    residual = ((a - a.mean() - b * (z - z.mean())) ** 2).sum() / (n - 2)
    error = residual / (n * s_zz)
    shrink = max(0.0, 1.0 - error / b**2) if b > 0.0 else 0.0
    kept = shrink * b
    rest = (s_aa - 2.0 * kept * s_za + kept**2 * s_zz) * n / (n - 1 - (kept > 0.0))
    return z.mean(), a.mean(), kept, rest, shrink * error, n


def plain_calibration(line, accuracy):
    """m and S."""
    z, a, slope, rest, error, n = line
    away = ndtri(np.clip(accuracy, 0.02, 0.98)) - z
    return a + slope * away, np.sqrt(rest * (1.0 + 1.0 / n) + away**2 * error)


def one_run(rng, n_people, follow, n_rungs=9):
    """Probits (n_people, n_rungs) of forecasts and accuracies; all have enough windows."""
    level = rng.normal(0.7, 0.4, size=(n_people, 1))
    z = level + 0.4 * rng.normal(size=(n_people, n_rungs))
    a = follow * level + (1 - follow) * 0.7 + 0.2 * rng.normal(size=(n_people, n_rungs))
    z[:, 0] = 0.0
    return np.clip(z, -2.0, 2.0), np.clip(a, -2.0, 2.0)


@pytest.mark.parametrize("n_people", [5, 12, 200])
@pytest.mark.parametrize("follow", [1.0, 0.0, -1.0], ids=["follows", "unrelated", "reversed"])
def test_regression_is_that_of_the_design(n_people, follow):
    """On every rung and for every pair: b, se^2, the shrunk b+, s^2, then m and S^2."""
    z, a = one_run(np.random.default_rng([53, n_people]), n_people, follow)
    record = ForecastRecord.of(ndtr(z)[:, None], ndtr(a)[:, None])
    slopes = []
    for first, n in enumerate(LABEL_COUNTS):
        for second, later in enumerate(LABEL_COUNTS):
            line = plain_line(z[:, first], a[:, second])
            slopes.append(line[2])
            for accuracy in (0.3, 0.62, 0.97, 0.999):
                found = record.calibrate(np.array(accuracy), np.array(n), np.array(later))
                np.testing.assert_allclose(found[:2], plain_calibration(line, accuracy), rtol=1e-7)
                assert found[2] == max(n_people - 2, 1)
            if first == second:
                same = record.calibrate(np.array(0.62), np.array(n))
                np.testing.assert_allclose(same[:2], plain_calibration(line, 0.62), rtol=1e-7)
    assert min(slopes) >= 0.0
    # Without a label nothing tells people apart.
    assert max(slopes[:9]) == 0.0
    if follow == 1.0 and n_people == 200:
        assert min(slopes[9:]) > 0.3
    if follow == -1.0 and n_people == 200:
        assert max(slopes) == 0.0


def test_between_rungs_everything_is_linear_in_the_logarithm():
    z, a = one_run(np.random.default_rng(54), 40, 1.0)
    record = ForecastRecord.of(ndtr(z)[:, None], ndtr(a)[:, None])
    rungs = np.log([0.5, *LABEL_COUNTS[1:]])
    lines = np.array([[plain_line(z[:, i], a[:, j]) for j in range(9)] for i in range(9)])

    def between(n, later):
        """Linear in each of both."""
        where = [np.clip(np.log(max(one, 0.5)), rungs[0], rungs[-1]) for one in (n, later)]
        rows = [
            np.array([np.interp(where[0], rungs, lines[:, j, part]) for j in range(9)])
            for part in range(6)
        ]
        return [np.interp(where[1], rungs, row) for row in rows]

    for n, later in ((4, 4), (0.7, 0.7), (6.5, 17.0), (0, 10), (100, 100), (0.2, 50), (8, 4)):
        found = record.calibrate(np.array(0.66), np.array(float(n)), np.array(float(later)))
        wanted = plain_calibration(between(n, later), 0.66)
        np.testing.assert_allclose(found[:2], wanted, rtol=1e-7)


def test_label_counts_with_fewer_than_five_people_are_left_out():
    forecast, outcome = draw_runs(np.random.default_rng(55), 12)
    forecast[4:, :, 5:] = outcome[4:, :, 5:] = np.nan
    record = ForecastRecord.of(forecast, outcome)
    assert 0.0 < record.n_people[5] < 5.0
    assert record.able.max() < 5
    top = int(record.able.max())
    # Beyond the last rung it is the last.
    for far in (13.0, 500.0):
        np.testing.assert_allclose(
            record.calibrate(np.array(0.7), np.array(far)),
            record.calibrate(np.array(0.7), np.array(float(LABEL_COUNTS[top]))),
        )
    alone = ForecastRecord.of(forecast[:4], outcome[:4])
    assert alone.able.size == 0


def test_unequal_numbers_are_worth_their_harmonic_mean():
    counts = np.array([[3, 3], [24, 2], [1, 7], [0, 0], [5, 0], [0, 1]], float)
    wanted = [3.0, 2.0 / (1 / 24 + 1 / 2), 2.0 / (1 + 1 / 7), 0.0, np.sqrt(0.5), np.sqrt(0.5)]
    np.testing.assert_allclose(label_count_of(counts), wanted)
    # One class missing: halfway between rungs 0 and 1, in the logarithm.
    assert np.log(label_count_of(counts[4])) == pytest.approx((np.log(0.5) + np.log(1.0)) / 2.0)
    np.testing.assert_allclose(label_count_of(np.array([2.0, 4.0, 4.0])), 3.0)
    # Of four classes, those seen count.
    steps = [
        label_count_of(np.array(one, float)) for one in ((2, 0, 0, 0), (2, 1, 0, 0), (9, 1, 2, 0))
    ]
    assert 0.5 < steps[0] < steps[1] < steps[2] < 1.0


@pytest.mark.parametrize(
    ("verb", "n_each"),
    [*((verb, [(14, 14), (12, 9)] * 4) for verb in BLENDS), ("hierarchical", [(9, 8, 10)] * 7)],
)
def test_a_rehearsal_is_fitting_everyone_with_the_prior_of_the_others(verb, n_each):
    """Records of ``from_tasks`` against the estimators, source by source and run by run."""
    n_people, n_classes = len(n_each), len(n_each[0])
    tasks = draw_people(
        np.random.default_rng([56, n_classes]), n_people, n_each, d=3, n_classes=n_classes
    )
    prior = TaskPrior.from_tasks(tasks)
    draws = np.random.default_rng(0).random((n_people, 2, n_classes))
    forecast, outcome = np.full((2, n_people, 2, 9), np.nan)
    for place, task in enumerate(tasks):
        others = tasks[:place] + tasks[place + 1 :]
        crowd = TaskPrior.from_tasks(others, feature_scale=prior.feature_scale, rehearse=False)
        if n_classes == 2:
            # Averages that hardly depend on one person are those of all.
            whole, share = prior.directions, n_people - 1.0
            shared = {
                name: share * whole.average(name) for name in ("noise", "within", "autocorrelation")
            }
            worth = share * prior.class_means.log_wishart_dof / n_people
            sums = {
                "directions": replace(crowd.directions, **shared),
                "class_means": replace(crowd.class_means, log_wishart_dof=worth),
            }
            crowd = replace(crowd, sums=sums)
        rows = [task.X[task.y == k] for k in range(n_classes)]
        for run in range(2):
            for rung, n in enumerate(LABEL_COUNTS):
                if min(map(len, rows)) < n + 4:
                    continue
                X, rest = [], []
                for k, own in enumerate(rows):
                    start = int(draws[place, run, k] * (len(own) - n + 1))
                    inside = np.isin(np.arange(len(own)), np.arange(start, start + n))
                    X.append(own[inside])
                    rest.append(own[~inside])
                blend, y = BLENDS[verb](crowd), np.repeat(range(n_classes), n)
                blend = blend.fit(np.concatenate(X), y) if n else blend.start()
                right = [(blend.predict(own) == k).mean() for k, own in enumerate(rest)]
                outcome[place, run, rung] = np.mean(right)
                forecast[place, run, rung] = blend.rule_.raw_forecast if n else 0.5
    np.testing.assert_allclose(
        prior.forecast_records[verb].sums, plain_sums(forecast, outcome), rtol=1e-6, atol=1e-7
    )


@cache
def fresh_people(n_crowds=8, n_sources=60, n_fresh=50, n_each=40):
    """Accuracy found, forecast, ends of the 68 and 90 % intervals, by blend, budget and person."""
    rng = np.random.default_rng(59)
    budgets = (2, 5, 13)
    found = np.empty((len(BLENDS), len(budgets), n_crowds, n_fresh, 6))
    for crowd in range(n_crowds):
        law = TaskPrior.from_tasks(draw_people(rng, n_sources, n_each)).law
        people = np.stack([task.X for task in draw_people(rng, n_fresh, n_each)])
        rows = people.reshape(n_fresh, 2, n_each, -1)
        for place, n in enumerate(budgets):
            y = np.repeat([0, 1], n)
            moments = ClassMoments.of(rows[:, :, :n].reshape(n_fresh, 2 * n, -1), y)
            label = np.repeat([0, 1], n_each - n)
            rest = rows[:, :, n:].reshape(n_fresh, label.size, -1)
            for verb, kind in enumerate(BLENDS):
                rule = fit_rule(moments, law, kind)
                right = (rule.scores(rest)[..., 0] > 0.0) == label
                found[verb, place, crowd] = np.column_stack(
                    [
                        right.mean(1),
                        rule.expected_accuracy,
                        *rule.interval(0.68),
                        *rule.interval(0.9),
                    ]
                )
    return found


@pytest.mark.parametrize("verb", range(3), ids=BLENDS)
def test_intervals_hold_the_accuracy_of_fresh_people_as_often_as_they_say(verb):
    truth, _, low, high, lower, upper = np.moveaxis(fresh_people()[verb], -1, 0)
    narrow = ((low <= truth) & (truth <= high)).mean((1, 2))
    wide = ((lower <= truth) & (truth <= upper)).mean((1, 2))
    assert narrow.mean() == pytest.approx(0.68, abs=0.06)
    assert wide.mean() == pytest.approx(0.9, abs=0.05)
    assert narrow.min() > 0.58
    assert wide.min() > 0.8


def test_intervals_of_ten_sources_hold_as_often():
    truth, _, low, high, lower, upper = np.moveaxis(fresh_people(30, 10)[2], -1, 0)
    narrow = ((low <= truth) & (truth <= high)).mean()
    wide = ((lower <= truth) & (truth <= upper)).mean()
    print(f"ten sources: 68 % interval {narrow:.2f}, 90 % interval {wide:.2f}")
    assert narrow == pytest.approx(0.68, abs=0.06)
    assert wide == pytest.approx(0.9, abs=0.05)


def test_a_stranger_to_a_tight_crowd_is_promised_too_much():
    """Their direction is any, that of the 100 sources is nearly one; less so with more labels."""
    rng = np.random.default_rng(31)
    y, off = np.repeat([0, 1], 50), []
    sources = draw_directions(100, 10, 1000.0, random_state=rng)
    prior = TaskPrior.from_tasks(
        [Task(rng.normal(size=(100, 10)) + np.outer(2 * y - 1, one), y) for one in sources]
    )
    people = draw_directions(300, 10, 1e-9, random_state=rng)
    for n in (2, 5, 13, 34):
        own = np.repeat([0, 1], n)
        X = rng.normal(size=(300, 2 * n, 10)) + (2 * own - 1)[:, None] * people[:, None]
        rule = fit_rule(ClassMoments.of(X, own), prior.law)
        sides = np.vecdot(rule.coef[:, 0], people)[:, None] + rule.intercept * [1.0, -1.0]
        truth = ndtr(sides / np.linalg.norm(rule.coef[:, 0], axis=1)[:, None]).mean(1)
        lower, upper = rule.interval(0.9)
        held = ((lower <= truth) & (truth <= upper)).mean()
        promised = np.mean(rule.expected_accuracy)
        print(f"{n} a class: promise {promised:.2f}, truth {truth.mean():.2f}, held {held:.2f}")
        off.append(promised - truth.mean())
    assert off[0] > off[1] > off[2] > off[3]
    assert off[3] < 0.05


@pytest.mark.parametrize("verb", range(3), ids=BLENDS)
def test_forecast_is_not_worse_than_the_mean_accuracy_of_the_others(verb):
    truth, forecast = np.moveaxis(fresh_people()[verb][..., :2], -1, 0)
    n = truth.shape[-1]
    constant = (truth.sum(-1, keepdims=True) - truth) / (n - 1)
    ours, theirs = (np.sqrt(((one - truth) ** 2).mean((1, 2))) for one in (forecast, constant))
    bias = (forecast - truth).mean()
    assert np.sqrt((ours**2).mean()) <= np.sqrt((theirs**2).mean())
    assert abs(bias) < 0.01


@cache
def fresh_people_of_four_classes(n_crowds=4, n_sources=40, n_fresh=40, n_each=25):
    """Accuracy found, forecast, ends of both intervals, mean confidence; by budget and person."""
    rng = np.random.default_rng(64)
    budgets = (0, 2, 8)
    found = np.empty((len(budgets), n_crowds, n_fresh, 7))
    for crowd in range(n_crowds):
        tasks = draw_people(rng, n_sources + n_fresh, n_each, d=6, gap=0.9, n_classes=4)
        prior = TaskPrior.from_tasks(tasks[:n_sources])
        for person, task in enumerate(tasks[n_sources:]):
            rows = [task.X[task.y == k] for k in range(4)]
            for place, n in enumerate(budgets):
                rule = HierarchicalBlendClassifier(prior)
                X = np.concatenate([one[:n] for one in rows])
                rule = rule.fit(X, np.repeat(range(4), n)) if n else rule.start()
                chances = rule.predict_proba(np.concatenate([one[n:] for one in rows]))
                right = chances.argmax(1) == np.repeat(range(4), n_each - n)
                found[place, crowd, person] = (
                    right.mean(),
                    rule.expected_accuracy_,
                    *rule.expected_accuracy_interval(0.68),
                    *rule.expected_accuracy_interval(0.9),
                    chances.max(1).mean(),
                )
    return np.moveaxis(found, -1, 0)


def test_forecast_of_four_classes_is_true_for_one_person():
    truth, forecast, low, high, lower, upper, sure = fresh_people_of_four_classes()
    narrow, wide = ((low <= truth) & (truth <= high)), ((lower <= truth) & (truth <= upper))
    n = truth.shape[-1]
    constant = (truth.sum(-1, keepdims=True) - truth) / (n - 1)
    ours, theirs = (np.sqrt(((one - truth) ** 2).mean()) for one in (forecast, constant))
    assert narrow.mean() == pytest.approx(0.68, abs=0.1)
    assert wide.mean() == pytest.approx(0.9, abs=0.06)
    assert ours <= theirs
    # Probabilities are as sure as the rule is right.
    np.testing.assert_allclose(sure.mean((1, 2)), truth.mean((1, 2)), atol=0.05)


@pytest.fixture(scope="module")
def prior():
    return TaskPrior.from_tasks(draw_people(np.random.default_rng(60), 25, 30, d=4))


@pytest.mark.parametrize("counts", [(3, 3), (5, 5), (6, 2), (40, 40)], ids=str)
@pytest.mark.parametrize("verb", BLENDS)
def test_as_many_labels_as_there_are_bring_what_is_expected(prior, verb, counts):
    """Also of unequal numbers, given as such or by their harmonic mean."""
    rng = np.random.default_rng([61, *counts])
    y = np.repeat([0, 1], counts)
    X = rng.normal(size=(y.size, 4)) + 1.5 * y[:, None]
    for class_prior in (None, (0.3, 0.7)):
        blend = BLENDS[verb](prior, class_prior=class_prior).fit(X, y)
        worth = 2.0 / (1.0 / counts[0] + 1.0 / counts[1])
        for budget in (counts, worth):
            told = forecast_labels(blend, [budget], level=0.8)
            assert told.n_per_class[0] == pytest.approx(worth)
            assert told.accuracy[0] == pytest.approx(blend.expected_accuracy_, rel=1e-9)
            assert told.error[0] == pytest.approx(blend.expected_accuracy_error_, rel=1e-9)
            lower, upper = blend.expected_accuracy_interval(0.8)
            assert (told.lower[0], told.upper[0]) == pytest.approx((lower, upper), rel=1e-9)


@pytest.mark.parametrize("verb", BLENDS)
def test_more_labels_by_the_algebra_of_the_pair(prior, verb):
    """m and S from the sums of the two rungs, and their interval by Student's t."""
    rng = np.random.default_rng(62)
    y = np.repeat([0, 1], 5)
    X = rng.normal(size=(10, 4)) + 1.5 * y[:, None]
    blend = BLENDS[verb](prior).fit(X, y)
    told = forecast_labels(blend, [0, 13, (21, 21), (26, 13)], level=0.9)
    sums = prior.forecast_records[verb].sums
    raw = float(blend.rule_.raw_forecast)
    for place, rung in ((0, 0), (1, 6), (2, 7)):
        count, *rest = sums[4, rung]
        z, a, zz, za, aa = (one / count for one in rest)
        s_zz, s_za, s_aa = zz - z**2, za - z * a, aa - a**2
        b = s_za / s_zz
        error = (s_aa - b * s_za) * count / (count - 2) / (count * s_zz)
        shrink = max(0.0, 1.0 - error / b**2) * (b > 0.0)
        kept = shrink * b
        left = (s_aa - 2 * kept * s_za + kept**2 * s_zz) * count / (count - 1 - (kept > 0))
        away = ndtri(np.clip(raw, 0.02, 0.98)) - z
        m = a + kept * away
        S = np.sqrt(left * (1 + 1 / count) + away**2 * shrink * error)  # noqa: N806
        assert told.accuracy[place] == pytest.approx(ndtr(m / np.sqrt(1 + S**2)), rel=1e-7)
        reach = student.ppf(0.95, count - 2) * S
        lower, upper = ndtr(m - reach), ndtr(m + reach)
        assert told.lower[place] == pytest.approx(lower if lower > 0.02 else 0.0, rel=1e-7)
        assert told.upper[place] == pytest.approx(upper if upper < 0.98 else 1.0, rel=1e-7)
    assert told.n_per_class[3] == pytest.approx(52.0 / 3.0)
    assert told.lower[1] < told.accuracy[1] < told.upper[1]


def test_more_labels_bring_more_on_average(prior):
    """Of fresh people: what was told for 13 a class from 3 is near what 13 bring."""
    rng = np.random.default_rng(63)
    found = []
    for task in draw_people(rng, 150, 30, d=4):
        rows = [task.X[task.y == k] for k in (0, 1)]
        few, more = (
            HierarchicalBlendClassifier(prior).fit(
                np.concatenate([one[:n] for one in rows]), np.repeat([0, 1], n)
            )
            for n in (3, 13)
        )
        right = [(more.predict(rows[k][13:]) == k).mean() for k in (0, 1)]
        told = forecast_labels(few, [3, 13])
        inside = told.lower[1] <= np.mean(right) <= told.upper[1]
        found.append((*told.accuracy, np.mean(right), inside))
    now, later, truth, inside = np.mean(found, axis=0)
    assert later > now
    assert later == pytest.approx(truth, abs=0.03)
    assert inside >= 0.84
