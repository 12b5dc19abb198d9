"""Write the files in ``golden/`` anew: ``python tests/contracts/make_golden.py [GROUP ...]``.

Groups are ``numbers``, ``forecasts`` and ``files``; all of them if none is named. Change them only
on purpose, in the commit that changes the numbers.
"""

import json
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

GOLDEN = Path(__file__).parent / "golden"


def flat(numbers):
    """Numbers by name as one vector, and the names with their shapes."""
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}
    layout = {name: list(array.shape) for name, array in arrays.items()}
    return np.concatenate([array.ravel() for array in arrays.values()]), layout


def write_numbers(group, cases):
    """One vector for each case in an archive, and their layouts in JSON."""
    vectors, layouts = {}, {}
    for label, case in cases.items():
        numbers, _ = case()
        vectors[label.replace("/", "|")], layouts[label] = flat(numbers)
    np.savez_compressed(GOLDEN / f"{group}.npz", allow_pickle=False, **vectors)
    write_text(group, layouts)


def read_numbers(group):
    """Numbers by name, by case."""
    layouts = read_text(group)
    found = {}
    with np.load(GOLDEN / f"{group}.npz", allow_pickle=False) as archive:
        for label, layout in layouts.items():
            sizes = [int(np.prod(shape)) for shape in layout.values()]
            parts = np.split(archive[label.replace("/", "|")], np.cumsum(sizes)[:-1])
            found[label] = {
                name: part.reshape(shape)
                for (name, shape), part in zip(layout.items(), parts, strict=True)
            }
    return found


def write_text(group, content):
    """Text that a person can compare."""
    # One line for each case keeps the layouts short.
    lines = (f"{json.dumps(key)}: {_value(value)}" for key, value in content.items())
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (GOLDEN / f"{group}.json").write_text(text, encoding="utf-8")


def _value(value):
    return json.dumps(value, ensure_ascii=False)


def read_text(group):
    """What :func:`write_text` wrote."""
    return json.loads((GOLDEN / f"{group}.json").read_text(encoding="utf-8"))


def write_files(fits):
    """Files of models that are missing, and what all of them say."""
    folder = GOLDEN / "files"
    folder.mkdir(exist_ok=True)
    for name, save in fits.MODEL_FILES.items():
        if not (folder / name).exists():
            save(folder / name)
    cases = {}
    for name in fits.MODEL_FILES:
        cases[name] = lambda name=name: (fits.numbers_of_model_file(folder / name), False)
    write_numbers("file_numbers", cases)


def main(groups):
    """Write the groups."""
    import golden_fits as fits

    writers = {
        "numbers": lambda: write_numbers("numbers", fits.number_cases()),
        "forecasts": lambda: write_numbers("forecasts", fits.forecast_cases()),
        "files": lambda: write_files(fits),
    }
    unknown = set(groups) - set(writers)
    if unknown:
        raise SystemExit(f"There is no group {sorted(unknown)[0]!r}. There are {list(writers)}.")
    GOLDEN.mkdir(exist_ok=True)
    with threadpool_limits(1):
        for group in groups or writers:
            writers[group]()


if __name__ == "__main__":
    main(sys.argv[1:])
