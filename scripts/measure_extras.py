"""Measure what each extra brings: ``python scripts/measure_extras.py [EXTRA ...]``.

Installs the package and one extra at a time into a fresh environment, with the versions of
``constraints.txt``, and prints what it has on disk beyond the package alone. The environments are
removed; a network, or pip's cache, is needed.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def installed(requirement, folder):
    """Megabytes and number of packages of an environment with one requirement in it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = Path(folder) / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    # pip and setuptools come with every environment.
    already = packages(python)
    words = ["install", "-c", ROOT / "constraints.txt", requirement]
    subprocess.run([*pip, *words], check=True)
    found = packages(python) - already
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    place = Path(subprocess.check_output([python, "-c", code], text=True).strip())
    skipped = ("pip", "setuptools", "_distutils_hack", "pkg_resources")
    files = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(
        path.stat().st_size
        for path in files
        if not path.relative_to(place).parts[0].startswith(skipped)
    )
    return size / 1e6, len(found)


def packages(python):
    """Names of the packages that an environment has."""
    words = [python, "-m", "pip", "--disable-pip-version-check", "list", "--format=freeze"]
    return set(subprocess.check_output(words, text=True).split())


def main():
    """Print a table of Markdown."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = sys.argv[1:] or settings["optional-dependencies"]
    print("| extra | adds | packages |\n|---|---|---|")
    base = 0.0, 0
    for name in ["", *wanted]:
        with tempfile.TemporaryDirectory() as folder:
            size, count = installed(f"{ROOT}[{name}]" if name else str(ROOT), folder)
        if name:
            print(f"| `{name}` | {size - base[0]:.0f} MB | {count - base[1]} |", flush=True)
        else:
            base = size, count
            print(f"| none | {size:.0f} MB in all | {count} |", flush=True)


if __name__ == "__main__":
    main()
