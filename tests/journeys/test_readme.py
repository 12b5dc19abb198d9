"""What the README promises: the example works as pasted, the commands exist."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_example_works_as_pasted(tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(code.strip().splitlines()) <= 10
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    promised, found = map(float, re.findall(r"0\.\d+", done.stdout))
    shown = re.search(r"promised (0\.\d+), found (0\.\d+)", README.split("```python")[1])
    assert shown is not None
    assert (promised, found) == (float(shown[1]), float(shown[2]))


def test_every_make_target_in_the_readme_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"make ([a-z]+)", README))
    assert {"demo", "test"} <= named <= targets


def test_every_file_in_the_readme_exists():
    named = re.findall(r"\]\(([^)#:]+)\)", README)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
