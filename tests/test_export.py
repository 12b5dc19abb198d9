"""Onto a device: C, ONNX and the file alone say what the classifier says; hostile names do not."""

import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import (
    ConvexBlendClassifier,
    FisherDiscriminant,
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
    export_model,
    load_model,
    save_model,
)
from crossfade.cli import main
from tests.checksums import digest_of

SCHEMA = json.loads(
    (Path(sys.modules["crossfade"].__file__).parent / "export/model.schema.json").read_text()
)
GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc to compile the header with")


KINDS = {
    "fisher": lambda _, X, y: FisherDiscriminant(priors=(0.7, 0.3)).fit(X, y),
    "convex": lambda prior, X, y: ConvexBlendClassifier(prior).fit(X, y),
    "posterior": lambda prior, X, y: PosteriorBlendClassifier(prior).fit(X, y),
    "means": lambda prior, X, y: HierarchicalBlendClassifier(prior).fit(X, y),
    "rare": lambda prior, X, y: HierarchicalBlendClassifier(prior, class_prior=(0.9, 0.1)).fit(
        X, y
    ),
    "start": lambda prior, *_: HierarchicalBlendClassifier(prior).start(),
}


@pytest.fixture(scope="module")
def crowd(people):
    return TaskPrior.from_tasks(people[1:12])


@pytest.fixture(params=[*KINDS, "three classes", "six classes"])
def model(request, people, crowd, make_many):
    """A fitted classifier, and windows that it has not seen, some of them far away."""
    if request.param in KINDS:
        fitted = KINDS[request.param](crowd, people[0].X[::10], people[0].y[::10])
        new = np.asarray(people[0].X)
    else:
        n_classes = {"three": 3, "six": 6}[request.param.split()[0]]
        prior = TaskPrior.from_tasks(make_many(n_each=(8,) * n_classes))
        [few] = make_many(1, n_each=(3,) * n_classes, first=50)
        fitted = HierarchicalBlendClassifier(prior).fit(few.X, few.y)
        new = np.asarray(make_many(1, n_each=(20,) * n_classes, first=50)[0].X)
    # As a device with floats has them, so that all compute with the same numbers.
    return fitted, np.concatenate([new, 1e3 * new, 1e-3 * new]).astype(np.float32)


def by_hand(fields, x):
    """Label and probabilities, as the descriptions of the schema say it."""
    rows = zip(fields["coef"], fields["intercept"], strict=True)
    scores = [start + sum(w * v for w, v in zip(row, x, strict=True)) for row, start in rows]
    odds = []
    for score in scores:
        moved = max(-1e100, min(1e100, score + fields["shift"]))
        odds.append(fields["slope"] * moved / math.hypot(1.0, fields["bend"] * moved))
    if len(scores) == 1:
        first, second = fields["class_prior"]
        chance = logistic(odds[0] - math.log(first / second))
        return fields["classes"][scores[0] > 0.0], [1.0 - chance, chance]
    p = [math.exp(one - max(odds)) for one in odds]
    return fields["classes"][scores.index(max(scores))], [one / sum(p) for one in p]


def logistic(odds):
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700.0 else math.exp(max(odds, -745.0))


def test_a_dozen_lines_read_the_file(model, tmp_path):
    fitted, X = model
    save_model(fitted, tmp_path / "model.json")
    fields = json.loads((tmp_path / "model.json").read_text())
    found = [by_hand(fields, row) for row in X.tolist()]
    rows = X.astype(float)
    assert [label for label, _ in found] == fitted.predict(rows).tolist()
    np.testing.assert_allclose([p for _, p in found], fitted.predict_proba(rows), atol=1e-12)


def test_every_file_is_valid_by_the_schema(model, tmp_path):
    fitted, _ = model
    save_model(fitted, tmp_path / "model.json", person="Ada", date="2026-11-18")
    export_model(fitted, tmp_path / "model.schema.json")
    assert json.loads((tmp_path / "model.schema.json").read_text()) == SCHEMA
    fields = json.loads((tmp_path / "model.json").read_text())
    known, needed = SCHEMA["properties"], set(SCHEMA["required"])
    assert needed <= set(fields) <= set(known)
    for name, part in (("forecast", fields["forecast"]), ("prior", fields["prior"])):
        if part is not None:
            assert set(known[name]["required"]) <= set(part) <= set(known[name]["properties"])
    assert fields["version"] == known["version"]["const"]
    checksum = fields.pop("sha256")
    assert re.fullmatch(SCHEMA["$defs"]["sha256"]["pattern"], checksum)
    assert checksum == digest_of(fields)


MAIN = """\
#include <stdio.h>
#include "model.h"
#include "model.h"

int main(void)
{
    double x[CROSSFADE_N_FEATURES], p[CROSSFADE_N_CLASSES];
    int i = 0;
    while (scanf("%lf", &x[i]) == 1) {
        if (++i < CROSSFADE_N_FEATURES)
            continue;
        crossfade_probability(x, p);
        printf("%d", crossfade_predict(x));
        for (i = 0; i < CROSSFADE_N_CLASSES; i++)
            printf(" %.17g", p[i]);
        printf("\\n");
        i = 0;
    }
    return 0;
}
"""


def run_in_c(folder, X):
    """Places of the labels (n,), and probabilities (n, K), as a compiled program has them."""
    (folder / "main.c").write_text(MAIN)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
    subprocess.run([GCC, *strict, "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    text = " ".join(repr(one) for one in X.astype(float).ravel().tolist())
    done = subprocess.run(
        [folder / "main"], input=text, capture_output=True, text=True, check=True, timeout=60
    )
    found = np.array([line.split() for line in done.stdout.splitlines()], float)
    return found[:, 0].astype(int), found[:, 1:]


@needs_gcc
def test_c_says_the_same(model, tmp_path):
    fitted, X = model
    export_model(fitted, tmp_path / "model.h")
    place, chances = run_in_c(tmp_path, X)
    rows = X.astype(float)
    np.testing.assert_array_equal(fitted.classes_[place], fitted.predict(rows))
    np.testing.assert_allclose(chances, fitted.predict_proba(rows), atol=1e-12)


@needs_gcc
def test_c_refuses_what_is_no_number(model, tmp_path):
    fitted, X = model
    export_model(fitted, tmp_path / "model.h")
    rows = X[:3].astype(float)
    rows[0, 0], rows[1, -1] = np.nan, np.inf
    place, chances = run_in_c(tmp_path, rows)
    assert place[:2].tolist() == [-1, -1]
    assert place[2] >= 0
    assert np.isnan(chances[0]).all()


def test_the_header_names_classes_features_and_recipe(people, tmp_path):
    prior = TaskPrior.from_tasks(people[1:9])
    X = pd.DataFrame(people[0].X, columns=list(people[0].feature_names))
    export_model(PosteriorBlendClassifier(prior).fit(X, people[0].y), tmp_path / "model.h")
    text = (tmp_path / "model.h").read_text()
    for said in (
        '* Class 1: 1, "arithmetic"',
        f'* 0: "{people[0].feature_names[0]}"',
        "windows of 2.5 s at 500 Hz",
        "#ifndef CROSSFADE_MODEL_H",
        "static inline int crossfade_predict",
        "static inline void crossfade_probability",
    ):
        assert said in text


HOSTILE = ["a*/b", "/* a", "what??/", "a\nb", "\u202egnp.exe", "\x1b[31mred", "a\\\n"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("where", ["feature", "class"])
def test_names_that_would_break_the_header_are_refused(make_target, tmp_path, name, where):
    X, y = make_target()
    names = ["a", "b", "c", name if where == "feature" else "d"]
    labels = np.array([name if where == "class" else "rest", "\uffff"])[y]
    fitted = PosteriorBlendClassifier().fit(pd.DataFrame(X, columns=names), labels)
    with pytest.raises(ValueError, match="comment"):
        export_model(fitted, tmp_path / "model.h")
    assert list(tmp_path.iterdir()) == []


def test_onnx_says_the_same(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    fitted, X = model
    export_model(fitted, tmp_path / "model.onnx")
    session = runtime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    [features] = session.get_inputs()
    assert (features.name, features.type) == ("features", "tensor(float)")
    assert features.shape == ["N", X.shape[1]]
    assert [one.name for one in session.get_outputs()] == ["label", "probabilities"]
    for rows in (X, X[:1]):
        label, chances = session.run(None, {"features": rows})
        assert label.tolist() == fitted.predict(rows.astype(float)).tolist()
        expected = fitted.predict_proba(rows.astype(float))
        np.testing.assert_allclose(chances, expected, rtol=1e-6, atol=1e-6)
    assert session.get_modelmeta().description.startswith("# Model of one person")


def test_onnx_has_no_label_for_what_is_no_number(model, tmp_path):
    """As in C, of which the place is -1."""
    runtime = pytest.importorskip("onnxruntime")
    fitted, X = model
    export_model(fitted, tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    rows = X[:4].copy()
    rows[0, 0], rows[1, -1], rows[2] = np.nan, np.inf, np.nan
    label, chances = session.run(None, {"features": rows})
    none = "" if isinstance(fitted.classes_[0], str) else -1
    assert label[:3].tolist() == [none] * 3
    assert label[3] == fitted.predict(rows[3:].astype(float))[0]
    assert np.isnan(chances[0]).all()


@pytest.mark.parametrize(
    ("labels", "none"), [((-1, 1), -2), ((-2, -1), -3), ((5, 7), -1), (("a", "b"), "")]
)
def test_the_missing_label_of_onnx_is_no_class(make_target, tmp_path, labels, none):
    runtime = pytest.importorskip("onnxruntime")
    X, y = make_target()
    fitted = PosteriorBlendClassifier().fit(X, np.array(labels)[y])
    export_model(fitted, tmp_path / "model.onnx")
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    missing = np.full((1, X.shape[1]), np.nan, np.float32)
    assert session.run(None, {"features": missing})[0].tolist() == [none]


@pytest.mark.parametrize("labels", [(0.5, 1.5), (0.0, 1e300)])
def test_labels_that_onnx_cannot_have(make_target, tmp_path, labels):
    X, y = make_target()
    save_model(FisherDiscriminant().fit(X, y), tmp_path / "model.json")
    rule = replace(load_model(tmp_path / "model.json"), classes=np.array(labels))
    with pytest.raises(ValueError, match="ONNX"):
        export_model(rule, tmp_path / "model.onnx")


def test_estimator_rule_and_file_are_exported_alike(make_target, tmp_path):
    fitted = PosteriorBlendClassifier().fit(*make_target())
    save_model(fitted, tmp_path / "model.json")
    sources = (fitted, load_model(tmp_path / "model.json"), tmp_path / "model.json")
    written = set()
    for place, source in enumerate((*sources, str(sources[2]))):
        export_model(source, tmp_path / f"{place}.h")
        written.add((tmp_path / f"{place}.h").read_text())
    assert len(written) == 1


@pytest.mark.parametrize("name", ["model.json", "model", "model.c", "schema.json", "model.h.txt"])
def test_names_without_a_format_are_refused(make_target, tmp_path, name):
    fitted = FisherDiscriminant().fit(*make_target())
    with pytest.raises(ValueError, match="must end in"):
        export_model(fitted, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["coef", "intercept"])
@pytest.mark.parametrize("suffix", [".h", ".onnx", ".schema.json"])
def test_numbers_that_are_none_are_not_exported(make_target, tmp_path, name, suffix):
    save_model(FisherDiscriminant().fit(*make_target()), tmp_path / "m.json")
    rule = load_model(tmp_path / "m.json")
    rule = replace(rule, **{name: np.full(getattr(rule, name).shape, np.inf)})
    with pytest.raises(ValueError, match="NaN or infinity"):
        export_model(rule, tmp_path / f"model{suffix}")


@pytest.fixture
def saved(people, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prior = TaskPrior.from_tasks(people[1:9], rehearse=False).annotated(made_by="Lab A")
    X = pd.DataFrame(people[0].X[::10], columns=list(people[0].feature_names))
    save_model(HierarchicalBlendClassifier(prior).fit(X, people[0].y[::10]), "model.json")
    return tmp_path


def test_the_command_writes_what_the_function_writes(saved):
    for name in ("model.h", "model.onnx", "model.schema.json"):
        done = CliRunner().invoke(main, ["export", "model.json", "-o", name])
        assert done.exit_code == 0, done.output
        assert done.output == f"Written: {name}\n"
        export_model("model.json", f"own-{name}")
        assert (saved / name).read_bytes() == (saved / f"own-{name}").read_bytes()
    done = CliRunner().invoke(main, ["export", "model.json", "-o", "model.json"])
    assert done.exit_code == 1
    load_model("model.json")


def test_the_card_says_for_whom_and_how_sure(saved):
    rule = load_model("model.json")
    done = CliRunner().invoke(main, ["export", "model.json"])
    assert done.output == rule.card() == json.loads(Path("model.json").read_text())["card"]
    lower, upper = rule.interval(0.9)
    counts = " + ".join(f"{count:g}" for count in rule.n_labelled)
    for said in (
        "# Model of one person: 2 classes, 9 features",
        f"one person, with {counts} labelled windows",
        "'rest' (0), 'arithmetic' (1)",
        repr(rule.about.feature_names[0]),
        "windows of 2.5 s at 500 Hz",
        "a crowd of 8 tasks",
        "Lab A",
        f"{rule.expected_accuracy:.3f} (90 % interval {lower:.2f} to {upper:.2f})",
        "exact sums: anyone who knows all tasks but one can recover that one",
    ):
        assert said in done.output
    assert "'rest' and 'arithmetic', n_features=9" in repr(rule)


def test_the_card_names_the_person_if_it_is_told_to(people, tmp_path):
    fitted = PosteriorBlendClassifier().fit(people[0].X[::10], people[0].y[::10])
    for name in ("a", "b"):
        save_model(fitted, tmp_path / name, person="Ada | 7", date="2026-11-18")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    rule = load_model(tmp_path / "a")
    assert (rule.about.person, rule.about.date) == ("Ada | 7", "2026-11-18")
    [row] = [one for one in rule.card().splitlines() if one.startswith("| for ")]
    assert "'Ada \\| 7', with 8 + 2 labelled windows, recorded on 2026-11-18 " in row
    save_model(fitted, tmp_path / "c")
    assert b"Ada" not in (tmp_path / "c").read_bytes()
    assert "| one person, with 8 + 2 labelled windows" in load_model(tmp_path / "c").card()


def test_text_from_a_file_cannot_break_the_card(saved):
    fields = json.loads(Path("model.json").read_text())
    del fields["sha256"]
    names = ["\x1b[31m|", "a\nb", *fields["feature_names"][2:]]
    lie = fields | {"feature_names": names, "card": "# A model that is always right"}
    Path("lie.json").write_text(json.dumps(lie | {"sha256": digest_of(lie)}))
    card = load_model("lie.json").card()
    assert "always right" not in card
    assert "\x1b" not in card
    assert card.count("\n") == load_model("model.json").card().count("\n")
    for about in ({"made_by": "Lab\nA"}, {"made_by": 7}):
        hostile = fields | {"prior": fields["prior"] | {"about": about}}
        Path("lie.json").write_text(json.dumps(hostile | {"sha256": digest_of(hostile)}))
        with pytest.raises(ValueError, match="about must be"):
            load_model("lie.json")


def test_windows_of_another_recipe_are_refused(saved, people):
    pytest.importorskip("pyarrow")
    assert load_model("model.json").about.recipe == people.recipe
    frame = people[:1].to_frame().drop(columns=["label"])
    frame.attrs["recipe"] = people.recipe.to_dict()
    frame.to_parquet("new.parquet")
    done = CliRunner().invoke(main, ["predict", "model.json", "new.parquet"])
    assert done.exit_code == 0, done.output
    frame.attrs["recipe"] |= {"window": 4.0}
    frame.to_parquet("new.parquet")
    done = CliRunner().invoke(main, ["predict", "model.json", "new.parquet"])
    assert done.exit_code == 1
    assert "window 4" in done.output
