"""A model as a graph of ONNX: standard operators only, in doubles between its ends."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import numpy as np

from crossfade.blend import Rule
from crossfade.risk import log_odds

#: Versions of the operators and of the file, old enough for runtimes of 2021.
_OPSET, _IR = 13, 7


def onnx_of(rule: Rule) -> bytes:
    """Bytes of the graph: features in; labels and probabilities out."""
    try:
        import onnx
        from onnx import TensorProto, checker, helper
    except ModuleNotFoundError as reason:
        raise ImportError("ONNX needs the package onnx. Install crossfade[onnx].") from reason
    labels = _labels_of(rule)
    graph = _Graph(helper, onnx.numpy_helper)
    scores, chances = _outputs(graph, rule)
    if len(labels) == 2:
        place = graph("Cast", graph("Greater", scores, 0.0), to=TensorProto.INT64)
        place = graph("Squeeze", place, np.array([1]))
    else:
        place = graph("ArgMax", scores, axis=1, keepdims=0)
    # NaN or infinity less itself is NaN.
    finite = graph("ReduceSum", graph("Sub", scores, scores), np.array([1]), keepdims=0)
    place = graph("Where", graph("IsNaN", finite), np.int64(len(labels)), place)
    graph("Gather", np.append(labels, _no_label(labels)), place, name="label")
    graph("Cast", chances, to=TensorProto.FLOAT, name="probabilities")
    kind = TensorProto.STRING if labels.dtype.kind == "O" else TensorProto.INT64
    made = helper.make_graph(
        graph.nodes,
        "crossfade",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", rule.coef.shape[1]])],
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
    recipe = "" if rule.about.recipe is None else json.dumps(rule.about.recipe.to_dict())
    helper.set_model_props(model, {"card": rule.card(), "recipe": recipe})
    checker.check_model(model)
    return model.SerializeToString()


class _Graph:
    """Nodes and constants of a graph, which names its values by itself."""

    def __init__(self, helper: Any, arrays: Any) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._helper, self._arrays, self._number = helper, arrays, count()

    def __call__(self, operator: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
        """Add a node; inputs other than names become constants."""
        name = name or f"v{next(self._number)}"
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        self.nodes.append(self._helper.make_node(operator, names, [name], **attributes))
        return name

    def _constant(self, values: Any) -> str:
        name = f"c{next(self._number)}"
        self.constants.append(self._arrays.from_array(np.asarray(values), name))
        return name


def _outputs(graph: _Graph, rule: Rule) -> tuple[str, str]:
    """Scores (N, n_scores) and probabilities (N, n_classes)."""
    slope, bend = (float(one) for one in rule.slope)
    rows = graph("Cast", "features", to=11)  # doubles
    scores = graph("Add", graph("MatMul", rows, rule.coef.T.copy()), rule.intercept)
    moved = graph("Add", scores, float(rule.shift))
    moved = graph("Clip", moved, np.float64(-1e100), np.float64(1e100))
    bent = graph("Clip", graph("Mul", moved, bend), np.float64(-1e150), np.float64(1e150))
    length = graph("Sqrt", graph("Add", graph("Mul", bent, bent), 1.0))
    odds = graph("Div", graph("Mul", moved, slope), length)
    if len(rule.classes) > 2:
        return scores, graph("Softmax", odds, axis=1)
    odds = graph("Sub", odds, float(log_odds(rule.class_prior[1])))
    second, first = graph("Sigmoid", odds), graph("Sigmoid", graph("Neg", odds))
    return scores, graph("Concat", first, second, axis=1)


def _no_label(labels: np.ndarray[Any, Any]) -> Any:
    """Label for scores that are NaN: empty text, or the first of -1, -2, ... that is unused."""
    if labels.dtype.kind == "O":
        return ""
    return next(one for one in count(-1, -1) if one not in labels)


def _labels_of(rule: Rule) -> np.ndarray[Any, Any]:
    """Labels as ONNX has them: text, or whole numbers."""
    labels = rule.classes.tolist()
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
