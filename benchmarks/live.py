"""Live sessions: is the advice to stop worth following, and what does a window cost?"""

import gc
import tracemalloc
from collections.abc import Iterator
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import Progress, Row
from crossfade import (
    CalibrationStudy,
    LiveCalibration,
    Task,
    TaskPrior,
    TaskSet,
    load_mental_math,
)
from crossfade.datasets import make_matb_like


def run_advice(progress: Progress) -> Iterator[Row]:
    """Sessions that follow the advice, beside a number of windows that is the same for all.

    Same people, starts and test windows. The fixed number is the mean number that the advice took;
    between two whole numbers accuracy is taken to be linear.
    """
    tables = {
        "Mental Math": (list(load_mental_math()), 12, 100, "not below the fixed number"),
        "half flat after 3, half need 20": (_crowd(2.2), 24, 20, "30 % fewer labels"),
        "half as the crowd says": (_crowd(1.0), 24, 20, ""),
        "half cannot be told": (_crowd(0.0), 24, 20, ""),
    }
    for done, (name, (tasks, most, n_splits, target)) in enumerate(tables.items(), 1):
        means = {}
        for method, budgets in (("hierarchical", range(1, most + 1)), ("live", [most])):
            study = CalibrationStudy(
                tasks,
                methods=[method],
                budgets=list(budgets),
                n_splits=n_splits,
                random_state=0,
                forecasts=method == "live",
            )
            rows = study.run(n_jobs=2).rows.groupby(["task", "budget"], sort=False)
            means[method] = rows[["balanced_accuracy", "n_labelled"]].mean()
        fixed = means["hierarchical"]["balanced_accuracy"].unstack("budget").to_numpy()
        live = means["live"]
        used = live["n_labelled"].to_numpy() / 2.0
        yield _compared(name, fixed, live["balanced_accuracy"].to_numpy(), used, target)
        progress(done / len(tables))


def _crowd(gap: float, n_people: int = 60, n_each: int = 60, d: int = 10) -> list[Task]:
    """People of whom half differ by `gap` along the crowd's direction, and half along their own.

    The former have nothing to learn after a few windows, the latter a direction.
    """
    rng = np.random.default_rng(1)
    people = []
    for place in range(n_people):
        half = np.zeros(d)
        if place % 2 == 0:
            half[0] = gap
            half += rng.normal(0.0, 0.05 * gap, d)
        else:
            own = rng.normal(size=d - 1)
            half[0], half[1:] = 0.2, 0.9 * own / np.linalg.norm(own)
        label = np.repeat([0, 1], n_each)
        X = rng.normal(size=(2 * n_each, d)) + rng.normal(0.0, 0.4, d)
        X += np.where(label[:, None] == 1, half, -half)
        people.append(Task(X, label, f"P{place:02}"))
    return people


def _compared(
    what: str, fixed: np.ndarray, accuracy: np.ndarray, used: np.ndarray, target: str
) -> Row:
    """Sessions against fixed numbers (n_people, n_budgets), and the labels saved."""
    sizes = np.arange(1, fixed.shape[1] + 1)
    cost = used.mean()
    same = np.array([np.interp(cost, sizes, one) for one in fixed])
    off = accuracy - same
    error = off.std(ddof=1) / np.sqrt(len(off))
    mean = np.maximum.accumulate(fixed.mean(0))
    saved = 1.0 - cost / np.interp(accuracy.mean(), mean, sizes)
    measured = (
        f"{cost:.1f} a class ({used.min():.1f} to {used.max():.1f}): {accuracy.mean():.4f}, fixed "
        f"{same.mean():.4f}, {off.mean():+.4f} ± {error:.4f}; {100.0 * saved:.0f} % fewer labels"
    )
    reached = saved >= 0.3 if target.startswith("30") else off.mean() >= 0.0
    return Row(what, measured, target, reached or not target, float(off.mean()))


# -- the same person tomorrow ---------------------------------------------------------------------


def run_returning(progress: Progress) -> Iterator[Row]:
    """What an earlier session of the same person adds to the crowd."""
    tables = {
        "simulated MATB": list(make_matb_like()),
        "simulated MATB, other seed": list(make_matb_like(random_state=1)),
        "Mental Math in halves": _halves(),
    }
    for done, (name, tasks) in enumerate(tables.items(), 1):
        kept, means = ["balanced_accuracy", "expected_accuracy"], []
        for splits in ("consecutive", "next-session"):
            study = CalibrationStudy(
                tasks,
                methods=["hierarchical"],
                budgets=[0, 1, 2, 5],
                splits=splits,
                random_state=0,
            )
            means.append(study.run().rows.groupby(["budget", "task"])[kept].mean())
        for budget, person in means[1].groupby("budget"):
            crowd = means[0].loc[person.index]
            gain = (person - crowd)["balanced_accuracy"]
            error = gain.std() / np.sqrt(len(gain))
            wanted = budget == 2 and name.startswith("simulated")
            yield Row(
                f"{name}, {budget:g} a class",
                f"{person[kept[0]].mean():.3f} (forecast {person[kept[1]].mean():.3f}), crowd "
                f"alone {crowd[kept[0]].mean():.3f}, {gain.mean():+.4f} ± {error:.4f}",
                "0.02 above the crowd alone" if wanted else "",
                gain.mean() >= 0.02,
                float(gain.mean()),
            )
        progress(done / len(tables))


def _halves() -> list[Task]:
    """Mental Math, of each class the earlier windows as one session and the later as the next."""
    tasks = []
    for person in load_mental_math():
        X, y = np.asarray(person.X), np.asarray(person.y)
        for half in (0, 1):
            kept = [np.array_split(np.flatnonzero(y == name), 2)[half] for name in (0, 1)]
            rows = np.concatenate(kept)
            tasks.append(Task(X[rows], y[rows], f"{person.name}-{half + 1}", str(person.name)))
    return tasks


# -- cost -----------------------------------------------------------------------------------------

_N_WINDOWS, _N_FEATURES, _N_EDGE = 1500, 24, 100


def run_session(progress: Progress) -> Iterator[Row]:
    """CPU time of a window, journal excluded, and memory, in an hour of windows."""
    rng = np.random.default_rng(0)
    tasks = []
    for place in range(40):
        y = np.repeat([0, 1], 40)
        X = rng.normal(size=(80, _N_FEATURES)) + rng.normal(0.0, 0.5, _N_FEATURES)
        X[:, :2] += np.where(y[:, None] == 1, 0.5, -0.5)
        tasks.append(Task(X, y, name=f"P{place}"))
    prior = TaskPrior.from_tasks(TaskSet(tasks))
    for words, labelled in (("every window labelled", 1), ("one in ten labelled", 10)):
        live, times = LiveCalibration(prior), []
        with threadpool_limits(1):
            gc.collect()
            tracemalloc.start()
            for step in range(_N_WINDOWS):
                window = rng.normal(size=_N_FEATURES)
                label = step // labelled % 2 if step % labelled == 0 else None
                live.add(window, label)
                live.state()
                if step == _N_EDGE:
                    before = tracemalloc.get_traced_memory()[0]
                progress((step + 1) / _N_WINDOWS)
            after = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            live = LiveCalibration(prior)
            for step in range(_N_WINDOWS):
                window = rng.normal(size=_N_FEATURES)
                label = step // labelled % 2 if step % labelled == 0 else None
                start = process_time()
                live.add(window, label)
                live.predict(window)
                live.state()
                times.append(process_time() - start)
        early, late = (
            1e3 * float(np.median(part))
            for part in (times[_N_EDGE : 2 * _N_EDGE], times[-_N_EDGE:])
        )
        yield Row(
            f"a window of {_N_FEATURES} features, {words}",
            f"{early:.1f} ms CPU at first, {late:.1f} ms after {_N_WINDOWS}",
            "below 10 ms",
            late < 10.0,
            late,
        )
        grown = (after - before) / 1e6
        yield Row(
            f"memory of {_N_WINDOWS} windows", f"{grown:.1f} MB", "20 MB", grown < 20.0, grown
        )
