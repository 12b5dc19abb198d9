"""Run the tests on every Python that is to be had, and with the lowest versions that are allowed.

    python scripts/try_versions.py [3.12 3.13 lowest] [-- PYTEST ARGUMENTS]

Python 3.11 to 3.14 are looked for as python3.11 and so on: on the PATH, then among what pyenv and
uv installed. Those that are not there are named and left out. "lowest" is the oldest of them with
the oldest release of every package that the package itself and its report require, without the
extras that need newer ones. Each has an environment of its own in ``.versions``. The results belong
in the table "Tested with" of docs/install.md.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".versions"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: What a study with its report needs: other extras follow their own pace.
REPORT = ("plots", "tables")
#: Goes with the lowest versions; MOABB needs newer ones.
BESIDE_LOWEST = "plots,tables,dask,eeg,live,privacy,onnx"


def candidates(version):
    """Paths that may be a Python of that version, best first."""
    name, home = f"python{version}", Path.home()
    on_path = [Path(folder) / name for folder in os.get_exec_path()]
    # pyenv's shims on the PATH answer only for versions that are switched on.
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv") / "versions"
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    installed = [*pyenv.glob(f"*/bin/{name}"), *uv.glob(f"*/bin/{name}")]
    return [path for path in (*on_path, *sorted(installed)) if path.is_file()]


def interpreter(version):
    """Path of a Python that runs and has that version, or None."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for path in candidates(version):
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return str(path)
    return None


def lowest():
    """Requirements of pyproject.toml with the lower bound as the version."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    stated = list(settings["project"]["dependencies"])
    for extra in REPORT:
        stated += settings["project"]["optional-dependencies"][extra]
    # Checks of an old scikit-learn do not go with a new pytest.
    stated += [one for one in settings["dependency-groups"]["test"] if "pytest>=" in one]
    return [one.replace(">=", "==") for one in stated]


def prepare(name, python):
    """An environment with the package in it; made anew each time."""
    shutil.rmtree(HOME / name, ignore_errors=True)
    subprocess.run([python, "-m", "venv", HOME / name], check=True)
    own = HOME / name / "bin" / "python"
    pip = [own, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    # Groups need it.
    subprocess.run([*pip, "pip>=25.1"], check=True)
    if name == "lowest":
        wanted = [f"{ROOT}[{BESIDE_LOWEST}]", *lowest()]
    else:
        wanted = ["-c", ROOT / "constraints.txt", f"{ROOT}[all]"]
    subprocess.run([*pip, *wanted, "--group", f"{ROOT / 'pyproject.toml'}:test"], check=True)
    return own


def main(arguments):
    """Try what was asked for; 1 if anything failed."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, rest = arguments[:cut] or [*PYTHONS, "lowest"], arguments[cut + 1 :]
    found = {version: interpreter(version) for version in PYTHONS}
    oldest = next((one for one in PYTHONS if found[one]), None)
    found["lowest"] = oldest and found[oldest]
    unknown = [one for one in chosen if one not in found]
    if unknown:
        sys.exit(f"There is no {unknown[0]!r}: choose from {', '.join(found)}.")
    results = {}
    for name in chosen:
        if found[name] is None:
            results[name] = "not here"
            continue
        own = prepare(name, found[name])
        command = [own, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *rest]
        if name == "lowest":
            command.append("--ignore=src/crossfade/moabb")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        (HOME / f"{name}.log").write_text(done.stdout + done.stderr)
        lines = done.stdout.strip().splitlines()
        results[name] = lines[-1].strip("= ") if lines else done.stderr[-200:]
        print(f"{name}: {results[name]}", flush=True)
    for name, said in results.items():
        print(f"{name:8}{said}")
    tried = [one for one in results.values() if one != "not here"]
    return int(not all(re.fullmatch(r"\d+ passed((?!failed|error).)*", one) for one in tried))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
