"""Algorithm 1 of the paper, line by line, with nothing vectorised: what ours is timed against."""

import numpy as np
from scipy.stats import norm


def plain_algorithm1(nu, sigma, n_samples, directions, step=0.1, n_draws=100, rng=None):
    """Return the alpha on the grid with the least averaged risk, as the paper's text has it.

    Python loops over the alphas and over the draws; `scipy.stats.norm.cdf` once per draw.
    """
    omega = np.linalg.inv(sigma) @ nu
    omega = omega / np.linalg.norm(omega)
    mean = directions.mean(axis=0)
    resultant = np.linalg.norm(mean)
    mu = mean / resultant
    squares = np.mean((directions @ mu) ** 2)
    psi = (1 - squares) / (len(directions) * resultant**2) * np.eye(len(mu))
    inverse = np.linalg.inv(sigma)
    sigma_omega = (1 + nu @ inverse @ nu) * inverse - inverse @ np.outer(nu, nu) @ inverse
    sigma_omega = sigma_omega / n_samples
    alphas = np.arange(0, 1 + step / 2, step)
    risks = []
    for alpha in alphas:
        centre = alpha * omega + (1 - alpha) * mu
        spread = alpha**2 * sigma_omega + (1 - alpha) ** 2 * psi
        total = 0.0
        for _ in range(n_draws):
            draw = rng.multivariate_normal(centre, spread)
            total += norm.cdf(-(draw @ nu) / np.sqrt(draw @ sigma @ draw))
        risks.append(total / n_draws)
    return alphas[int(np.argmin(risks))]
