"""What would mislead in a table of tasks is found, and features are left alone."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from crossfade import TaskSet, load_mental_math
from crossfade.datasets import read_eegmat
from crossfade.exceptions import TableWarning
from crossfade.tasks import check_frame

RESERVED = ("task", "label", "group", "start")


def features_of(frame):
    return [name for name in frame.columns if name not in RESERVED]


def check(frame, named=()):
    return check_frame(frame, features_of(frame), named)


def kinds(frame, named=()):
    return [(one.kind, one.columns, one.refused) for one in check(frame, named)]


# -- tables ---------------------------------------------------------------------------------------


def classes_in(design, n_windows, n_classes, rng):
    """Order of the classes in one task."""
    turn = np.arange(n_windows) % n_classes
    return {
        "blocks": np.sort(turn),
        "other blocks": rng.permutation(n_classes)[np.sort(turn)],
        "turn": turn,
        "mixed": rng.permutation(turn),
    }[design]


def table(n_tasks=8, n_windows=24, n_features=4, design="blocks", n_classes=2, seed=0, gap=0.5):
    """Normal features of people who differ, with a small gap between classes."""
    rng = np.random.default_rng([seed, n_tasks, n_windows, n_features])
    parts = []
    for place in range(n_tasks):
        label = classes_in(design, n_windows, n_classes, rng)
        X = rng.standard_normal((n_windows, n_features)) + rng.standard_normal(n_features)
        X += label[:, None] * rng.normal(gap, 0.2, n_features)
        part = pd.DataFrame(X, columns=[f"f{column}" for column in range(n_features)])
        part.insert(0, "label", np.array(["rest", "math", "walk", "run", "sleep"])[label])
        part.insert(0, "task", f"p{place:02d}")
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


MAKERS = {
    "normal": lambda x, rng: x,
    "rounded": lambda x, rng: x.round(2),
    "coarse": lambda x, rng: x.round(),
    "tenths": lambda x, rng: (33.0 + 0.3 * x).round(1),
    "counts": lambda x, rng: (10.0 + 3.0 * x).round().clip(0).astype(int),
    "few": lambda x, rng: rng.poisson(np.exp(0.5 * x.clip(-3, 3))),
    "heavy": lambda x, rng: 10.0 * x**3,
    "skewed": lambda x, rng: np.exp(2.0 * x),
    "single": lambda x, rng: x.astype(np.float32),
    "bounded": lambda x, rng: 1.0 / (1.0 + np.exp(-x)),
    "centred": lambda x, rng: x - x.mean(),
    "boolean": lambda x, rng: x > 0.5,
}


def clean_table(seed, n_tasks=None, n_windows=None, most_rows=1000, most_features=40):
    """Features of many kinds: autocorrelated, strong, rounded, in blocks or not."""
    rng = np.random.default_rng(seed)

    def between(low, high):
        return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))

    n_tasks = n_tasks or between(2, 60)
    n_windows = n_windows or min(between(2, 400), max(2, most_rows // n_tasks))
    n_features, n_classes = between(1, most_features), int(rng.choice([2, 2, 3, 4]))
    design = rng.choice(["blocks", "other blocks", "turn", "mixed"])
    likeness = rng.choice([0.0, 0.0, 0.5, 0.9, 0.95])
    makers = [MAKERS[kind] for kind in rng.choice(list(MAKERS), n_features)]
    gap = rng.normal(0.0, 0.5, n_features)
    gap[0] = rng.choice([0.0, 1.0, 2.0, 3.0])
    odd = rng.integers(n_tasks)
    parts = []
    for place in range(n_tasks):
        label = classes_in(design, n_windows, n_classes, rng)
        noise = rng.standard_normal((n_windows, n_features))
        noise[1:] *= np.sqrt(1.0 - likeness**2)
        X = lfilter([1.0], [1.0, -likeness], noise, axis=0)
        X += label[:, None] * gap * rng.normal(1.0, 0.2) + rng.standard_normal(n_features)
        part = {f"f{column}": make(X[:, column], rng) for column, make in enumerate(makers)}
        if place == odd and n_tasks > 1:
            part["f0"] = np.full(n_windows, part["f0"][0])
        if seed % 5 == 0 and n_features > 2:
            shares = np.exp(X) / np.exp(X).sum(1, keepdims=True)
            part = dict(zip(part, shares.T, strict=True))
        parts.append(pd.DataFrame({"task": f"p{place:02d}", "label": label, **part}))
        if seed % 3 == 0:
            parts[-1].insert(0, "start", 2.5 * np.arange(n_windows))
    frame = pd.concat(parts, ignore_index=True)
    return frame.sample(frac=1, random_state=seed) if seed % 7 == 0 else frame


def false_alarms(frames):
    """Findings that are not true: one value in every row is."""
    return [
        (place, one.text)
        for place, frame in enumerate(frames)
        for one in check(frame)
        if one.kind != "constant" or frame[list(one.columns)].nunique().max() > 1
    ]


# -- strays ---------------------------------------------------------------------------------------


def number_in_task(frame):
    return frame.groupby("task").cumcount()


def code_of(frame):
    return pd.Series(pd.factorize(frame["label"])[0], frame.index)


def times(frame, **options):
    return pd.date_range("2026-01-31 09:00", periods=len(frame), **options)


def size_of(frame):
    return frame.groupby("task")["task"].transform("size")


def filtered(frame):
    return frame[np.random.default_rng(1).random(len(frame)) < 0.8]


#: Kind of the finding, whether it is refused, name of the column, and its values.
STRAYS = {
    "counter": ("counter", True, "trial", number_in_task),
    "counter of another name": ("counter", True, "abc", lambda frame: number_in_task(frame) + 1),
    "counter of floats": ("counter", True, "abc", lambda frame: number_in_task(frame) * 1.0),
    "counter down": ("counter", True, "abc", lambda frame: size_of(frame) - number_in_task(frame)),
    "counter by 250": ("counter", True, "abc", lambda frame: 250 * number_in_task(frame)),
    "counter of a block": ("counter", True, "abc", lambda frame: number_in_task(frame) % 6 + 1),
    "counter of a class": (
        *("counter", True, "abc"),
        lambda frame: frame.groupby(["task", "label"]).cumcount(),
    ),
    "counter with gaps": (
        *("counter", True, "abc"),
        lambda frame: number_in_task(frame) + (number_in_task(frame) > 5),
    ),
    "counter in another order": (
        *("counter", False, "abc"),
        lambda frame: number_in_task(frame.sample(frac=1, random_state=0)),
    ),
    "index of to_csv": ("index", True, "Unnamed: 0", lambda frame: range(len(frame))),
    "index of parquet": ("index", True, "__index_level_0__", lambda frame: range(len(frame))),
    "index of reset_index": ("index", True, "index", lambda frame: range(len(frame))),
    "index of another name": ("index", True, "abc", lambda frame: range(1, len(frame) + 1)),
    "index with gaps": (
        *("index", True, "abc"),
        lambda frame: np.cumsum(np.random.default_rng(0).integers(1, 3, len(frame))),
    ),
    "index in another order": (
        *("index", False, "abc"),
        lambda frame: np.random.default_rng(0).permutation(len(frame)),
    ),
    "dates": ("dates", True, "when", lambda frame: times(frame, freq="min")),
    "dates of a zone": ("dates", True, "when", lambda frame: times(frame, freq="min", tz="CET")),
    "dates as text": (
        *("dates", True, "when"),
        lambda frame: times(frame, freq="min").strftime("%d.%m.%Y %H:%M"),
    ),
    "dates as objects": ("dates", True, "when", lambda frame: times(frame, freq="D").date),
    "dates as numbers": (
        *("dates", True, "when"),
        lambda frame: times(frame, freq="9h").strftime("%Y%m%d").astype(int),
    ),
    "constant": ("constant", False, "session", lambda frame: 1),
    "constant of floats": ("constant", False, "session", lambda frame: 0.1),
    "copy of the label": ("separates", False, "abc", lambda frame: code_of(frame) * 4 + 3),
    "copy of the label as booleans": ("separates", False, "abc", lambda frame: code_of(frame) > 0),
    "copy of the label with noise": (
        *("separates", False, "abc"),
        lambda frame: code_of(frame) + np.random.default_rng(0).normal(0.0, 0.01, len(frame)),
    ),
}
SHAPES = [
    {"n_tasks": 3, "n_windows": 8, "n_features": 2, "design": "mixed"},
    {"n_tasks": 20, "n_windows": 30, "n_features": 9},
]


@pytest.mark.parametrize("shape", SHAPES, ids=["small", "large"])
@pytest.mark.parametrize("kind", STRAYS)
def test_no_stray_passes_in_silence(kind, shape):
    frame = table(**shape)
    assert check(frame) == []
    expected, refused, name, values = STRAYS[kind]
    frame[name] = values(frame)
    before = frame.copy()
    (found,) = check(frame)
    assert (found.kind, found.columns, found.refused) == (expected, (name,), refused)
    assert found.text.startswith(f"Column {name!r} ")
    assert f"(drop=[{name!r}])" in found.remedy
    # Text does not become a number by being named.
    kept = refused and frame[name].dtype.kind in "biufM"
    assert ("name it in --columns to keep it" in found.remedy) == kept
    pd.testing.assert_frame_equal(frame, before)


def test_there_are_fifty_tables_with_strays():
    assert len(STRAYS) * len(SHAPES) == 50


@pytest.mark.parametrize("kind", STRAYS)
def test_strays_are_found_in_real_tables(kind):
    frame = load_mental_math().to_frame()
    expected, refused, name, values = STRAYS[kind]
    frame[name] = values(frame)
    assert kinds(frame) == [(expected, (name,), refused)]


# -- features are left alone ----------------------------------------------------------------------


@pytest.mark.parametrize("features", ["shares", "log-powers"])
def test_mental_math_has_nothing_to_warn_of(features):
    assert check(load_mental_math(features=features).to_frame()) == []


@pytest.mark.parametrize("features", ["powers", "tangent"])
def test_recordings_have_nothing_to_warn_of(features, recordings, tmp_path):
    pytest.importorskip("pyriemann")
    for path in sorted((recordings / "eegmat").glob("Subject0[0-7]_?.edf")):
        (tmp_path / path.name).symlink_to(path)
    assert check(read_eegmat(tmp_path, features=features).to_frame()) == []


def test_clean_tables_have_fewer_than_one_false_alarm_in_twenty():
    found = false_alarms(clean_table(seed) for seed in range(200))
    assert len({place for place, _ in found}) < 10, found


def test_a_new_person_has_fewer_than_one_false_alarm_in_twenty():
    frames = (clean_table(seed, 1, 2 + seed % 9) for seed in range(200))
    found = false_alarms(
        frame.drop(columns="label") if len(frame) % 2 else frame for frame in frames
    )
    assert len({place for place, _ in found}) < 10, found


@pytest.mark.parametrize("design", ["blocks", "turn"])
@pytest.mark.parametrize("n_windows", [4, 10, 40, 200])
@pytest.mark.parametrize("n_tasks", [1, 4, 30])
def test_a_good_feature_is_no_copy_of_the_label(n_tasks, n_windows, design):
    found = false_alarms(
        table(n_tasks, n_windows, 3, design, seed=seed, gap=2.8) for seed in range(10)
    )
    assert not found


def test_tables_of_tests_have_nothing_to_warn_of(make_tasks, make_many):
    from crossfade import TaskSet

    for tasks in (make_tasks(), make_tasks(2, 1, (3, 5)), make_many(), make_many(8, 9)):
        assert check(TaskSet(tasks).to_frame()) == []


def test_features_that_are_all_ranks_are_scaled_so():
    frame = table()
    columns = features_of(frame)
    frame[columns] = frame.groupby("task")[columns].rank()
    assert check(frame) == []


# -- what is said ---------------------------------------------------------------------------------


def test_the_text_is_plain():
    frame = table()
    frame["trial"] = number_in_task(frame)
    (found,) = check(frame)
    assert found.text == (
        "Column 'trial' counts 0, 1, 2, ... inside every task: it numbers the windows and is no "
        "feature."
    )
    assert found.remedy == (
        "Leave it out with --drop trial (drop=['trial']), or name it in --columns to keep it."
    )


def test_columns_of_one_kind_are_told_together():
    frame = table()
    frame = frame.assign(**{f"c {place}": 3 for place in range(8)})
    (found,) = check(frame)
    assert found.text.startswith("Columns 'c 0', 'c 1', 'c 2', 'c 3', 'c 4' and 3 more have the")
    assert found.remedy.startswith("Leave them out with --drop 'c 0,c 1,c 2,c 3,")


def test_what_is_refused_comes_first_and_a_name_makes_it_a_warning():
    frame = table().assign(session=1)
    frame["trial"] = number_in_task(frame)
    frame["when"] = times(frame, freq="min")
    assert [one.refused for one in check(frame)] == [True, True, False]
    found = check(frame, named=["trial", "when"])
    assert [one.refused for one in found] == [False] * 3
    assert {one.kind for one in found} == {"counter", "dates", "constant"}
    assert not any("--columns" in one.remedy for one in found)


def test_brackets_in_a_name_stay():
    frame = table().rename(columns={"f0": "a[b|c]{drop}"}).assign(**{"x[y|z]": 1})
    (found,) = check(frame)
    assert found.columns == ("x[y|z]",)
    assert "'x[y|z]'" in found.text
    assert "--drop 'x[y|z]'" in found.remedy


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", ["p01 ", " p01", "p01\xa0", "p\u200b01", "\ufeffp01", "p 01", "p01\t"]
)
def test_tasks_that_differ_by_white_space_are_refused(other):
    frame = table()
    frame.loc[24:30, "task"] = other
    (found,) = check(frame)
    assert (found.kind, found.columns, found.refused) == ("names", ("task",), True)
    assert found.text == (
        f"Tasks {other!r} and 'p01' differ only by white space or invisible characters and count "
        "as different people."
    )


def test_accents_are_written_in_two_ways():
    frame = table()
    frame["group"] = np.where(frame.index < 10, "Zo\u00eb", "Zoe\u0308")
    (found,) = check(frame)
    assert found.refused
    assert r"Groups 'Zo\xeb' and 'Zoe\u0308' differ" in found.text


def test_labels_that_differ_by_white_space_are_refused():
    frame = table()
    frame["label"] = frame["label"].map({"rest": "0", "math": "1"})
    frame.loc[3:9, "label"] = " 0"
    (found,) = check(frame)
    assert found.refused
    assert "Labels '0' and ' 0' differ" in found.text
    assert "different classes" in found.text


def test_names_that_differ_by_case_are_a_warning():
    frame = table()
    frame.loc[24:30, "task"] = "P01"
    frame.loc[3:9, "label"] = "Rest"
    found = check(frame)
    assert [(one.columns, one.refused) for one in found] == [
        (("task",), False),
        (("label",), False),
    ]
    assert "'P01' and 'p01' differ only by case" in found[0].text


def test_many_pairs_of_names_are_counted():
    frame = table(10)
    frame.loc[::7, "task"] += " "
    (found,) = check(frame)
    assert found.text.count("; ") == 3
    assert "; and 7 more differ" in found.text


def test_names_that_only_look_alike_are_fine():
    frame = table()
    names = {"p00": "1 11", "p01": "11 1", "p02": "1", "p03": "01", "p04": "p-1", "p05": "p1"}
    frame["task"] = frame["task"].replace(names)
    assert check(frame) == []
    frame["task"] = pd.factorize(frame["task"])[0]
    assert check(frame) == []


def test_columns_that_differ_by_white_space_are_refused():
    frame = table().rename(columns={"f1": " f0"})
    (found,) = check(frame)
    assert (found.columns, found.refused) == (("f0", " f0"), True)
    assert found.remedy == "Rename one of them, or leave it out with --drop ' f0' (drop=[' f0'])."
    (found,) = check(frame, named=[" f0"])
    assert not found.refused
    (found,) = check(frame.rename(columns={" f0": "F0"}))
    assert not found.refused
    assert "differ only by case" in found.text


@pytest.mark.parametrize(("name", "refused"), [(" label", True), ("Label", False)])
def test_columns_that_hide_one_of_ours(name, refused):
    frame = table().rename(columns={"f1": name})
    (found,) = check(frame)
    assert (found.kind, found.refused) == ("names", refused)
    assert f"Column {name!r} differs from 'label' only by" in found.text
    assert f"(label={name!r})" in found.remedy


# -- dates and time -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["2026-01-31T09:00:00Z", "2026-02-01T09:00:00+01:00", None],
        ["31/01/2026", "1/2/26", "3/2/2026"],
        ["Jan 31, 2026", "Feb 1, 2026", "1 March 2026"],
        ["09:00:01.5", "9:02", "11:30 pm"],
        [dt.date(2026, 1, 31), dt.date(2026, 2, 1), None],
        [dt.time(9, 1), dt.time(9, 2), dt.time(9, 3)],
        pd.period_range("2026-01", periods=3, freq="M"),
        pd.to_datetime(["2026-01-31", "2026-02-01", None]),
        pd.Series(["2026-01-31", "2026-02-01", "2026-03-01"], dtype="category"),
    ],
)
def test_dates_are_refused_however_they_are_written(values):
    frame = pd.DataFrame({"task": "p", "label": [0, 1, 0], "x": [0.3, 0.1, 0.7], "when": values})
    assert kinds(frame) == [("dates", ("when",), True)]


def test_durations_are_refused_with_another_remedy():
    frame = table().assign(rr=pd.to_timedelta(np.random.default_rng(0).random(192), unit="s"))
    (found,) = check(frame)
    assert found.refused
    assert ".dt.total_seconds()" in found.remedy


def test_text_that_is_no_date_is_left_to_the_reader():
    frame = table().assign(hand="left", dose=np.tile(["1.5", "0.25", "3", "1.5"], 48))
    assert check(frame) == []


@pytest.mark.parametrize(
    "date",
    [
        lambda number: 20240101 + 7 * (number % 4),
        lambda number: 20240105,
        lambda number: 1.7e12 + 864e5 * number,
        lambda number: 1.7e12,
    ],
)
def test_one_date_for_each_task_is_refused(date):
    frame = table()
    number = pd.Series(pd.factorize(frame["task"])[0], frame.index)
    (found,) = check(frame.assign(day=number.map(date)))
    assert (found.columns, found.refused) == (("day",), True)
    assert found.kind in ("dates", "time")


def test_a_large_constant_is_no_date():
    (found,) = check(table().assign(x=1.7e12 + 0.5))
    assert (found.kind, found.refused) == ("constant", False)
    (found,) = check(table().assign(x=20241399))
    assert (found.kind, found.refused) == ("constant", False)


@pytest.mark.parametrize(("scale", "refused"), [(1.0, False), (1e3, True), (1e9, True)])
def test_times_since_1970(scale, refused):
    frame = table(2, 8, design="mixed")
    frame["ts"] = scale * (1.77e9 + 1e5 * np.random.default_rng(0).random(16))
    (found,) = check(frame)
    assert (found.kind, found.refused) == ("time", refused)
    assert "since 1970" in found.text


def test_equal_steps_are_time_and_are_refused():
    frame = table()
    frame["sec"] = 0.5 + 2.5 * number_in_task(frame)
    (found,) = check(frame)
    assert (found.kind, found.refused) == ("time", True)
    assert "goes 0.5, 3, 5.5, ... inside every task: it tells the time" in found.text


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_clock_is_a_warning(way):
    frame = table(design="mixed")
    steps = pd.Series(np.random.default_rng(0).exponential(1.0, len(frame)))
    frame["abc"] = way * steps.groupby(frame["task"]).cumsum()
    (found,) = check(frame)
    assert (found.kind, found.refused) == ("time", False)
    assert f"{'rises' if way > 0 else 'falls'} and hardly ever" in found.text


def test_rows_out_of_order_are_put_in_time_by_start():
    frame = table().assign(start=lambda frame: 2.5 * number_in_task(frame))
    frame["abc"] = number_in_task(frame)
    assert kinds(frame.sample(frac=1, random_state=0)) == [("counter", ("abc",), True)]


# -- few rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "found"), [("abc", []), ("trial", ["counter"])])
def test_a_counter_in_a_few_rows_is_known_by_its_name(name, found):
    frame = pd.DataFrame({"task": "new", "x": [0.2, 0.5, 0.1, 0.9], name: [1, 2, 3, 4]})
    assert [one.kind for one in check(frame)] == found


def test_a_clock_in_a_few_rows_is_known_by_its_name():
    frame = pd.DataFrame({"task": "new", "x": [0.2, 0.5, 0.1], "onset (s)": [1.0, 2.7, 4.1]})
    assert kinds(frame) == [("time", ("onset (s)",), False)]


def test_two_rows_say_nothing():
    frame = pd.DataFrame(
        {"task": "new", "label": [0, 1], "a": [0, 1], "b": [0.0, 2.0], "c": [5, 5], "d": [0, 1]}
    )
    assert check(frame) == []


def test_two_windows_of_two_classes_make_no_counter():
    frame = table(40, 2)
    frame["f0"] = 3 * code_of(frame) + np.random.default_rng(0).integers(0, 3, 80)
    assert not any(one.refused for one in check(frame))


def test_rows_without_task_or_label_are_left_alone():
    frame = table().assign(session=1)
    frame.loc[::5, "label"] = None
    frame.loc[::7, "task"] = None
    assert kinds(frame) == [("constant", ("session",), False)]
    assert check(frame.iloc[:0]) == []
    assert kinds(frame.drop(columns=["task", "label"])) == [("constant", ("session",), False)]


# -- constant -------------------------------------------------------------------------------------


def test_one_value_in_each_task_tells_people_apart():
    frame = table()
    frame["age"] = 20 + 3 * pd.factorize(frame["task"])[0]
    (found,) = check(frame)
    assert (found.kind, found.refused) == ("constant", False)
    assert "one value in each task" in found.text
    frame.loc[5, "age"] = 21
    assert check(frame) == []


def test_an_empty_column_is_refused_unless_all_are():
    frame = table().assign(x=np.nan, y=None)
    assert kinds(frame) == [("constant", ("x", "y"), True)]
    assert check(frame[["task", "label", "x", "y"]]) == []


# -- copies of the label --------------------------------------------------------------------------


def test_copies_of_many_classes():
    frame = table(n_classes=4, design="mixed")
    frame["abc"] = code_of(frame) * 1.5
    assert kinds(frame) == [("separates", ("abc",), False)]
    frame["abc"] += np.random.default_rng(0).normal(0.0, 0.02, len(frame))
    assert kinds(frame) == [("separates", ("abc",), False)]


@pytest.mark.parametrize("design", ["blocks", "mixed"])
def test_copies_with_errors(design):
    frame = table(12, 50, design=design)
    rng = np.random.default_rng(0)
    frame["pressed"] = np.where(rng.random(600) < 0.01, 1 - code_of(frame), code_of(frame))
    assert kinds(frame) == [("separates", ("pressed",), False)]


def test_copies_in_most_tasks():
    frame = table(12, design="mixed")
    broken = frame["task"] > "p08"
    frame["abc"] = np.where(broken, np.random.default_rng(0).integers(0, 2, 288), code_of(frame))
    (found,) = check(frame)
    assert "in 9 of 12 tasks" in found.text


def test_copies_centred_for_each_person():
    frame = table(design="mixed")
    frame["abc"] = code_of(frame) * 1.0
    frame["abc"] -= frame.groupby("task")["abc"].transform("mean") * np.pi
    assert kinds(frame) == [("separates", ("abc",), False)]


def test_block_numbers_and_conditions():
    frame = table(design="turn", n_windows=36)
    number = number_in_task(frame)
    frame["label"] = np.where(number // 6 % 2, "math", "rest")
    assert kinds(frame.assign(block=number // 6)) == [("separates", ("block",), False)]
    level = 2 * code_of(frame) + np.random.default_rng(0).integers(0, 2, len(frame))
    assert kinds(frame.assign(level=level)) == [("separates", ("level",), False)]


# -- drift ----------------------------------------------------------------------------------------


def drifting(design, **options):
    frame = table(design=design, **options)
    warmth = (
        33.0 + number_in_task(frame) / 24 + np.random.default_rng(0).normal(0, 0.05, len(frame))
    )
    return frame.assign(warmth=warmth)


def test_a_drift_is_found_where_classes_come_in_blocks():
    (found,) = check(drifting("blocks"))
    assert (found.kind, found.columns, found.refused) == ("drift", ("warmth",), False)
    assert "in 8 of 8 tasks" in found.text
    assert check(drifting("mixed")) == []


def with_drift(seed, n_tasks, n_windows, noise):
    """A table with a drift of 1 over a recording, and noise of that deviation."""
    frame = table(n_tasks, n_windows, 5, seed=seed)
    drift = number_in_task(frame) / n_windows
    return frame.assign(drift=drift + np.random.default_rng(seed).normal(0, noise, len(frame)))


@pytest.mark.parametrize(
    ("n_tasks", "n_windows", "noise"),
    [(6, 24, 1 / 8), (8, 24, 1 / 6), (14, 40, 1 / 12), (14, 40, 1 / 6), (30, 40, 1 / 4)],
)
def test_a_drift_under_noise_is_found(n_tasks, n_windows, noise):
    for seed in range(20):
        found = check(with_drift(seed, n_tasks, n_windows, noise))
        assert [(one.kind, one.columns) for one in found] == [("drift", ("drift",))]


def test_the_limit_of_drifts_that_are_found():
    for n_tasks, low, high in ((14, 10, 19), (6, 0, 0)):
        found = sum(bool(check(with_drift(seed, n_tasks, 40, 1 / 4))) for seed in range(20))
        assert low <= found <= high


def test_levels_that_rise_one_after_another_are_no_drift():
    assert check(table(n_windows=30, n_classes=5, gap=2.5)) == []


def test_random_walks_are_no_drift():
    for seed in range(20):
        frame = table(12, 40, 6, seed=seed)
        columns = features_of(frame)
        frame[columns] = np.random.default_rng(seed).standard_normal((480, 6))
        frame[columns] = frame.groupby("task")[columns].cumsum()
        assert check(frame) == []


# -- columns and rows that are there twice --------------------------------------------------------


def test_columns_that_hold_the_same():
    frame = table()
    frame["again"], frame["kelvin"] = frame["f0"], (frame["f1"] + 273.15).round(3)
    frame["more"] = frame["f0"]
    found = check(frame)
    assert {one.columns for one in found} == {("f0", "again", "more"), ("f1", "kelvin")}
    texts = sorted(one.text for one in found)
    assert texts[0].endswith("hold the same values: what they tell counts 3 times.")
    assert texts[1].endswith("hold the same values in other units: what they tell counts twice.")
    assert "Keep one of them: --drop again,more (drop=['again', 'more'])." in [
        one.remedy for one in found
    ]


def test_copies_with_missing_values():
    frame = table()
    frame.loc[3:8, "f0"] = np.nan
    frame["again"] = 2.0 * frame["f0"]
    assert kinds(frame) == [("duplicate", ("f0", "again"), False)]


def test_two_shares_are_no_copies():
    frame = table(n_features=1)
    frame["f0"] = 1.0 / (1.0 + np.exp(-frame["f0"]))
    assert check(frame.assign(f1=1.0 - frame["f0"])) == []


def test_an_outlier_does_not_make_features_alike():
    frame = table()
    frame.loc[7, features_of(frame)] = 1e9
    assert check(frame) == []


def test_one_person_under_two_names():
    frame = table()
    columns = features_of(frame)
    frame.loc[frame["task"] == "p05", columns] = frame.loc[frame["task"] == "p02", columns].values
    (found,) = check(frame)
    assert (found.kind, found.refused) == ("rows", False)
    assert "Tasks 'p02' and 'p05' have 24 windows in common" in found.text


def test_rows_that_are_repeated():
    frame = table()
    (found,) = check(pd.concat([frame, frame.iloc[:40]]))
    assert "40 of 232 windows are twice in their task" in found.text


def test_a_dead_recording_and_coarse_features_are_no_repeated_rows():
    frame = table()
    columns = features_of(frame)
    frame.loc[frame["task"] == "p05", columns] = 0.0
    assert check(frame) == []
    frame[columns] = frame[columns].round()
    assert check(frame) == []


# -- windows that overlap -------------------------------------------------------------------------


def test_windows_that_start_together():
    frame = table(design="blocks")
    frame["start"] = 2.5 * (number_in_task(frame) // 2)
    (found,) = check(frame)
    assert (found.kind, found.columns, found.refused) == ("overlap", ("start",), False)
    assert "96 windows start when another of the same task and class does" in found.text
    assert "(the first at 0 s in task 'p00')" in found.text


@pytest.mark.parametrize("shuffled", [False, True])
def test_windows_that_start_too_soon(shuffled):
    frame = table(design="mixed", n_classes=1)
    frame["start"] = 2.5 * number_in_task(frame) - (number_in_task(frame) % 5 == 2)
    frame = frame.sample(frac=1, random_state=0) if shuffled else frame
    (found,) = check(frame)
    assert "start sooner after the one before than the usual 2.5 s" in found.text


def twice(frame):
    return pd.concat([frame, frame.assign(start=frame["start"] + 1.25)], ignore_index=True)


def at_random(frame):
    rng = np.random.default_rng(0)
    start = frame.groupby("task")["start"].transform(lambda x: np.sort(rng.uniform(0, 60, len(x))))
    return frame.assign(start=start)


def third_moved(frame):
    return frame.assign(start=frame["start"] - (number_in_task(frame) % 3 == 0))


@pytest.mark.parametrize(
    "change",
    [lambda frame: frame.assign(start=1.0 * number_in_task(frame)), twice, at_random, third_moved],
)
def test_a_recipe_tells_how_long_windows_are(change):
    frame = load_mental_math()[:10].to_frame()
    attributes = frame.attrs
    frame = change(frame)
    frame[features_of(frame)] += np.random.default_rng(0).normal(0, 0.01, (len(frame), 9))
    frame.attrs = attributes
    (found,) = check(frame)
    assert (found.kind, found.columns, found.refused) == ("overlap", ("start",), False)
    assert "windows of 2.5 s start before the one before them, of the same task and" in found.text


def test_a_recipe_tells_that_windows_overlap():
    frame = load_mental_math()[:10].to_frame().drop(columns="start")
    frame.attrs["recipe"] = frame.attrs["recipe"] | {"overlap": 0.5}
    (found,) = check(frame)
    assert found.text.startswith("Windows of 2.5 s overlap by 0.5 s, as their recipe says: windows")


@pytest.mark.parametrize("name", ["end", "Stop", "window_end_s", "duration"])
def test_a_column_tells_how_long_windows_are(name):
    frame = table()
    frame["start"] = 1.0 * number_in_task(frame)
    frame[name] = 2.0 if name == "duration" else frame["start"] + 2.0
    with pytest.warns(TableWarning, match="windows of 2 s start before the one before them"):
        TaskSet.from_frame(frame, drop=[name])
    frame[name] = 1.0 if name == "duration" else frame["start"] + 1.0
    TaskSet.from_frame(frame, drop=[name])
    # Ends of blocks, and how long something took.
    frame[name] = np.random.default_rng(0).uniform(100.0, 200.0, len(frame))
    TaskSet.from_frame(frame, drop=[name])


def test_windows_that_were_moved_are_found_without_their_length():
    frame = table(n_windows=40)
    frame["start"] = 2.5 * number_in_task(frame)
    (found,) = check(third_moved(frame))
    assert "windows start sooner after the one before than the usual 2.5 s" in found.text


@pytest.mark.parametrize("intervals", [(1.5, 2.0, 2.5), (1.0, 3.0), (2.0, 3.0, 4.0), (2.5, 5.0)])
def test_events_may_come_at_several_intervals(intervals):
    for seed in range(20):
        frame = table(12, 40, seed=seed)
        frame["start"] = np.random.default_rng(seed).choice(intervals, len(frame))
        frame["start"] = frame.groupby("task")["start"].cumsum()
        assert check(frame) == []


def test_windows_of_recordings_and_events_are_fine():
    frame = table(n_windows=18)
    number = frame.groupby(["task", "label"]).cumcount()
    # Two recordings, the last window of each moved back to end with it.
    assert check(frame.assign(start=np.where(number == 8, 19.2, 2.5 * number))) == []
    steps = pd.Series(np.random.default_rng(0).exponential(3.0, len(frame)))
    assert check(frame.assign(start=steps.groupby(frame["task"]).cumsum())) == []
    assert check(frame.assign(start=np.where(number == 3, np.nan, 2.5 * number))) == []


# -- all kinds of columns -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Int64", "Float32", "boolean", "category", "object", "string"])
def test_columns_of_any_type(kind):
    frame = table(design="mixed")
    draws = pd.Series(np.random.default_rng(0).integers(0, 2, len(frame)))
    frame["abc"] = draws.astype("boolean" if kind == "boolean" else "Int64").astype(kind)
    frame["f0"] = (
        frame["f0"].round(1).astype(kind if kind not in ("Int64", "boolean") else "Float64")
    )
    frame.loc[4, "abc"] = None
    assert check(frame) == []
    frame["trial"] = pd.Series(number_in_task(frame)).astype("Int64" if kind == "boolean" else kind)
    assert kinds(frame) == [("counter", ("trial",), True)]


def test_columns_that_the_reader_refuses_are_left_to_it():
    frame = table().assign(far=np.inf, wave=1j, hand="left")
    frame["lists"] = [[1]] * len(frame)
    assert check(frame) == []


def test_large_tables_are_sampled():
    frame = table(120, 1000, 2, design="mixed")
    frame["abc"] = code_of(frame)
    frame["trial"] = number_in_task(frame)
    frame["almost"] = frame["trial"]
    frame.loc[[110_005, 115_000], "almost"] = 700
    assert kinds(frame) == [
        ("counter", ("trial",), True),
        ("separates", ("abc",), False),
        ("time", ("almost",), False),
    ]
