"""One door to all formats, which the name of the file chooses."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from crossfade._files import write_whole
from crossfade.blend import Rule, load_model
from crossfade.classifiers import rule_of
from crossfade.export._c import header_of


def export_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model for a device: C99, ONNX, or the JSON Schema of its file.

    Parameters
    ----------
    model : fitted classifier, Rule, or str or path-like
        What :func:`save_model` takes, or the name of a model file.
    path : str or path-like
        Where to. ``.h`` is one C99 header without dependencies, ``.onnx`` a model of ONNX, and
        ``.schema.json`` a JSON Schema that says how to read the model file.

    See Also
    --------
    save_model : The model file itself.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crossfade import PosteriorBlendClassifier, export_model
    >>> X, y = [[0.0, 1.0], [0.2, 0.8], [1.0, 0.1], [0.9, 0.3]], ["rest", "rest", "task", "task"]
    >>> path = Path(tempfile.mkdtemp()) / "model.h"
    >>> export_model(PosteriorBlendClassifier().fit(X, y), path)
    >>> "static inline int crossfade_predict" in path.read_text()
    True
    """
    write_whole(path, content_of_export(model, path))


def content_of_export(model: Any, path: str | os.PathLike[str]) -> bytes:
    """Bytes of a model in the format that a name stands for."""
    name = Path(path).name.lower()
    if not name.endswith((".h", ".onnx", ".schema.json")):
        raise ValueError(
            f"{os.fspath(path)} must end in .h (C99), .onnx, or .schema.json (the JSON Schema of "
            "the model file; save_model writes the file itself)."
        )
    rule = load_model(model) if isinstance(model, str | os.PathLike) else rule_of(model)
    _refuse_altered(rule)
    if name.endswith(".h"):
        return header_of(rule).encode()
    if name.endswith(".onnx"):
        from crossfade.export._onnx import onnx_of

        return onnx_of(rule)
    return files("crossfade.export").joinpath("model.schema.json").read_bytes()


def _refuse_altered(rule: Rule) -> None:
    """Refuse numbers that a device cannot compute with; no file has them, but a rule may."""
    for numbers in (rule.coef, rule.intercept, rule.shift, *rule.slope):
        if not np.isfinite(numbers).all():
            raise ValueError("The model has NaN or infinity. Load it again with load_model.")
