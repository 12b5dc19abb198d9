"""What one window costs on a device: the exported header, compiled."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import crossfade as cf
from benchmarks.measure import Progress, Row, at_most

#: Windows that are labelled over and over; each differs, so that nothing is computed beforehand.
_MAIN = """\
#include <stdio.h>
#include <time.h>
#include "model.h"

#define N 256
static double windows[N][CROSSFADE_N_FEATURES], p[CROSSFADE_N_CLASSES];

int main(void)
{
    volatile double sum = 0.0;
    unsigned state = 1;
    int i, j, turn, turns = 4000;
    clock_t start, middle, end;
    for (i = 0; i < N; i++)
        for (j = 0; j < CROSSFADE_N_FEATURES; j++) {
            state = state * 1664525u + 1013904223u;
            windows[i][j] = state / 2147483648.0 - 1.0;
        }
    start = clock();
    for (turn = 0; turn < turns; turn++)
        for (i = 0; i < N; i++)
            sum += crossfade_predict(windows[i]);
    middle = clock();
    for (turn = 0; turn < turns; turn++)
        for (i = 0; i < N; i++) {
            crossfade_probability(windows[i], p);
            sum += p[0];
        }
    end = clock();
    printf("%g %g\\n", (double)(middle - start) / CLOCKS_PER_SEC / turns / N,
           (double)(end - middle) / CLOCKS_PER_SEC / turns / N);
    return sum < 0.0;
}
"""


def _seconds(model, folder) -> list[float]:
    """CPU seconds of one label, and of the probabilities of one window."""
    cf.export_model(model, folder / "model.h")
    (folder / "main.c").write_text(_MAIN)
    subprocess.run(
        ["gcc", "-std=c99", "-O2", "main.c", "-o", "main", "-lm"], cwd=folder, check=True
    )
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=True)
    return [float(one) for one in done.stdout.split()]


def run(progress: Progress) -> Iterator[Row]:
    """Labels and probabilities in C, of two classes and of five, d = 24."""
    if shutil.which("gcc") is None:
        return
    rng = np.random.default_rng(0)
    for place, n_classes in enumerate((2, 5)):
        y = np.arange(40) % n_classes
        tasks = [cf.Task(rng.standard_normal((40, 24)) + 2.0 * np.eye(24)[y], y) for _ in range(9)]
        prior = cf.TaskPrior.from_tasks(tasks[1:], rehearse=False)
        model = cf.HierarchicalBlendClassifier(prior).fit(tasks[0].X, tasks[0].y)
        with tempfile.TemporaryDirectory() as folder:
            label, chances = _seconds(model, Path(folder))
        what = f"in C, d = 24, {n_classes} classes"
        # The target is one of two classes.
        if n_classes == 2:
            yield at_most(f"predict {what}", 1e6 * label, 1.0, " µs")
            yield at_most(f"probability {what}", 1e6 * chances, 1.0, " µs")
        else:
            yield Row(f"predict {what}", f"{1e6 * label:.3g} µs", "", True, 1e6 * label)
        progress((place + 1) / 2)
