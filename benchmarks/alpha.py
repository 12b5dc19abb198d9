"""`choose_alpha` against the authors' Algorithm 1: how much faster, how far from the least risk."""

from collections.abc import Iterator

import numpy as np

import crossfade as cf
from benchmarks.authors_algorithm1 import authors_algorithm1
from benchmarks.measure import Progress, Row, at_least, at_most, medians
from benchmarks.reference import exact_risks, paper_law, unit_law
from crossfade.simulate import draw_directions

GRID = np.linspace(0.0, 1.0, 11)
N_FEATURES, N_TASKS, N_SAMPLES, CONCENTRATION = 9, 35, 20, 5.0


def draw_targets(n_targets, rng):
    """Half gaps and covariances, as learnt from samples around vMF directions."""
    true = draw_directions(n_targets, N_FEATURES, CONCENTRATION, random_state=rng)
    X = rng.standard_normal((n_targets, 2, N_SAMPLES // 2, N_FEATURES))
    X[:, 0] -= true[:, None]
    X[:, 1] += true[:, None]
    means = X.mean(2)
    rows = (X - means[:, :, None]).reshape(n_targets, N_SAMPLES, N_FEATURES)
    return (means[:, 1] - means[:, 0]) / 2.0, rows.mT @ rows / (N_SAMPLES - 2)


def run(progress: Progress) -> Iterator[Row]:
    """Rows of the table."""
    rng = np.random.default_rng(0)
    directions = draw_directions(N_TASKS, N_FEATURES, CONCENTRATION, random_state=rng)
    prior = cf.TaskPrior.from_projections(directions)
    gaps, covariances = draw_targets(40, rng)
    many_gaps, many_covariances = draw_targets(10_000, rng)
    turn = {"ours": 0, "authors": 0}

    def target(name):
        turn[name] = (turn[name] + 1) % len(gaps)
        return gaps[turn[name]], covariances[turn[name]]

    def ours(alphas):
        nu, sigma = target("ours")
        cf.choose_alpha(prior, half_gap=nu, covariance=sigma, n_samples=N_SAMPLES, alphas=alphas)

    def authors():
        nu, sigma = target("authors")
        authors_algorithm1(nu, sigma, N_SAMPLES, directions, rng=rng)

    def batch():
        cf.choose_alpha(
            prior,
            half_gap=many_gaps,
            covariance=many_covariances,
            n_samples=N_SAMPLES,
            alphas=GRID,
        )

    slow, fast, continuous, many = medians(
        [authors, lambda: ours(GRID), lambda: ours(None), batch],
        12,
        lambda done: progress(0.4 * done),
        calls=[3, 100, 100, 1],
    )
    yield at_least(
        "one choose_alpha against the authors' Algorithm 1 (d = 9, J = 35, grid 0.1, B = 100)",
        slow / fast,
        300,
        f" ({1e6 * fast:.0f} µs against {1e3 * slow:.0f} ms)",
    )
    yield at_least(
        "the continuous alpha against the same",
        slow / continuous,
        150,
        f" ({1e6 * continuous:.0f} µs)",
    )
    yield at_least(
        "on the grid, per target in a batch of 10,000",
        slow * len(many_gaps) / many,
        2000,
        f" ({1e6 * many / len(many_gaps):.0f} µs a target)",
    )
    excess, apart, off = [], [], []
    for place, (nu, sigma) in enumerate(zip(gaps, covariances, strict=True)):
        choice = cf.choose_alpha(
            prior, half_gap=nu, covariance=sigma, n_samples=N_SAMPLES, alphas=GRID
        )
        risks = exact_risks(GRID, unit_law(nu, sigma, N_SAMPLES, directions), nu, sigma)
        chosen = int(np.flatnonzero(choice.alpha == GRID)[0])
        excess.append(risks[chosen] - risks.min())
        apart.append(np.abs(risks - choice.risks).max())
        papers = exact_risks(GRID, paper_law(nu, sigma, N_SAMPLES, directions), nu, sigma)
        drawn = authors_algorithm1(nu, sigma, N_SAMPLES, directions, rng=rng)
        off.append(abs(drawn - GRID[papers.argmin()]))
        progress(0.4 + 0.6 * (place + 1) / len(gaps))
    error = np.std(off, ddof=1) / np.sqrt(len(off))
    yield at_most(
        f"risk at its alpha above the least on the grid, worst of {len(gaps)} targets",
        float(max(excess)),
        1e-5,
        note=f" (curve off by at most {max(apart):.0e}; Algorithm 1's alpha by {np.mean(off):.2f} "
        f"± {error:.2f} on average)",
    )
