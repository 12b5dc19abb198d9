"""A model as a graph of ONNX: standard operators only, in doubles between its ends."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import numpy as np

from crossfade.blend import SavedRule

#: Versions of the operators and of the file, old enough for runtimes of 2021.
_OPSET, _IR = 13, 7


def onnx_of(rule: SavedRule) -> bytes:
    """Bytes of the graph: features in; labels and probabilities out."""
    try:
        import onnx
        from onnx import TensorProto, checker, helper
    except ModuleNotFoundError as reason:
        raise ImportError("ONNX needs the package onnx. Install crossfade[onnx].") from reason
    labels = _labels_of(rule)
    graph = _Graph(helper, onnx.numpy_helper)
    scores, chances = _outputs(graph, rule)
    if rule.coupling_ == "two":
        place = graph("Cast", graph("Greater", scores, 0.0), to=TensorProto.INT64)
        place = graph("Squeeze", place, np.array([1]))
    else:
        best = scores if rule.coupling_ == "softmax" else chances
        place = graph("ArgMax", best, axis=1, keepdims=0)
    # What is no number, less itself, is none.
    finite = graph("ReduceSum", graph("Sub", scores, scores), np.array([1]), keepdims=0)
    place = graph("Where", graph("IsNaN", finite), np.int64(len(labels)), place)
    graph("Gather", np.append(labels, _no_label(labels)), place, name="label")
    graph("Cast", chances, to=TensorProto.FLOAT, name="probabilities")
    kind = TensorProto.STRING if labels.dtype.kind == "O" else TensorProto.INT64
    made = helper.make_graph(
        graph.nodes,
        "crossfade",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", rule.n_features_in_])],
        [
            helper.make_tensor_value_info("label", kind, ["N"]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", len(labels)]),
        ],
        graph.constants,
    )
    model = helper.make_model(
        made, producer_name="crossfade", opset_imports=[helper.make_opsetid("", _OPSET)]
    )
    model.ir_version = _IR
    model.doc_string = rule.card()
    recipe = "" if rule.recipe_ is None else json.dumps(rule.recipe_.to_dict())
    helper.set_model_props(model, {"card": rule.card(), "recipe": recipe})
    checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


class _Graph:
    """Nodes and constants of a graph, which names its values by itself."""

    def __init__(self, helper: Any, arrays: Any) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._helper, self._arrays, self._number = helper, arrays, count()

    def __call__(self, operator: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
        """Add a node; what is no name of a value becomes a constant."""
        name = name or f"v{next(self._number)}"
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        self.nodes.append(self._helper.make_node(operator, names, [name], **attributes))
        return name

    def _constant(self, values: Any) -> str:
        name = f"c{next(self._number)}"
        self.constants.append(self._arrays.from_array(np.asarray(values), name))
        return name


def _outputs(graph: _Graph, rule: SavedRule) -> tuple[str, str]:
    """Scores (N, n_scores) and probabilities (N, n_classes)."""
    known = rule._calibration
    rows = graph("Cast", "features", to=11)  # doubles
    scores = graph("Add", graph("MatMul", rows, rule.coef_.T.copy()), rule.intercept_)
    u = graph("Div", graph("Add", scores, known.shift), known.deviation)
    u = graph("Clip", u, np.float64(-1e100), np.float64(1e100))
    bend = graph("Mul", graph("Mul", u, u), np.pi / 2.0 * known.spread**2)
    steep = graph("Mul", u, 2.0 * known.mean)
    odds = graph("Div", steep, graph("Sqrt", graph("Add", bend, 1.0)))
    odds = graph("Add", odds, known.offset)
    if rule.coupling_ == "softmax":
        return scores, graph("Softmax", odds, axis=1)
    second, first = graph("Sigmoid", odds), graph("Sigmoid", graph("Neg", odds))
    if rule.coupling_ == "two":
        return scores, graph("Concat", first, second, axis=1)
    if rule.coupling_ == "pairs":
        return scores, _coupled(graph, first, second, len(rule.classes_))
    # The logarithm of a probability, which may be too small for a double.
    low = graph("Min", odds, 0.0)
    slack = graph("Log", graph("Add", graph("Exp", graph("Neg", graph("Abs", odds))), 1.0))
    return scores, graph("Softmax", graph("Sub", low, slack), axis=1)


def _coupled(graph: _Graph, first: str, second: str, n_classes: int) -> str:
    """Probabilities (N, K) from those of the pairs, by elimination in a matrix (N, K, K + 1)."""
    n_pairs = n_classes * (n_classes - 1) // 2
    places = np.full((n_classes, n_classes), 2 * n_pairs)
    places[np.triu_indices(n_classes, 1)] = np.arange(n_pairs)
    places.T[np.triu_indices(n_classes, 1)] = n_pairs + np.arange(n_pairs)
    none = graph("Mul", graph("Slice", first, [0], [1], [1]), 0.0)
    listed = graph("Concat", second, first, none, axis=1)
    beaten = graph("Gather", listed, places, axis=1)
    turned = graph("Transpose", beaten, perm=[0, 2, 1])
    won = graph("ReduceSum", graph("Mul", beaten, beaten), np.array([2]), keepdims=1)
    system = graph("Sub", graph("Mul", won, np.eye(n_classes)), graph("Mul", beaten, turned))
    ones = graph("Add", graph("Mul", won, 0.0), 1.0)
    system = graph("Concat", graph("Add", system, 1.0), ones, axis=2)
    for place in range(n_classes):
        # No pivots: the matrix is symmetric and positive definite.
        row = graph("Slice", system, [place], [place + 1], [1])
        row = graph("Div", row, graph("Slice", row, [place], [place + 1], [2]))
        column = graph("Slice", system, [place], [place + 1], [2])
        column = graph("Sub", column, np.eye(n_classes)[:, [place]])
        system = graph("Sub", system, graph("Mul", column, row))
    solved = graph("Squeeze", graph("Slice", system, [n_classes], [n_classes + 1], [2]), [2])
    chances = graph("Max", solved, 0.0)
    return graph("Div", chances, graph("ReduceSum", chances, np.array([1]), keepdims=1))


def _no_label(labels: np.ndarray[Any, Any]) -> Any:
    """Label of a window that has none: empty text, or the first of -1, -2, ... that is no class."""
    if labels.dtype.kind == "O":
        return ""
    return next(one for one in count(-1, -1) if one not in labels)


def _labels_of(rule: SavedRule) -> np.ndarray[Any, Any]:
    """Labels as ONNX has them: text, or whole numbers."""
    labels = rule.classes_.tolist()
    if isinstance(labels[0], str):
        try:
            "".join(labels).encode()
        except UnicodeEncodeError as reason:
            raise ValueError(
                f"Labels of ONNX are text in UTF-8, which cannot hold these: {labels}. Rename them "
                "before the model is calibrated."
            ) from reason
        return np.array(labels, dtype=object)
    whole = [int(label) for label in labels]
    if whole != labels or not all(-(2**63) <= label < 2**63 for label in whole):
        raise ValueError(
            f"Labels of ONNX are text or whole numbers of 64 bits; the classes are {labels}. "
            "Rename them before the model is calibrated."
        )
    return np.array(whole, dtype=np.int64)
