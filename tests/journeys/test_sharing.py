"""From a lab's tasks to a clinic's predictions, by commands alone, and what they refuse."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import PosteriorBlendClassifier, TaskPrior, load_mental_math
from crossfade.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, words)


@pytest.fixture
def tables(tmp_path):
    """Two labs' tasks, and a person's first and later windows."""
    tasks = load_mental_math()
    tasks[:18].write(tmp_path / "lab-a.csv")
    tasks[18:35].write(tmp_path / "lab-b.csv")
    person = pd.DataFrame(tasks[35].X, columns=tasks.feature_names)
    person.insert(0, "label", tasks[35].y)
    few = person.groupby("label").head(4)
    few.to_csv(tmp_path / "few.csv", index=False)
    person.drop(few.index).to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


@pytest.fixture
def built(run, tables):
    words = ["--made-by", "Lab A", "--units", "share of power", "--date", "2024-05-01"]
    assert run("prior", "build", "lab-a.csv", "-o", "a.npz", *words).exit_code == 0
    return tables


def well(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(result, message, code=1):
    assert result.exit_code == code, result.output
    assert message in result.stderr + result.stdout
    assert "Traceback" not in result.output


def test_from_two_labs_to_a_clinic(run, built):
    said = well(run("prior", "show", "a.npz"))
    for text in ("18", "Lab A", "share of power", "2024-05-01", "Fz_theta", "exact sums", "kappa"):
        assert text in said
    well(run("prior", "build", "lab-b.csv", "-o", "b.npz", "--scale", "a.npz", "--made-by", "B"))
    well(run("prior", "merge", "a.npz", "b.npz", "-o", "both.npz"))
    assert "Lab A; B" in well(run("prior", "show", "both.npz"))
    merged = TaskPrior.load("both.npz")
    assert merged.n_tasks == 35
    assert "fits few.csv" in well(run("prior", "check", "both.npz", "few.csv"))
    assert "fits lab-a.csv" in well(run("prior", "check", "both.npz", "lab-a.csv"))

    said = well(run("calibrate", "--prior", "both.npz", "few.csv", "-o", "model.json"))
    few = pd.read_csv("few.csv")
    rule = PosteriorBlendClassifier(merged).fit(few.drop(columns="label"), few["label"])
    assert f"alpha     {rule.alpha_:.3f}" in said
    assert f"Forecast  {rule.expected_accuracy_:.3f}" in said
    assert "What more labels would bring" in said
    assert [line.split()[0] for line in said.splitlines() if line.strip()[:2] in ("8 ", "16")]
    assert json.loads((built / "model.json").read_text())["prior"]["n_tasks"] == 35

    said = well(run("predict", "model.json", "new.csv", "-o", "out.csv"))
    table, new = pd.read_csv("out.csv"), pd.read_csv("new.csv")
    X = new.drop(columns="label")
    np.testing.assert_array_equal(table["predicted"], rule.predict(X))
    chances = table[["probability_0", "probability_1"]].to_numpy()
    np.testing.assert_allclose(chances, rule.predict_proba(X), rtol=1e-12)
    hits = (table["predicted"] == table["label"]).groupby(table["label"]).mean().mean()
    assert f"Balanced accuracy {hits:.3f} on {len(new)} labelled windows" in said


def test_convex_blend(run, built):
    words = ["few.csv", "-o", "model.json", "--blend", "convex"]
    assert "alpha" in well(run("calibrate", "--prior", "a.npz", *words))
    assert json.loads((built / "model.json").read_text())["blend"] == "ConvexBlendClassifier"


def test_predictions_on_the_screen(run, built):
    well(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "model.json"))
    new = pd.read_csv("new.csv").drop(columns="label")
    new.loc[3, "Cz_alpha"] = np.nan
    new.insert(0, "start", np.arange(len(new)))
    new.to_csv("bare.csv", index=False)
    result = run("predict", "model.json", "bare.csv")
    lines = well(result).splitlines()
    assert lines[0] == "start,predicted,probability_0,probability_1"
    assert len(lines) == len(new) + 1
    assert lines[4] == "3,,,"
    assert "1 of" in result.stderr
    assert "accuracy" not in result.output.lower()


def test_some_labels_are_enough_for_an_accuracy(run, built):
    well(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "model.json"))
    new = pd.read_csv("new.csv").astype({"label": object})
    new.loc[5:, "label"] = None
    new.to_csv("some.csv", index=False)
    assert "on 5 labelled windows" in run("predict", "model.json", "some.csv").stderr
    new.loc[0, "label"] = "other"
    new.to_csv("some.csv", index=False)
    refused(run("predict", "model.json", "some.csv"), "has label 'other', but the model's classes")


def test_tasks_can_be_left_out_and_scales_given(run, built):
    out = ["-o", "p.npz"]
    well(run("prior", "build", "lab-a.csv", *out, "--exclude", "Subject00", "--scale", "none"))
    prior = TaskPrior.load("p.npz")
    assert prior.n_tasks == 17
    np.testing.assert_array_equal(prior.feature_scale, 1.0)
    scale = pd.DataFrame({"feature": prior.feature_names, "scale": 0.25})
    scale.to_csv("scale.csv", index=False)
    well(run("prior", "build", "lab-a.csv", *out, "--scale", "scale.csv"))
    np.testing.assert_array_equal(TaskPrior.load("p.npz").feature_scale, 0.25)
    scale[::-1].to_csv("scale.csv", index=False)
    refused(run("prior", "build", "lab-a.csv", *out, "--scale", "scale.csv"), "another order")
    refused(run("prior", "build", "lab-a.csv", *out, "--scale", "no.csv"), "there is no file")
    refused(run("prior", "build", "lab-a.csv", *out, "--exclude", "p99"), "There is no task 'p99'")


def test_check_lists_what_does_not_fit(run, built):
    few = pd.read_csv("few.csv")
    few.rename(columns={"Fz_theta": "F3_theta"}).to_csv("bad.csv", index=False)
    refused(run("prior", "check", "a.npz", "bad.csv"), "missing: 'Fz_theta'")
    refused(run("calibrate", "--prior", "a.npz", "bad.csv", "-o", "m.json"), "missing: 'Fz_theta'")
    few.iloc[:, [0, 2, 1, *range(3, 10)]].to_csv("bad.csv", index=False)
    refused(run("prior", "check", "a.npz", "bad.csv"), "another order")
    few.assign(Fz_theta=1e6 * few["Fz_theta"]).to_csv("bad.csv", index=False)
    refused(run("prior", "check", "a.npz", "bad.csv"), "Check its units")
    result = run("calibrate", "--prior", "a.npz", "bad.csv", "-o", "m.json")
    assert result.exit_code == 0
    assert "Check its units" in result.stderr
    few[few["label"] == 0].to_csv("bad.csv", index=False)
    refused(run("prior", "check", "a.npz", "bad.csv"), "There is no window of class 1")


def test_files_that_are_not_what_they_should_be(run, built):
    content = (built / "a.npz").read_bytes()
    (built / "cut.npz").write_bytes(content[:-200])
    refused(run("prior", "check", "cut.npz"), "truncated or damaged")
    refused(run("prior", "check", "few.csv"), "is not a prior file")
    refused(run("prior", "show", "none.npz"), "does not exist", 2)
    refused(run("prior", "merge", "a.npz", "-o", "b.npz"), "two priors or more; got 1", 2)
    well(run("prior", "build", "lab-b.csv", "-o", "b.npz"))
    refused(run("prior", "merge", "a.npz", "b.npz", "-o", "c.npz"), "different feature scales")
    refused(
        run("calibrate", "--prior", "a.npz", "lab-b.csv", "-o", "m.json"), "windows of 17 tasks"
    )
    refused(run("predict", "few.csv", "new.csv"), "is not a model file")
    well(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "model.json"))
    text = (built / "model.json").read_text()
    (built / "altered.json").write_text(text.replace('"alpha": 0', '"alpha": 1'))
    refused(run("predict", "altered.json", "new.csv"), "altered after it was saved")
    refused(run("predict", "model.json", "new.csv", "-o", "out.txt"), "ends in .csv or .parquet")
    pd.read_csv("new.csv").drop(columns="Pz_beta").to_csv("less.csv", index=False)
    refused(
        run("predict", "model.json", "less.csv"), "Features of the model are missing: 'Pz_beta'"
    )
    assert not (built / "c.npz").exists()
    assert not (built / "m.json").exists()


def test_a_card_that_contradicts_its_numbers_is_noticed(run, built):
    from crossfade import _prior_file as prior_file

    with np.load("a.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    text = arrays.pop("header").tobytes().decode()
    del arrays["sha256"]
    card = json.loads(arrays["card_json"].tobytes()) | {"made_by": "somebody else"}
    arrays["card_json"] = np.frombuffer(json.dumps(card).encode(), dtype=np.uint8)
    np.savez(
        "a.npz",
        header=np.frombuffer(text.encode(), dtype=np.uint8),
        sha256=np.frombuffer(prior_file._digest(text, arrays), dtype=np.uint8),
        **arrays,
    )
    refused(run("prior", "check", "a.npz"), "The card's 'made_by' is not what")


@pytest.mark.parametrize(
    "words",
    [
        ["prior"],
        ["prior", "build"],
        ["prior", "show"],
        ["prior", "merge"],
        ["prior", "check"],
        ["calibrate"],
        ["predict"],
    ],
)
def test_every_help_text_has_an_example(run, words):
    said = well(run(*words, "--help"))
    assert "Example" in said
    assert "  crossfade " in said
