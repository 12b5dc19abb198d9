"""A prior from a million vectors in chunks; run on its own, so that its memory can be measured."""

import json
from time import perf_counter

import numpy as np

from crossfade.crowd import TaskPrior

N_VECTORS, N_FEATURES, CHUNK = 1_000_000, 24, 20_000


def _kilobytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def main():
    """Print the seconds of the updates, with and without drawing, and the megabytes needed."""
    rng = np.random.default_rng(0)
    start_memory = _kilobytes("VmRSS")
    start = perf_counter()
    updating = 0.0
    prior = None
    for _ in range(N_VECTORS // CHUNK):
        vectors = rng.standard_normal((CHUNK, N_FEATURES))
        vectors[:, 0] += 3.0
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        begun = perf_counter()
        prior = TaskPrior.from_projections(vectors) if prior is None else prior.update(vectors)
        updating += perf_counter() - begun
    assert prior.n_tasks == N_VECTORS
    print(
        json.dumps(
            {
                "updating": updating,
                "with_drawing": perf_counter() - start,
                "megabytes": (_kilobytes("VmHWM") - start_memory) / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
