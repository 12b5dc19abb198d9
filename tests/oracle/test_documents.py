"""What the documents say of the code: numbers of equations, names of tests, the prior file."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from crossfade import TaskPrior

ROOT = Path(__file__).parents[2]
MATHEMATICS = (ROOT / "docs" / "mathematics.md").read_text()


def test_every_equation_that_the_code_cites_exists():
    tags = [int(number) for number in re.findall(r"\\tag\{(\d+)\}", MATHEMATICS)]
    assert tags == sorted(set(tags))
    cited = set()
    for path in (ROOT / "src" / "crossfade").rglob("*.py"):
        for phrase in re.findall(r"[Ee]quations?\s+((?:\d+(?:,| and| to)?\s*)+)", path.read_text()):
            cited |= {int(number) for number in re.findall(r"\d+", phrase)}
    leaving = {38, 39, 40, 66, 67, 68}
    assert cited - leaving <= set(tags), cited - set(tags)


def test_every_test_file_that_the_mathematics_names_exists():
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", MATHEMATICS))
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("isotropic", [False, True])
def test_prior_file_is_read_with_numpy_alone(isotropic, tmp_path, monkeypatch, capsys):
    *_, snippet = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "sharing.md").read_text(), re.DOTALL
    )
    (tmp_path / "reader.py").write_text(snippet)
    directions = np.random.default_rng(81).normal([2.0, 0.0, 0.0, 0.0], size=(12, 4))
    prior = TaskPrior.from_projections(
        directions,
        normalize=True,
        isotropic=isotropic,
        classes=("rest", "übung"),
        feature_names=("alpha", "beta", "gamma", "δ"),
    )
    monkeypatch.chdir(tmp_path)
    prior.save("prior.npz")
    found = runpy.run_path("reader.py")
    assert capsys.readouterr().out == f"12 tasks, agreement R = {prior.resultant_length:.3f}\n"
    assert (found["arrays"]["directions/direction"] == prior.directions.direction).all()
    assert found["header"]["space"]["classes"] == ["rest", "übung"]
    again = TaskPrior.load("prior.npz")
    assert again == prior
    again.save("again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "prior.npz").read_bytes()
