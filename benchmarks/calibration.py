"""A calibration study: what a split costs by method, what 10,000 sources cost, what Dask adds."""

import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import Progress, Row, at_most, medians
from benchmarks.rivals import Coral
from crossfade import load_mental_math
from crossfade.study import CalibrationStudy
from crossfade.study._methods import METHODS
from crossfade.study._rivals import centred_rule
from crossfade.study._sources import Participant, Sources

#: Methods that take longer are given fewer splits.
_N_SPLITS = {"lda": 20, "paper": 50, "coral": 1}
_N_SOURCES = 10_000
_ROUNDS = 5


def run(progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
    yield from _methods(lambda done: progress(0.3 * done))
    yield from _many_sources(lambda done: progress(0.3 + 0.2 * done))
    yield from _runners(lambda done: progress(0.5 + 0.5 * done))


def _methods(progress: Progress) -> Iterator[Row]:
    tasks = load_mental_math()
    methods = {name: name for name in METHODS} | {"coral": ("coral", Coral())}
    for place, (name, method) in enumerate(methods.items()):
        n_splits = _N_SPLITS.get(name, 100)
        study = CalibrationStudy(tasks, methods=[method], n_splits=n_splits, random_state=0)
        start = perf_counter()
        n_rows = len(study.run().rows)
        yield _cost(f"Mental Math, one split: {name}", perf_counter() - start, n_rows)
        progress((place + 1) / len(methods))


def _many_sources(progress: Progress) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    known = load_mental_math()
    people = []
    for place in range(_N_SOURCES):
        task = known[place % len(known)]
        X = np.asarray(task.X) + 1e-3 * rng.standard_normal(np.shape(task.X))
        people.append(Participant(str(place), str(place), X, np.asarray(task.y, dtype=np.intp)))
    with threadpool_limits(1):
        start = perf_counter()
        sources = Sources.of(people, np.array([0, 1]), 0, keep_windows=True)
        yield _cost(f"{_N_SOURCES:,} sources: summed up, once", perf_counter() - start, 1)
        progress(0.5)
        for what, use in (
            ("the paper's prior", lambda crowd: crowd.paper_prior),
            ("the prior of convex and posterior", lambda crowd: crowd.prior),
            ("the rule of lda-pooled", lambda crowd: crowd.once(centred_rule)),
        ):
            seconds = medians([lambda use=use: use(sources.without("0"))], 3, lambda _: None)[0]
            yield _cost(f"{_N_SOURCES:,} sources, one target: {what}", seconds, 1)
    megabytes = len(pickle.dumps(sources)) / 1e6
    yield Row(f"{_N_SOURCES:,} sources: size, once a process", f"{megabytes:.0f} MB", "", True, 0.0)


def _runners(progress: Progress) -> Iterator[Row]:
    """The default study, 36 targets, by two processes of joblib and two workers of Dask in turn."""
    study = CalibrationStudy(load_mental_math(), random_state=0)
    near = partial(study.run, n_jobs=2)
    plain = partial(
        CalibrationStudy(load_mental_math(), random_state=0, forecasts=False).run, n_jobs=2
    )

    def kept() -> None:
        with TemporaryDirectory() as folder:
            near(folder=Path(folder))

    try:
        from distributed import LocalCluster
    except ImportError:
        yield Row("Dask over joblib", "install crossfade[dask]", "at most 1.25", False, np.nan)
        return
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        far = partial(study.run, dask=cluster.scheduler_address)
        runs = [near, plain, kept, far]
        seconds, bare, with_folder, on_dask = medians(runs, _ROUNDS, progress, wall=True)
    what = "Mental Math, five methods, 100 splits, two processes"
    yield at_most(what, seconds, 20.0, " s")
    yield at_most(f"{what}, without forecasts", bare, 3.0, " s")
    yield at_most(f"{what}: in a folder over in memory", with_folder / seconds, 1.5, " times")
    yield at_most(f"{what}: Dask over joblib", on_dask / seconds, 1.25, " times")


def _cost(what: str, seconds: float, times: int) -> Row:
    each = 1e3 * seconds / times
    return Row(what, f"{each:,.3g} ms", "", True, each)
