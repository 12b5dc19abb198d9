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
    assert tags == list(range(1, len(tags) + 1))
    cited = set()
    for path in (ROOT / "src" / "crossfade").rglob("*.py"):
        for phrase in re.findall(r"[Ee]quations?\s+((?:\d+(?:,| and| to)?\s*)+)", path.read_text()):
            cited |= {int(number) for number in re.findall(r"\d+", phrase)}
    assert cited <= set(tags)
    # And every formula is cited where it is coded.
    assert set(tags) - cited <= set()


def test_every_test_that_the_mathematics_names_exists():
    source = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in (ROOT / "tests").rglob("test_*.py")
    }
    nodes = re.findall(r"(tests/[\w/]+\.py)(?:::(test_\w+))?", MATHEMATICS)
    assert len(nodes) > 20
    for name, test in nodes:
        assert f"def {test}" in source[name]
    for test in re.findall(r"`::(test_\w+)", MATHEMATICS):
        assert any(f"def {test}(" in text for text in source.values())


@pytest.mark.parametrize("isotropic", [False, True])
def test_prior_file_is_read_with_numpy_alone(isotropic, tmp_path, monkeypatch, capsys):
    *_, snippet = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "prior-file.md").read_text(), re.DOTALL
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
    np.testing.assert_array_equal(found["mean"], prior.mean)
    assert found["header"]["classes"] == ["rest", "übung"]
    again = TaskPrior.load("prior.npz")
    assert again == prior
    again.save("again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "prior.npz").read_bytes()
