"""Mixtures of many directions."""

from collections.abc import Iterator
from itertools import product
from time import perf_counter

import numpy as np

from benchmarks.measure import Progress, Row, at_most


def run_mixture(progress: Progress) -> Iterator[Row]:
    """Rows of the table: EM with J = 10,000, d = 50 and four components."""
    from crossfade import MixturePrior
    from crossfade.simulate import draw_directions

    rng = np.random.default_rng(0)
    turns = [np.linalg.qr(rng.standard_normal((50, 50)))[0] for _ in range(4)]
    kappas = np.array([30.0, 60.0, 100.0, 200.0])
    W = np.concatenate(
        [
            draw_directions(2500, 50, kappa, random_state=rng) @ turn
            for kappa, turn in zip(kappas, turns, strict=True)
        ]
    )
    progress(0.3)
    start = perf_counter()
    prior = MixturePrior.from_projections(W, 4, random_state=0)
    seconds = perf_counter() - start
    yield at_most("mixture of 10,000 directions, d = 50, four components: EM", seconds, 5.0, " s")
    off = float(np.abs(np.sort(prior.concentrations) / kappas - 1.0).max())
    yield at_most("the same: worst error of a concentration", off, 0.05)
    yield from _number_of_components(progress)


def _number_of_components(progress: Progress) -> Iterator[Row]:
    """One anisotropic crowd must not be cut in pieces, and true mixtures must be found."""
    import crossfade as cf
    from crossfade.simulate import draw_directions

    W = cf.TaskPrior.from_tasks(cf.load_mental_math(), keep_directions=True).directions
    start = perf_counter()
    cf.MixturePrior.from_projections(W)
    seconds = perf_counter() - start
    yield at_most("number of components of Mental Math's 36 directions", seconds, 1.0, " s")
    rng = np.random.default_rng(0)
    crowds = rng.multivariate_normal(W.mean(0), np.cov(W.T), size=(30, 36), method="eigh")
    priors = [cf.MixturePrior.from_projections(crowd, normalize=True) for crowd in crowds]
    cut = sum(prior.n_components > 1 for prior in priors)
    yield at_most("of 30 crowds with their moments, in two components or more", cut, 3)
    progress(0.5)
    missed = 0
    sizes = [(36, 9), (36, 20), (60, 4), (60, 10), (60, 30), (100, 10), (100, 30)]
    for (n_tasks, d), count, kappa, degrees in product(sizes, (2, 3), (30, 50, 100), (60, 90)):
        cosines = np.full((count, count), np.cos(np.radians(degrees)))
        np.fill_diagonal(cosines, 1.0)
        centres = np.pad(np.linalg.cholesky(cosines), ((0, 0), (0, d - count)))
        rng = np.random.default_rng([n_tasks, d, count, kappa, degrees])
        parts = [
            draw_directions(
                len(range(place, n_tasks, count)), d, kappa, mean_direction=centre, random_state=rng
            )
            for place, centre in enumerate(centres)
        ]
        missed += cf.MixturePrior.from_projections(np.concatenate(parts)).n_components == 1
    yield at_most("of 84 mixtures of two or three components, taken for one crowd", missed, 6)
