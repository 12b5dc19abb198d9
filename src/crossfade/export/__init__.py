"""A model onto a device: C99 without dependencies, ONNX, or a JSON Schema of the model file."""

from crossfade.export._export import export_model

__all__ = ["export_model"]

export_model.__module__ = __name__
