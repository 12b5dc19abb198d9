"""Check the docstrings of everything that is documented, wherever it is defined.

`numpydoc lint` goes by files, and here public names live in private modules.
"""

import importlib
import inspect
import sys
import tomllib
from pathlib import Path

from numpydoc.validate import validate

ROOT = Path(__file__).parents[1]
ROOMS = (
    "crossfade",
    "crossfade.tasks",
    "crossfade.fisher",
    "crossfade.prior",
    "crossfade.risk",
    "crossfade.blend",
    "crossfade.datasets",
    "crossfade.simulate",
    "crossfade.study",
    "crossfade.study.statistics",
    "crossfade.plots",
    "crossfade.report",
    "crossfade.signals.recordings",
    "crossfade.signals.windows",
    "crossfade.signals.eeg",
    "crossfade.signals.ecg",
    "crossfade.exceptions",
)
#: Classes whose methods are for the rooms themselves, but for those that
#: docs/_templates/autosummary/class.rst names.
NOUNS = ("Crowd",)


def documented():
    """Full names of public functions, classes and their own public methods."""
    found = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        names = getattr(module, "__all__", None) or [
            name
            for name, thing in vars(module).items()
            if not name.startswith("_") and getattr(thing, "__module__", "") == room
        ]
        for name in names:
            thing = getattr(module, name)
            if not callable(thing):
                continue
            full = f"{thing.__module__}.{name}"
            found[full] = thing
            if inspect.isclass(thing) and name not in NOUNS:
                for key, member in vars(thing).items():
                    function = getattr(member, "__func__", member)
                    if not key.startswith("_") and inspect.isfunction(function):
                        found[f"{full}.{key}"] = function
    return found


def faults(name, allowed):
    """Codes and sentences of what is wrong with one docstring."""
    found = validate(name)
    text = (found["docstring"] or "").replace("    ", "")
    # What takes no parameters, such as a property, says what it returns in its summary; what holds
    # what it is given says so under Attributes.
    skipped = allowed | ({"RT01"} if "\nParameters\n" not in text else set())
    skipped |= {"PR01"} if "\nAttributes\n" in text else set()
    return [f"{code}: {text}" for code, text in found["errors"] if code not in skipped]


def main():
    """Print what is wrong, and fail if anything is."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    allowed = set(settings["tool"]["numpydoc_validation"]["checks"]) - {"all"}
    names = documented()
    wrong = {name: faults(name, allowed) for name in names}
    for name, sentences in wrong.items():
        for sentence in sentences:
            print(f"{name}: {sentence}")
    print(f"{len(names)} docstrings, {sum(map(bool, wrong.values()))} of them with faults")
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
