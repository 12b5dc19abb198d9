"""One door to all formats, which the name of the file chooses."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from crossfade._files import write_whole
from crossfade.blend import Model, SavedRule, load_model, saved_rule
from crossfade.export._c import header_of

if TYPE_CHECKING:
    from crossfade._typing import Array


def export_model(
    model: Model | SavedRule | str | os.PathLike[str], path: str | os.PathLike[str]
) -> None:
    """Write a model for a device: C99, ONNX, or the JSON Schema of its file.

    Parameters
    ----------
    model : fitted classifier, SavedRule, or str or path-like
        What :func:`save_model` takes, what :func:`load_model` returns, or the name of a model file.
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


def content_of_export(
    model: Model | SavedRule | str | os.PathLike[str], path: str | os.PathLike[str]
) -> bytes:
    """Bytes of a model in the format that a name stands for."""
    name = Path(path).name.lower()
    if not name.endswith((".h", ".onnx", ".schema.json")):
        raise ValueError(
            f"{os.fspath(path)} must end in .h (C99), .onnx, or .schema.json (the JSON Schema of "
            "the model file; save_model writes the file itself)."
        )
    if isinstance(model, SavedRule):
        check_is_fitted(model, "coef_", msg=model._not_fitted())
        rule = model
    else:
        rule = load_model(model) if isinstance(model, str | os.PathLike) else saved_rule(model)
    _refuse_altered(rule)
    if name.endswith(".h"):
        return header_of(rule).encode()
    if name.endswith(".onnx"):
        from crossfade.export._onnx import onnx_of

        return onnx_of(rule)
    return files("crossfade.export").joinpath("model.schema.json").read_bytes()


def _refuse_altered(rule: SavedRule) -> None:
    """Refuse numbers that a device cannot compute with; no file has them, but attributes can."""
    parts: dict[str, Array] = {"coef_": rule.coef_, "intercept_": rule.intercept_}
    for name, numbers in (parts | rule._calibration._asdict()).items():
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"{name} of the model has NaN or infinity. Load the model again with load_model."
            )
