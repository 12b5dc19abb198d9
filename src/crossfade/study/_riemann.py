"""pyRiemann's transfer learning, for tasks whose features are tangent vectors.

The tangent vector of a window is the upper triangle of log(M^-1/2 C M^-1/2), so that the matrix
exponential gives the covariance C back, moved by M, the mean of its session: what pyRiemann's
estimators work on, and as much as the other methods of the study see. What they learn of the
sources alone is learnt once for all splits; the results are those of a fit to everything.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from crossfade.study._batch import Array, Batch, Predictions
from crossfade.study._rivals import lda
from crossfade.study._sources import Sources

Rng = np.random.Generator

#: How far MDWM goes from the sources' means to the person's: half of the way.
TRADEOFF = 0.5
#: Domains are numbers: pyRiemann glues their names to the labels with a slash, and cuts there.
_TARGET = "0"


class ClassCentres(NamedTuple):
    """Riemannian mean (n_classes, c, c) of the sources' matrices of each class."""

    matrices: Array
    label: NDArray[np.intp]


def matrices_of(vectors: Array) -> Array:
    """Matrices (n, c, c) of tangent vectors (n, c (c + 1) / 2) at the identity."""
    size = (math.isqrt(8 * vectors.shape[1] + 1) - 1) // 2
    rows, columns = np.triu_indices(size)
    log = np.empty((len(vectors), size, size))
    log[:, rows, columns] = log[:, columns, rows] = vectors * _weights(size, -0.5)
    return _of_values(np.exp, log)


def vectors_of(matrices: Array) -> Array:
    """Tangent vectors (n, c (c + 1) / 2) at the identity, of matrices (n, c, c)."""
    size = matrices.shape[-1]
    rows, columns = np.triu_indices(size)
    vectors: Array = _of_values(np.log, matrices)[:, rows, columns] * _weights(size, 0.5)
    return vectors


def _weights(size: int, power: float) -> Array:
    """One on the diagonal of a triangle, 2^power off it."""
    rows, columns = np.triu_indices(size)
    weights: Array = np.where(rows == columns, 1.0, 2.0**power)
    return weights


def _of_values(function: Any, matrices: Array) -> Array:
    """Function of symmetric matrices (n, c, c), by their eigenvalues."""
    values, vectors = np.linalg.eigh(matrices)
    result: Array = (vectors * function(values)[:, None, :]) @ vectors.mT
    return result


def _encoded(matrices: Array, label: NDArray[np.intp], domain: Any) -> NDArray[Any]:
    """Labels with domains, as pyRiemann has them."""
    from pyriemann.transfer import encode_domains

    found: NDArray[Any] = encode_domains(matrices, label, np.broadcast_to(domain, label.shape))[1]
    return found


def means_of_sources(sources: Sources) -> ClassCentres:
    """What MDWM learns of the sources."""
    from pyriemann.classification import MDM

    X, label, _ = sources.in_windows
    rule = MDM(metric="riemann").fit(matrices_of(X), label)
    return ClassCentres(rule.covmeans_, rule.classes_)


def run_mdwm(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    """Minimum distance to means that lie between those of the sources and of the person."""
    from pyriemann.transfer import MDWM

    known, label = sources.once(means_of_sources), batch.splits.label
    every = matrices_of(batch.X)
    places = np.concatenate([known.label, label])
    domain = np.array(["1"] * len(known.label) + [_TARGET] * len(label))
    parts = []
    for labelled, test in zip(batch.splits.labelled, batch.splits.test, strict=True):
        # The mean of one matrix is that matrix, so that the means stand for all of the sources.
        X = np.concatenate([known.matrices, every[labelled]])
        rule = MDWM(TRADEOFF, _TARGET).fit(X, _encoded(X, places, domain))
        order = rule.classes_.astype(int).argsort()
        # Probabilities are those of its predict_proba: the softmax of - distance^2.
        near = -(rule.transform(every[test])[None, :, order] ** 2)
        if len(order) == 2:
            scores = near[..., 1] - near[..., 0]
            parts.append(Predictions.of_two(scores, expit(scores)))
        else:
            chances = softmax(near, -1)
            parts.append(Predictions.of(near.argmax(-1), chances, chances))
    return Predictions.joined(parts)


def centred_vectors(sources: Sources) -> tuple[Array, NDArray[np.intp]]:
    """Tangent vectors of the sources, each person's matrices centred, and their classes."""
    from pyriemann.transfer import TLCenter

    X, label, task = sources.in_windows
    matrices = matrices_of(X)
    domain = (np.unique(sources.groups[task], return_inverse=True)[1] + 1).astype(str)
    encoded = _encoded(matrices, label, domain)
    return vectors_of(TLCenter(_TARGET).fit_transform(matrices, encoded)), label


def run_tlcenter(sources: Sources, batch: Batch, rng: Rng) -> Predictions:
    """Discriminant in the tangent space of matrices that are centred for each person.

    The mean of every domain is the identity, and so is that of all: the tangent space is there.
    """
    from pyriemann.transfer import TLCenter

    known, theirs = sources.once(centred_vectors)
    label, every = batch.splits.label, matrices_of(batch.X)
    two = len(batch.classes) == 2
    parts = []
    for labelled, test in zip(batch.splits.labelled, batch.splits.test, strict=True):
        own = every[labelled]
        centre = TLCenter(_TARGET).fit(own, _encoded(own, label, _TARGET))
        own, new = (vectors_of(centre.transform(some)) for some in (own, every[test]))
        rule = lda(len(batch.classes)).fit(
            np.concatenate([known, own]), np.concatenate([theirs, label])
        )
        chances = rule.predict_proba(new)[:, 1 if two else 0 :]
        scores = rule.decision_function(new)[:, None] if two else chances
        parts.append(Predictions.of(rule.predict(new)[None], scores[None], chances[None]))
    return Predictions.joined(parts)
