"""`choose_alpha` against Algorithm 1 as the paper's authors ran it: how much faster it is."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

import crossfade as cf
from benchmarks.measure import Progress, Row, at_least, medians
from crossfade.simulate import draw_directions

GRID = np.linspace(0.0, 1.0, 11)
N_FEATURES, N_TASKS, N_SAMPLES, CONCENTRATION = 9, 35, 20, 5.0


def authors_algorithm1(nu, sigma, directions, rng, n_draws=100):
    """Alpha of least averaged risk: draws at each alpha, then one call of `norm.cdf` for each."""
    inverse = np.linalg.inv(sigma)
    omega = inverse @ nu
    omega = omega / np.linalg.norm(omega)
    mean = directions.mean(axis=0)
    resultant = np.linalg.norm(mean)
    mu = mean / resultant
    squares = np.mean((directions @ mu) ** 2)
    psi = (1 - squares) / (len(directions) * resultant**2) * np.eye(len(mu))
    own = (1 + nu @ inverse @ nu) * inverse - inverse @ np.outer(nu, nu) @ inverse
    risks = []
    for alpha in GRID:
        centre = alpha * omega + (1 - alpha) * mu
        spread = alpha**2 * own / N_SAMPLES + (1 - alpha) ** 2 * psi
        draws = rng.multivariate_normal(centre, spread, size=n_draws)
        risks.append(
            np.mean([norm.cdf(-(draw @ nu) / np.sqrt(draw @ sigma @ draw)) for draw in draws])
        )
    return GRID[int(np.argmin(risks))]


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

    def batch():
        cf.choose_alpha(
            prior,
            half_gap=many_gaps,
            covariance=many_covariances,
            n_samples=N_SAMPLES,
            alphas=GRID,
        )

    slow, fast, continuous, many = medians(
        [
            lambda: authors_algorithm1(*target("authors"), directions, rng),
            lambda: ours(GRID),
            lambda: ours(None),
            batch,
        ],
        12,
        progress,
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
