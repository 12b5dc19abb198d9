"""The tutorials run as their readers run them: as scripts, anywhere, without a complaint."""

import ast
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))


def imported(path):
    """Packages that a script needs; those that it can do without stand in a ``try``."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_there_are_four_in_the_order_of_the_gallery():
    tree = ast.parse((DOCS / "_ext" / "gallery.py").read_text("utf-8"))
    [order] = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "JOURNEY"
    )
    assert sorted(order) == [path.name for path in TUTORIALS]
    assert len(order) == 4


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_says_nothing_on_standard_error(path, tmp_path):
    for name in (*imported(path), "matplotlib", "mne", "onnx"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    (tmp_path / "here").mkdir()
    place = {"TMPDIR": str(tmp_path), "MPLBACKEND": "agg", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, path],
        cwd=tmp_path / "here",
        env=os.environ | place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    # The commands of a tutorial show what they say, whether they fail or not.
    assert "Error" not in done.stdout
    assert list((tmp_path / "here").iterdir()) == []
