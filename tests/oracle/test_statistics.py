"""Statistics of a study against simulation, enumeration and other implementations."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.isotonic import IsotonicRegression

from crossfade.study.statistics import compare, labels_saved, reliability, summarise

#: Laws of a participant's accuracy, with their means: like Mental Math's, and near the ceiling.
LAWS = {
    "normal": (lambda rng, shape: 0.7 + 0.1 * rng.standard_normal(shape), 0.7),
    "skewed": (lambda rng, shape: rng.beta(8.0, 3.0, shape), 8.0 / 11.0),
    "ceiling": (lambda rng, shape: 0.5 + 0.5 * rng.beta(6.0, 1.0, shape), 0.5 + 3.0 / 7.0),
}
N_REPEATS = 500
#: Error of a coverage of 0.95 that is counted in so many repeats.
ERROR = np.sqrt(0.95 * 0.05 / N_REPEATS)


def rows_of(values, budgets, groups=None, method="posterior"):
    """One split of each task; values of shape (n_tasks, n_budgets)."""
    n_tasks = len(values)
    groups = np.arange(n_tasks) if groups is None else groups
    parts = [
        pd.DataFrame(
            {
                "task": [f"p{place}" for place in range(n_tasks)],
                "group": [f"g{group}" for group in groups],
                "method": method,
                "budget": float(budget),
                "n_labelled": 2 * budget,
                "balanced_accuracy": column,
            }
        )
        for budget, column in zip(budgets, values.T, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def studies_of(values, groups=None):
    """Rows of (n_tasks, n_studies) accuracies, each study under the name of a method."""
    n_tasks, n_studies = values.shape
    groups = np.arange(n_tasks) if groups is None else groups
    return pd.DataFrame(
        {
            "task": np.tile([f"p{place}" for place in range(n_tasks)], n_studies),
            "group": np.tile([f"g{group}" for group in groups], n_studies),
            "method": np.repeat(np.arange(n_studies), n_tasks).astype(str),
            "budget": 2.0,
            "n_labelled": 4.0,
            "balanced_accuracy": values.T.ravel(),
        }
    )


# -- intervals ------------------------------------------------------------------------------------


def coverage(values, mean, groups=None):
    """How often the intervals of studies hold the mean."""
    table = summarise(studies_of(values, groups))
    return ((table["low"] <= mean) & (mean <= table["high"])).mean()


@pytest.mark.parametrize(
    ("law", "n_participants", "short"),
    [
        ("normal", 14, 0.01),
        ("skewed", 14, 0.015),
        # No percentile knows of a tail that fourteen participants do not show.
        ("ceiling", 14, 0.03),
        ("ceiling", 36, 0.01),
    ],
)
def test_intervals_cover_the_mean(law, n_participants, short):
    draw, mean = LAWS[law]
    rng = np.random.default_rng([n_participants, len(law)])
    found = coverage(draw(rng, (n_participants, N_REPEATS)), mean)
    assert abs(found - 0.95) < short + 3.0 * ERROR


def test_sessions_of_one_participant_are_not_so_many_participants():
    rng = np.random.default_rng(1)
    person = 0.7 + 0.1 * rng.standard_normal((25, N_REPEATS))
    values = np.repeat(person, 2, axis=0) + 0.02 * rng.standard_normal((50, N_REPEATS))
    together = coverage(values, 0.7, np.repeat(np.arange(25), 2))
    assert abs(together - 0.95) < 0.01 + 3.0 * ERROR
    # Intervals shorter by the root of two: 2 Phi(1.96 / 1.414) - 1 = 0.834.
    assert coverage(values, 0.7) < 0.87


def test_intervals_of_a_summary_are_those_of_a_plain_loop():
    rng = np.random.default_rng(3)
    groups = np.arange(20) % 9
    values = rng.random((20, 1))
    line = summarise(rows_of(values, [2], groups)).iloc[0]
    draws = []
    for _ in range(4000):
        people = rng.choice(9, size=9)
        draws.append(np.concatenate([values[groups == one, 0] for one in people]).mean())
    # Student's law with 8 degrees of freedom: Phi(-sqrt(9 / 8) 2.306) = 0.00722. So far out such a
    # quantile has an error of 0.095 deviations by 2,000 draws, and of 0.067 by 4,000.
    expected = np.quantile(draws, [0.00722, 1.0 - 0.00722])
    error = np.hypot(0.095, 0.067) * np.std(draws)
    np.testing.assert_allclose([line["low"], line["high"]], expected, atol=4.5 * error)


# -- tests ----------------------------------------------------------------------------------------


def p_values(differences):
    """P-values (n_studies,) of differences (n_tasks, n_studies) from a method of zeros."""
    zeros = np.zeros((len(differences), 1))
    rows = pd.concat([studies_of(differences), studies_of(zeros).assign(method="against")])
    return compare(rows, "against")["p_value"].to_numpy()


@pytest.mark.parametrize("step", [0.0, 0.1])
def test_p_values_are_those_of_all_signs(step):
    differences = np.random.default_rng(0).normal(0.05, 0.2, size=(9, 6))
    if step:
        # With ties, and with zeros, which do not count.
        differences = (differences / step).round() * step
    for difference, found in zip(differences.T, p_values(differences), strict=True):
        nonzero = difference[np.abs(difference) > 1e-9]
        ranks = rankdata(np.abs(nonzero).round(9))
        sums = [ranks[np.array(signs)].sum() for signs in product([False, True], repeat=ranks.size)]
        expected = (np.array(sums) >= ranks[nonzero > 0].sum() - 1e-9).mean()
        assert found == pytest.approx(expected)


def test_p_values_are_uniform_without_a_difference():
    p = p_values(np.random.default_rng(4).standard_normal((36, 150)))
    for level in (0.05, 0.2, 0.5):
        assert abs((p <= level).mean() - level) < 4.5 * np.sqrt(level * (1 - level) / 150)


def test_p_values_of_budgets_are_corrected_by_holm():
    # Of 2^6 signs one has no minus: 1 / 64 at every budget, times 3.
    rows = rows_of(np.full((6, 3), 0.8) + 0.01 * np.arange(6)[:, None], [1, 2, 4])
    other = rows.assign(method="lda", balanced_accuracy=0.7)
    table = compare(pd.concat([rows, other]), "lda")
    np.testing.assert_allclose(table["p_value"], 1 / 64)
    np.testing.assert_allclose(table["p_holm"], 3 / 64)
    other.loc[other["budget"] == 1, "balanced_accuracy"] += 0.2
    table = compare(pd.concat([rows, other]), "lda")
    np.testing.assert_allclose(table["p_holm"][1:], [3 / 64, 3 / 64])
    assert table["p_holm"][0] == 1.0


# -- labels saved ---------------------------------------------------------------------------------


def test_curves_are_made_monotone_as_by_scikit_learn():
    rng = np.random.default_rng(5)
    budgets = [1, 2, 4, 8, 16, 32]
    for _ in range(10):
        curve = 0.5 + 0.05 * np.arange(6) + 0.15 * rng.random(6)
        smooth = IsotonicRegression().fit_transform(np.arange(6), curve)
        asked = np.linspace(smooth[0] + 1e-6, smooth[-1] - 1e-6, 6)
        rows = pd.concat(
            [
                rows_of(np.tile(curve, (6, 1)), budgets),
                rows_of(np.tile(asked, (6, 1)), budgets, method="lda"),
            ]
        )
        place = np.searchsorted(smooth, asked)
        low, high = smooth[place - 1], smooth[place]
        log = np.log(2.0 * np.array(budgets))
        expected = log[place - 1] + (asked - low) / (high - low) * (log[place] - log[place - 1])
        np.testing.assert_allclose(labels_saved(rows)["needed"], np.exp(expected), rtol=1e-9)


def accuracies(rng, n_participants, budgets, factor, spread):
    """Accuracies that rise with log n; the second method needs `factor` times the windows."""
    log_n = np.log(2.0 * np.asarray(budgets))
    level = 0.5 + 0.05 * rng.standard_normal((n_participants, 1))
    slope = 0.08 + 0.02 * rng.standard_normal((n_participants, 1))
    noise = spread * rng.standard_normal((2, n_participants, len(budgets)))
    own = level + slope * log_n + noise[0]
    return own, level + slope * (log_n - np.log(factor)) + noise[1]


def learning_curves(rng, n_participants, budgets, factor, spread):
    own, other = accuracies(rng, n_participants, budgets, factor, spread)
    return pd.concat(
        [rows_of(own, budgets, method="posterior"), rows_of(other, budgets, method="lda")]
    )


def test_labels_saved_are_those_that_were_put_in():
    rows = learning_curves(np.random.default_rng(6), 36, [1, 2, 4, 8, 16, 32], 2.5, 0.0)
    table = labels_saved(rows)
    assert table["bound"].tolist() == ["<=", "<="] + ["="] * 4
    np.testing.assert_allclose(table["needed"][2:], table["n_labelled"][2:] / 2.5)
    np.testing.assert_allclose(table["share_saved"][2:], 0.6)
    back = labels_saved(rows, "lda", "posterior")
    np.testing.assert_allclose(back["needed"][:4], 2.5 * back["n_labelled"][:4])
    assert back["bound"].tolist() == ["="] * 4 + [">"] * 2


def test_intervals_cover_the_labels_saved():
    rng = np.random.default_rng(8)
    n_repeats, covered = 100, 0
    budgets = [1, 2, 4, 8, 16, 32]
    rows = learning_curves(rng, 14, budgets, 2.0, 0.05)
    for _ in range(n_repeats):
        own, other = accuracies(rng, 14, budgets, 2.0, 0.05)
        rows["balanced_accuracy"] = np.concatenate([own.T.ravel(), other.T.ravel()])
        line = labels_saved(rows).iloc[3]
        assert line["n_labelled"] == 16.0
        covered += line["low"] <= 8.0 <= line["high"]
    error = np.sqrt(0.95 * 0.05 / n_repeats)
    assert abs(covered / n_repeats - 0.95) < 0.02 + 3.0 * error


# -- forecasts ------------------------------------------------------------------------------------


def test_errors_of_a_reliability_table_are_those_of_repeated_studies():
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(20), rng.integers(1, 30, size=20))
    outcomes, errors = [], []
    rows = rows_of(np.zeros((groups.size, 1)), [2], groups).assign(expected_accuracy=0.72)
    for _ in range(150):
        person = 0.1 * rng.standard_normal(20)
        noise = 0.1 * rng.standard_normal(groups.size)
        rows["balanced_accuracy"] = 0.7 + person[groups] + noise
        line = reliability(rows).iloc[0]
        outcomes.append(line["outcome"])
        errors.append(line["standard_error"])
    assert np.mean(outcomes) == pytest.approx(0.7, abs=4.5 * np.std(outcomes) / np.sqrt(150))
    # Linearised errors are a little too small with twenty participants of unlike weight.
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(outcomes), rel=0.2)
