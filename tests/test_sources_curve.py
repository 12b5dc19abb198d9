"""How many people must the crowd have? Studies with smaller crowds, their curve and their page."""

import numpy as np
import pandas as pd
import pytest

from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy, StudyResult
from crossfade.study._crowd_gain import crowd_curve, crowd_gain

METHODS = ["target", "average-source", "posterior"]


def study_of(tasks, methods=METHODS, **options):
    options = {"budgets": [2, 4], "n_splits": 5, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=methods, **options)


@pytest.fixture(scope="module")
def tasks():
    return simulate_tasks(9, n_features=3, random_state=0)


@pytest.fixture(scope="module")
def result(tasks):
    return study_of(tasks, n_sources=[4, 2, 2]).run()


def test_rows_are_those_of_the_whole_crowd(tasks, result):
    plain = study_of(tasks).run()
    pd.testing.assert_frame_equal(
        result.rows.drop(columns="seconds"), plain.rows.drop(columns="seconds"), check_exact=True
    )
    assert plain.by_sources.empty
    assert plain.crowd_gain().empty


def test_each_method_that_looks_at_sources_has_every_size(result):
    table = result.by_sources
    assert set(table["method"]) == {"average-source", "posterior"}
    counts = table.groupby(["method", "budget", "n_sources"]).size()
    assert counts.index.get_level_values("n_sources").unique().tolist() == [2, 4, 8]
    assert (counts == 9).all()
    whole = table[table["n_sources"] == 8].merge(result.means, on=["task", "method", "budget"])
    assert (whole["balanced_accuracy_x"] == whole["balanced_accuracy_y"]).all()


def test_a_crowd_is_so_many_of_the_others_and_smaller_ones_are_within_larger(tasks):
    from crossfade.study._sources import Sources
    from crossfade.study._splits import generator_for

    study = study_of(tasks)
    sources = Sources.of(study._participants, np.array([0, 1]), 0, keep_windows=False)
    own = study._participants[3].group
    crowds = [
        sources.without(own).some(size, generator_for(0, "p3", "sources")) for size in (2, 4, 8)
    ]
    kept = [set(one.groups[one.kept]) for one in crowds]
    assert [len(one) for one in kept] == [2, 4, 8]
    assert kept[0] < kept[1] < kept[2]
    assert own not in kept[2]


def test_a_crowd_of_some_people_is_a_study_of_them(tasks, result):
    """What a target reaches with a crowd is what it reaches where nobody else takes part."""
    from crossfade.study._sources import Sources
    from crossfade.study._splits import generator_for

    study = study_of(tasks)
    target = study._participants[0]
    crowd = Sources.of(study._participants, np.array([0, 1]), 0, keep_windows=False)
    crowd = crowd.without(target.group).some(4, generator_for(0, target.name, "sources"))
    names = {target.group, *crowd.groups[crowd.kept]}
    some = [
        task for task, one in zip(tasks, study._participants, strict=True) if one.group in names
    ]
    alone = study_of(some).run().means
    table = result.by_sources.query("n_sources == 4")
    both = table.merge(alone, on=["task", "method", "budget"])
    both = both[both["task"] == target.name]
    assert len(both) == 4
    np.testing.assert_allclose(both["balanced_accuracy_x"], both["balanced_accuracy_y"], atol=1e-12)


def test_a_folder_keeps_smaller_crowds_and_takes_more(tasks, result, tmp_path):
    seen = []
    study_of(tasks, n_sources=[2]).run(folder=tmp_path)
    assert len(list((tmp_path / "shards").iterdir())) == 9 * (3 + 2)
    more = study_of(tasks, n_sources=[2, 4]).run(
        folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers)
    )
    assert seen[0] == (45, 63)
    pd.testing.assert_frame_equal(
        in_order(more.by_sources), in_order(result.by_sources), check_exact=True
    )
    loaded = StudyResult.load(tmp_path)
    pd.testing.assert_frame_equal(in_order(loaded.by_sources), in_order(result.by_sources))
    # Without them it is the same study, and nothing is computed again.
    seen.clear()
    plain = study_of(tasks).run(folder=tmp_path, on_progress=lambda *numbers: seen.append(numbers))
    assert seen == [(27, 27)]
    assert plain.by_sources.empty


def in_order(table):
    return table.sort_values(["n_sources", "task", "method", "budget"], ignore_index=True)


def test_results_are_added(tasks, result):
    both = result + study_of(tasks, n_sources=[6]).run()
    assert sorted(set(both.by_sources["n_sources"])) == [2, 4, 6, 8]
    assert not both.by_sources.duplicated(["task", "method", "budget", "n_sources"]).any()


# -- the curve ------------------------------------------------------------------------------------


def curve_of(limit, slope, sizes=(5, 10, 20, 35), n_people=40, spread=0.0, seed=0):
    rng = np.random.default_rng(seed)
    lines = [
        (f"p{person}", f"p{person}", "posterior", 2.0, 4.0, size, 1, 0, limit + off - slope / size)
        for person, off in enumerate(spread * rng.standard_normal(n_people))
        for size in sizes
    ]
    names = ["task", "group", "method", "budget", "n_labelled", "n_sources", "n_splits", "n_failed"]
    return pd.DataFrame(lines, columns=[*names, "balanced_accuracy"])


def test_a_curve_of_the_right_shape_is_found():
    [line] = crowd_gain(curve_of(0.8, 0.5, spread=0.05), 10).to_dict("records")
    assert line["gain"] == pytest.approx(0.5 * (1 / 35 - 1 / 45))
    assert line["limit"] == pytest.approx(line["accuracy"] + 0.5 / 35)
    assert line["last"] == pytest.approx(0.5 * (1 / 20 - 1 / 35))
    assert (line["n_people"], line["n_sources"], line["more"]) == (40, 35, 10)
    table = crowd_curve(curve_of(0.8, 0.5, spread=0.05))
    np.testing.assert_allclose(table["mean"], table["fitted"])


def test_the_interval_covers_the_truth():
    """Noise in each person's curve, 200 studies: 95 % intervals hold the gain as often."""
    truth, held = 0.5 * (1 / 35 - 1 / 45), 0
    for seed in range(200):
        table = curve_of(0.8, 0.5, seed=seed)
        noise = np.random.default_rng(1000 + seed).standard_normal(len(table))
        table["balanced_accuracy"] += 0.02 * noise
        [line] = crowd_gain(table, 10).to_dict("records")
        held += line["low"] <= truth <= line["high"]
    # Four standard errors of 200 draws at 0.95.
    assert 0.888 <= held / 200 <= 1.0


def test_few_people_have_no_interval_and_gaps_are_left_out():
    [line] = crowd_gain(curve_of(0.8, 0.5, n_people=4)).to_dict("records")
    assert np.isnan(line["low"])
    assert np.isfinite(line["gain"])
    table = curve_of(0.8, 0.5)
    table.loc[table["n_sources"] == 5, "balanced_accuracy"] = np.nan
    table.loc[0:3, "balanced_accuracy"] = np.nan
    [line] = crowd_gain(table).to_dict("records")
    assert line["n_people"] == 39
    assert line["gain"] == pytest.approx(0.5 * (1 / 35 - 1 / 45))


@pytest.mark.parametrize("n_sources", [[0], [-3], [2.5], ["ten"], [True]])
def test_sizes_are_whole_and_positive(tasks, n_sources):
    with pytest.raises(ValueError, match="n_sources must be a whole number of at least 1; got"):
        study_of(tasks, n_sources=n_sources)


@pytest.mark.parametrize("n_sources", [[4, 9], [1000], []])
def test_a_crowd_cannot_be_larger_than_the_others(tasks, n_sources):
    with pytest.raises(ValueError, match="from 1 to 8: the study has 9 people, and each of them"):
        study_of(tasks, n_sources=n_sources)


def test_the_whole_crowd_is_not_computed_twice(tasks):
    seen = []
    result = study_of(tasks, n_sources=[8, 4]).run(on_progress=lambda *one: seen.append(one))
    assert seen[-1] == (45, 45)
    assert sorted(set(result.by_sources["n_sources"])) == [4, 8]


def test_more_people_are_a_whole_number(result):
    with pytest.raises(ValueError, match="more must be a whole number of at least 1; got 0"):
        result.crowd_gain(0)
