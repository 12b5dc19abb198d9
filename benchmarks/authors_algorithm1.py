"""Algorithm 1 as the paper's authors ran it: what ours is timed against.

At each alpha one call of `multivariate_normal` for all B draws, then `scipy.stats.norm.cdf` once
for each draw.
"""

import numpy as np
from scipy.stats import norm


def authors_algorithm1(nu, sigma, n_samples, directions, step=0.1, n_draws=100, rng=None):
    """Return the alpha on the grid with the least averaged risk."""
    inverse = np.linalg.inv(sigma)
    omega = inverse @ nu
    omega = omega / np.linalg.norm(omega)
    mean = directions.mean(axis=0)
    resultant = np.linalg.norm(mean)
    mu = mean / resultant
    squares = np.mean((directions @ mu) ** 2)
    psi = (1 - squares) / (len(directions) * resultant**2) * np.eye(len(mu))
    sigma_omega = (1 + nu @ inverse @ nu) * inverse - inverse @ np.outer(nu, nu) @ inverse
    sigma_omega = sigma_omega / n_samples
    alphas = np.arange(0, 1 + step / 2, step)
    risks = []
    for alpha in alphas:
        centre = alpha * omega + (1 - alpha) * mu
        spread = alpha**2 * sigma_omega + (1 - alpha) ** 2 * psi
        draws = rng.multivariate_normal(centre, spread, size=n_draws)
        risks.append(
            np.mean([norm.cdf(-(draw @ nu) / np.sqrt(draw @ sigma @ draw)) for draw in draws])
        )
    return alphas[int(np.argmin(risks))]
