"""OpenDP's noise, watched or drawn from a seed: it takes no seed itself."""

from contextlib import contextmanager

import numpy as np
import pytest


@contextmanager
def watched_noise(seed=None):
    """Vectors before and after noise, a pair for each release; noise is OpenDP's without a seed."""
    prelude = pytest.importorskip("opendp.prelude")
    make, rng, seen = prelude.m.make_gaussian, np.random.default_rng(seed), []

    def watched(domain, metric, scale):
        def measure(values):
            if seed is None:
                noisy = make(domain, metric, scale)(values)
            else:
                noisy = values + scale * rng.standard_normal(len(values))
            seen.append((np.array(values), np.array(noisy)))
            return noisy

        return measure

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prelude.m, "make_gaussian", watched)
        yield seen
