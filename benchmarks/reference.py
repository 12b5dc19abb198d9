"""Formulas of the blend, written out densely and without the package: the risks to compare with."""

import numpy as np


def unit_law(nu, sigma, n_samples, directions):
    """Direction, covariance (equation 5, no shrinkage) and the crowd's mean and tangent Psi."""
    inverse = np.linalg.inv(sigma)
    raw = inverse @ nu
    length = np.linalg.norm(raw)
    omega = raw / length
    noise = (1.0 / n_samples + (nu @ raw) / (n_samples - 2.0)) / length**2
    across = np.eye(len(nu)) - np.outer(omega, omega)
    mu, spread, resultant = _crowd(directions)
    psi = spread / (len(nu) - 1) / (len(directions) * resultant**2)
    psi = psi * (np.eye(len(nu)) - np.outer(mu, mu))
    return omega, noise * across @ inverse @ across, mu, psi


def paper_law(nu, sigma, n_samples, directions):
    """The same as `authors_algorithm1` has it: raw formula of the text, Psi as used."""
    inverse = np.linalg.inv(sigma)
    raw = inverse @ nu
    noise = ((1.0 + nu @ raw) * inverse - np.outer(raw, raw)) / n_samples
    mu, spread, resultant = _crowd(directions)
    psi = spread / (len(directions) * resultant**2) * np.eye(len(nu))
    return raw / np.linalg.norm(raw), noise, mu, psi


def _crowd(directions):
    mean = directions.mean(axis=0)
    resultant = np.linalg.norm(mean)
    mu = mean / resultant
    return mu, 1.0 - np.mean((directions @ mu) ** 2), resultant


def exact_risks(alphas, law, nu, sigma, n_nodes=1500):
    """Expected risks of the blends by inversion with many nodes, in dense complex arithmetic."""
    omega, noise, mu, psi = law
    return np.array(
        [
            _negative(
                alpha * omega + (1.0 - alpha) * mu,
                alpha**2 * noise + (1.0 - alpha) ** 2 * psi,
                nu,
                sigma,
                n_nodes,
            )
            for alpha in alphas
        ]
    )


def _negative(mean, covariance, nu, sigma, n_nodes):
    """P(omega'x < 0) for a normal direction omega and a normal sample x."""
    step = 9.0 / n_nodes
    u = step * np.arange(1, n_nodes + 1)
    t = np.sinh(u)
    kernel = np.eye(len(nu)) + (t**2)[:, None, None] * (covariance @ sigma)
    pull = 1j * t[:, None] * nu - (t**2)[:, None] * (sigma @ mean)
    answer = np.linalg.solve(kernel, (pull @ covariance)[..., None])[..., 0]
    exponent = 1j * t * (nu @ mean) - 0.5 * t**2 * (mean @ sigma @ mean)
    exponent = exponent + 0.5 * (pull * answer).sum(-1)
    phi = np.exp(exponent) / np.sqrt(np.linalg.det(kernel))
    total = 0.5 * (nu @ mean) + (phi.imag / np.tanh(u)).sum()
    return 0.5 - step * total / np.pi
