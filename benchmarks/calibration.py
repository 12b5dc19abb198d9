"""A calibration study: what a split costs by method, and what Dask adds."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.measure import Progress, Row, at_most, medians
from benchmarks.rivals import Coral
from crossfade import load_mental_math
from crossfade.study import METHODS, CalibrationStudy

#: Methods that take longer are given fewer splits.
_N_SPLITS = {"lda": 20, "paper": 50, "coral": 1}
_ROUNDS = 5


def run(progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
    yield from _methods(lambda done: progress(0.4 * done))
    yield from _runners(lambda done: progress(0.4 + 0.6 * done))


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
