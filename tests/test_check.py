"""What would mislead in a table of tasks is found, and features are left alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from crossfade import TaskSet, load_mental_math
from crossfade.exceptions import TableWarning

RESERVED = ("task", "label", "group", "start")


def features_of(frame):
    return [name for name in frame.columns if name not in RESERVED]


def refused(frame, **options):
    """What the reader says as it refuses a table."""
    with pytest.raises(ValueError, match=r".") as refusal:
        TaskSet.from_frame(frame, **options)
    return str(refusal.value)


def warned(frame, **options):
    """What the reader warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TaskSet.from_frame(frame, **options)
    return [str(one.message) for one in caught if issubclass(one.category, TableWarning)]


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
    "coarse": lambda x, rng: x.round(),
    "counts": lambda x, rng: rng.poisson(np.exp(0.5 * x.clip(-3, 3))),
    "heavy": lambda x, rng: 10.0 * x**3,
    "bounded": lambda x, rng: 1.0 / (1.0 + np.exp(-x)),
    "boolean": lambda x, rng: x > 0.5,
}


def clean_table(seed, n_tasks=None, n_windows=None):
    """Features of many kinds: autocorrelated, strong, rounded, in blocks or not."""
    rng = np.random.default_rng(seed)

    def between(low, high):
        return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))

    n_tasks = n_tasks or between(2, 60)
    n_windows = n_windows or min(between(2, 400), max(2, 1000 // n_tasks))
    n_features, n_classes = between(1, 40), int(rng.choice([2, 2, 3, 4]))
    design = rng.choice(["blocks", "other blocks", "turn", "mixed"])
    likeness = rng.choice([0.0, 0.0, 0.5, 0.9, 0.95])
    makers = [MAKERS[kind] for kind in rng.choice(list(MAKERS), n_features)]
    gap = rng.normal(0.0, 0.5, n_features)
    gap[0] = rng.choice([0.0, 1.0, 2.0, 3.0])
    parts = []
    for place in range(n_tasks):
        label = classes_in(design, n_windows, n_classes, rng)
        noise = rng.standard_normal((n_windows, n_features))
        noise[1:] *= np.sqrt(1.0 - likeness**2)
        X = lfilter([1.0], [1.0, -likeness], noise, axis=0)
        X += label[:, None] * gap * rng.normal(1.0, 0.2) + rng.standard_normal(n_features)
        part = {f"f{column}": make(X[:, column], rng) for column, make in enumerate(makers)}
        parts.append(pd.DataFrame({"task": f"p{place:02d}", "label": label, **part}))
        if seed % 3 == 0:
            parts[-1].insert(0, "start", 2.5 * np.arange(n_windows))
    return pd.concat(parts, ignore_index=True)


# -- columns that are not features ----------------------------------------------------------------


def number_in_task(frame):
    return frame.groupby("task").cumcount()


def code_of(frame):
    return pd.Series(pd.factorize(frame["label"])[0], frame.index)


def size_of(frame):
    return frame.groupby("task")["task"].transform("size")


def times(frame, **options):
    return pd.date_range("2026-01-31 09:00", periods=len(frame), **options)


def clock(frame):
    steps = pd.Series(np.random.default_rng(0).exponential(1.0, len(frame)), frame.index)
    return steps.groupby(frame["task"]).cumsum()


#: The word that matters, name of the column, and its values.
REFUSED = {
    "counter": ("counter", "trial", number_in_task),
    "counter down": ("counter", "abc", lambda frame: size_of(frame) - number_in_task(frame)),
    "counter by 250": ("counter", "abc", lambda frame: 250 * number_in_task(frame)),
    "counter of a class": (
        *("counter", "abc"),
        lambda frame: frame.groupby(["task", "label"]).cumcount(),
    ),
    "counter with gaps": (
        *("time", "trial"),
        lambda frame: number_in_task(frame) + (number_in_task(frame) > 5),
    ),
    "equal steps": ("time", "abc", lambda frame: 0.5 + 2.5 * number_in_task(frame)),
    "index of to_csv": ("index", "Unnamed: 0", lambda frame: range(len(frame))),
    "index of parquet": ("index", "__index_level_0__", lambda frame: range(len(frame))),
    "dates": ("dates", "when", lambda frame: times(frame, freq="min")),
    "dates as text": (
        *("dates", "when"),
        lambda frame: times(frame, freq="min").strftime("%d.%m.%Y %H:%M"),
    ),
    "dates as objects": ("dates", "when", lambda frame: times(frame, freq="D").date),
    "dates as numbers": (
        *("dates", "when"),
        lambda frame: times(frame, freq="9h").strftime("%Y%m%d").astype(int),
    ),
    "milliseconds since 1970": (
        *("dates", "ts"),
        lambda frame: 1.77e12 + 1e8 * np.random.default_rng(0).random(len(frame)),
    ),
    "durations": (
        *("total_seconds", "rr"),
        lambda frame: pd.to_timedelta(np.random.default_rng(0).random(len(frame)), unit="s"),
    ),
    "empty": ("empty", "abc", lambda frame: np.nan),
}
WARNED = {
    "constant": ("same value", "session", lambda frame: 1),
    "one value in each task": (
        *("one value in each task", "age"),
        lambda frame: 20 + 3 * pd.factorize(frame["task"])[0] ** 2,
    ),
    "clock": ("rises", "abc", clock),
    "clock down": ("rises", "abc", lambda frame: -clock(frame)),
    "copy of the label": ("copy of the label", "abc", lambda frame: code_of(frame) * 4 + 3),
    "copy as booleans": ("copy of the label", "abc", lambda frame: code_of(frame) > 0),
}
SHAPES = {
    "small": {"n_tasks": 5, "n_windows": 12, "n_features": 2, "design": "mixed"},
    "real": None,
}


@pytest.fixture(params=SHAPES)
def frame(request, people):
    shape = SHAPES[request.param]
    return people.to_frame() if shape is None else table(**shape)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_column_that_is_certainly_no_feature_is_refused(kind, frame):
    word, name, values = REFUSED[kind]
    frame[name] = values(frame)
    before = frame.copy()
    said = refused(frame)
    assert word in said
    assert repr(name) in said
    assert f"(drop=[{name!r}])" in said
    assert len(TaskSet.from_frame(frame, drop=name).feature_names) == len(features_of(frame)) - 1
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("kind", WARNED)
def test_a_column_that_may_mislead_is_a_warning(kind, frame):
    word, name, values = WARNED[kind]
    frame[name] = values(frame)
    (said,) = warned(frame)
    assert word in said
    assert repr(name) in said
    assert warned(frame, drop=name) == []


def test_a_column_that_the_user_names_is_kept():
    frame = table()
    frame["trial"] = number_in_task(frame)
    (said,) = warned(frame, columns=["f0", "trial"])
    assert "counter" in said
    # Text does not become a number by being named.
    frame["day"] = "2024-01-05"
    assert "dates" in refused(frame, columns=["f0", "day"])


@pytest.mark.parametrize(
    "values",
    [
        ["2026-01-31T09:00:00Z", "2026-02-01T09:00:00+01:00", None],
        ["31/01/2026", "1/2/26", "3/2/2026"],
        ["Jan 31, 2026", "Feb 1, 2026", "1 March 2026"],
        ["09:00:01.5", "9:02", "11:30 pm"],
        pd.Series(["2026-01-31", "2026-02-01", "2026-03-01"], dtype="category"),
        [20240101, 20240108, 20240101],
        [1.7e12, 1.7e12, 1.7e12],
    ],
)
def test_dates_are_refused_however_they_are_written(values):
    frame = pd.DataFrame({"task": "p", "label": [0, 1, 0], "x": [0.3, 0.1, 0.7], "when": values})
    assert "'when'" in refused(frame)


@pytest.mark.parametrize("kind", ["Int64", "Float32", "category", "object", "string"])
def test_columns_of_any_type(kind):
    frame = table(design="mixed")
    draws = pd.Series(np.random.default_rng(0).integers(0, 2, len(frame)))
    frame["abc"] = draws.astype("Int64").astype(kind)
    assert warned(frame) == []
    frame["trial"] = pd.Series(number_in_task(frame)).astype(kind)
    assert "counter" in refused(frame)


# -- features are left alone ----------------------------------------------------------------------


@pytest.mark.parametrize("features", ["shares", "log-powers"])
def test_mental_math_has_nothing_to_warn_of(features):
    assert warned(load_mental_math(features=features).to_frame()) == []


@pytest.mark.parametrize("n_tasks", [None, 1])
def test_clean_tables_have_fewer_than_one_false_alarm_in_twenty(n_tasks):
    n_wrong = 0
    for seed in range(60):
        frame = clean_table(seed, n_tasks, None if n_tasks is None else 2 + seed % 9)
        with np.errstate(all="raise"):
            found = warned(frame)
        # One value in every row is one.
        n_wrong += any("value" not in said for said in found)
    assert n_wrong < 3


def test_two_rows_say_nothing():
    values = {"a": [0, 1], "b": [0.0, 2.0], "c": [5, 5], "trial": [0, 1]}
    assert warned(pd.DataFrame({"task": "new", "label": [0, 1], **values})) == []


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["p01 ", "p01\xa0", "p\u200b01", "\ufeffp01", "p 01"])
def test_names_that_differ_by_white_space_are_refused(other):
    frame = table()
    frame.loc[24:30, "task"] = other
    assert "white space" in refused(frame)
    frame = table()
    frame.loc[3:9, "label"] = "rest" + other[-1:] if other[-1] == " " else "rest "
    assert "label" in refused(frame)


def test_names_that_differ_by_case_are_a_warning():
    frame = table()
    frame.loc[24:30, "task"] = "P01"
    (said,) = warned(frame)
    assert "'p01' and 'P01'" in said or "'P01' and 'p01'" in said


def test_names_that_only_look_alike_are_fine():
    frame = table()
    names = {"p00": "1 11", "p01": "11 1", "p02": "1", "p03": "01", "p04": "p-1", "p05": "p1"}
    frame["task"] = frame["task"].replace(names)
    assert warned(frame) == []


def test_columns_that_differ_by_white_space_are_refused():
    frame = table().rename(columns={"f1": " f0"})
    assert "' f0'" in refused(frame)
    assert len(warned(frame, columns=["f0", " f0"])) == 1
    assert len(warned(frame.rename(columns={" f0": "F0"}))) == 1
    assert "--label" in refused(table().rename(columns={"f1": " label"}))


# -- columns and windows that are there twice -----------------------------------------------------


def test_columns_that_hold_the_same():
    frame = table()
    frame.loc[3:8, "f2"] = np.nan
    frame["again"], frame["kelvin"] = frame["f0"], (frame["f1"] + 273.15).round(4)
    frame["more"], frame["scaled"] = frame["f0"], 2.0 * frame["f2"]
    found = warned(frame)
    pairs = ("'f0', 'again' and 'more'", "'f1' and 'kelvin'", "'f2' and 'scaled'")
    assert len(found) == 3
    for said, pair in zip(sorted(found), pairs, strict=True):
        assert pair in said


def test_one_person_under_two_names():
    frame = table()
    columns = features_of(frame)
    frame.loc[frame["task"] == "p05", columns] = frame.loc[frame["task"] == "p02", columns].values
    (said,) = warned(frame)
    assert "'p02' and 'p05'" in said


def test_rows_that_are_repeated():
    frame = table()
    (said,) = warned(pd.concat([frame, frame.iloc[:40]]))
    assert "40 of 232 windows" in said


def test_a_dead_recording_and_coarse_features_are_no_repeated_rows():
    frame = table()
    columns = features_of(frame)
    frame.loc[frame["task"] == "p05", columns] = 0.0
    assert warned(frame) == []
    frame[columns] = frame[columns].round()
    assert warned(frame) == []


# -- windows that overlap -------------------------------------------------------------------------


def test_a_recipe_tells_that_windows_overlap():
    frame = load_mental_math()[:10].to_frame().drop(columns="start")
    frame.attrs["recipe"] = frame.attrs["recipe"] | {"overlap": 0.5}
    (said,) = warned(frame)
    assert "overlap by 0.5 s" in said
