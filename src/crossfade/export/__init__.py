"""A model onto a device: C99 without dependencies, ONNX, or a JSON Schema of the model file.

All three compute what :class:`crossfade.Rule` computes: linear scores, their log odds (equation
61), and probabilities. ``docs/live.md`` has the formulas in words, and what a device must compute
before: the recipe of the features.
"""

from crossfade.export._export import export_model

__all__ = ["export_model"]

export_model.__module__ = __name__
