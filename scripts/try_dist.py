"""Build wheel and sdist in ``dist/``, and try each in a fresh environment outside the project.

    python scripts/try_dist.py

Each is installed with the versions of constraints.txt and nothing but what the package itself
requires; the example of the README must then print what the README says, and the command must
answer.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    """Run a command; its output is shown if it fails."""
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, check=False, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def build():
    """Paths of a new wheel and a new sdist."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", ROOT / "dist", ROOT)
    built = sorted((ROOT / "dist").iterdir())
    return built


def example():
    """The code of the README, and what it prints."""
    text = (ROOT / "README.md").read_text()
    [(code, shown)] = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)\n```", text, re.DOTALL)
    return code, shown


def attempt(path):
    """Install one of them in an environment of its own, and use it as a newcomer would."""
    code, shown = example()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "env", with_pip=True)
        python = home / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "-qq")
        run(*pip, "-c", ROOT / "constraints.txt", path, cwd=home)
        version = run(python.with_name("crossfade"), "--version", cwd=home)
        said = run(python, "-c", code, cwd=home)
        if said != shown:
            sys.exit(f"{path.name}: the README's example printed {said!r}, not {shown!r}.")
        print(f"{path.name}: {version}; the README's example {said}", flush=True)


if __name__ == "__main__":
    for one in build():
        attempt(one)
