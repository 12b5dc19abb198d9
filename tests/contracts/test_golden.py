"""Are the numbers as they were? Directions, alphas, accuracies and forecasts in golden files.

Two groups, by how firmly they are frozen:

- ``numbers`` stay for good: directions, thresholds, weights, sums of priors, scores of studies;
- ``forecasts`` stay until a better one replaces them: expected accuracies and probabilities.

``python tests/contracts/make_golden.py GROUP`` renews a group.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest


def _beside(name):
    """A module of this folder, which is no package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


golden, fits = map(_beside, ("make_golden", "golden_fits"))

NUMBERS, FORECASTS = fits.number_cases(), fits.forecast_cases()
FILES = golden.GOLDEN / "files"

#: Unit vectors and error rates: compared absolutely.
ABSOLUTE = ("projection_", "mean_direction", "directions", "mean", "risks", "risk", "risks_")
#: Weights that minimise an expected risk, and what follows from them.
ALPHA = 1e-7


@pytest.fixture(scope="module")
def stored():
    read = {}

    def get(group):
        if group not in read:
            read[group] = golden.read_numbers(group)
        return read[group]

    return get


def assert_same(found, stored, tolerance, loose=False, lax=ALPHA):
    """Refuse numbers that differ by more than a tolerance, naming them.

    `loose` names those, or is True for all, that follow from a continuous minimum: for them the
    tolerance is `lax`. Curves of risks do not.
    """
    assert list(found) == list(stored)
    faults = []
    for name, expected in stored.items():
        value = np.asarray(found[name], dtype=np.float64)
        assert value.shape == expected.shape, name
        kind = name.split()[-1]
        allowed = tolerance
        if kind in ("alpha", "alpha_"):
            allowed = max(tolerance, ALPHA)
        if kind not in ("risks_", "alphas_") and (loose is True or (loose and name in loose)):
            allowed = lax
        if kind not in ABSOLUTE:
            allowed *= 1.0 + np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        same = np.isclose(value, expected, rtol=0.0, atol=allowed, equal_nan=True)
        if not same.all():
            off = np.abs(value - expected)[~same].max()
            faults.append(f"{name} is off by {off:.3g}, more than {allowed:.3g}")
    assert not faults, "; ".join(faults)


def skip_without_opendp(label):
    if "private" in label:
        pytest.importorskip("opendp")


@pytest.mark.parametrize("label", NUMBERS)
def test_numbers(label, stored):
    skip_without_opendp(label)
    found, loose = NUMBERS[label]()
    # A direction moves by as much as the weight that it is blended with, and a little more.
    assert_same(found, stored("numbers")[label], 1e-9, loose, 3.0 * ALPHA)


def test_all_numbers_are_asked_for(stored):
    assert list(stored("numbers")) == list(NUMBERS)
    assert list(stored("forecasts")) == list(FORECASTS)


def _families():
    families = {}
    for place, label in enumerate(FORECASTS):
        family = label.partition(":")[0]
        if family in ("convex", "posterior"):
            family += f" {place % 8}"
        families.setdefault(family, []).append(label)
    return families


@pytest.mark.parametrize("family", _families())
def test_forecasts(family, stored):
    faults = []
    for label in _families()[family]:
        skip_without_opendp(label)
        found, loose = FORECASTS[label]()
        try:
            assert_same(found, stored("forecasts")[label], 1e-8, loose, 1e-6)
        except AssertionError as fault:
            faults.append(f"{label}: {fault}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", fits.MODEL_FILES)
def test_model_files_are_still_read(name, stored):
    assert_same(fits.numbers_of_model_file(FILES / name), stored("file_numbers")[name], 1e-12)
