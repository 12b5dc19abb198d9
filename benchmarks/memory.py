"""Peak memory of a study in a folder: does it grow with its participants?"""

import json
import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory

from benchmarks.measure import Progress, Row, at_most

_FEW, _MANY = 100, 1000
#: Five methods, four budgets, 100 splits, nine features and 60 windows; statistics and forecasts of
#: all rows at the end. Peak memory in MB of this process, and of the largest worker.
_SCRIPT = """
import json, resource, sys
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy
from crossfade.study.statistics import forecast_errors, reliability

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

if __name__ == "__main__":
    n_tasks, folder, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    tasks = simulate_tasks(n_tasks, 60, n_features=9, random_state=0)
    study = CalibrationStudy(tasks, random_state=0, forecasts=False)
    worker = 0.0
    if how == "dask":
        from distributed import LocalCluster
        options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
            with cluster.get_client() as client:
                result = study.run(dask=client, folder=folder)
                worker = max(client.run(peak).values())
    else:
        result = study.run(n_jobs=int(how), folder=folder)
    result.summary(), result.needed(), forecast_errors(result), reliability(result)
    print(json.dumps([peak(), worker]))
"""


def run(progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
    for place, how in enumerate(("1", "2", "dask")):
        few, many = (_peaks(n_tasks, how) for n_tasks in (_FEW, _MANY))
        name = "a cluster of Dask" if how == "dask" else f"{how} process{'es' * (how != '1')}"
        for who, least, most in zip(("client", "worker"), few, many, strict=True):
            if most:
                what = f"Peak memory, {_MANY:,} participants over {_FEW}, {name}: {who}"
                yield at_most(what, most - least, 150.0, " MB", f" ({least:.0f} to {most:.0f})")
        progress((place + 1) / 3)


def _peaks(n_tasks: int, how: str) -> tuple[float, float]:
    """Peak memory in MB of the client and of a worker, in processes of their own."""
    with TemporaryDirectory() as folder:
        words = [sys.executable, "-c", _SCRIPT, str(n_tasks), folder, how]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    client, worker = json.loads(done.stdout.splitlines()[-1])
    return client, worker
