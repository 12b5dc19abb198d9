"""From a prior to one person's predictions, by commands alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import (
    HierarchicalBlendClassifier,
    PosteriorBlendClassifier,
    TaskPrior,
    TaskSet,
    forecast_labels,
    load_mental_math,
    load_model,
)
from crossfade.cli import main


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """A prior of twelve people with its rehearsal, and its file."""
    tasks = load_mental_math()[:12]
    prior = TaskPrior.from_tasks(TaskSet(list(tasks)))
    path = tmp_path_factory.mktemp("crowd") / "prior.npz"
    prior.save(path)
    return prior, str(path)


@pytest.fixture
def person(tmp_path, monkeypatch):
    """First and later windows of somebody else, as tables in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    task = load_mental_math()[35]
    frame = pd.DataFrame(task.X, columns=task.feature_names).assign(label=task.y)
    few = frame.groupby("label").head(4)
    few.to_csv("few.csv", index=False)
    frame.drop(few.index).to_csv("new.csv", index=False)
    return few, frame.drop(few.index)


def run(*words):
    return CliRunner().invoke(main, words)


def well(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def split(frame):
    return frame.drop(columns="label"), frame["label"]


def promise(rule):
    low, high = rule.expected_accuracy_interval(0.9)
    return f"{rule.expected_accuracy_:.3f}  (90 % interval {low:.2f} to {high:.2f})"


def test_the_model_is_that_of_python(crowd, person):
    prior, path = crowd
    few, new = person
    said = well("calibrate", "--prior", path, "few.csv", "-o", "model.json")
    rule = HierarchicalBlendClassifier(prior).fit(*split(few))
    assert "4 of 0, 4 of 1" in said
    assert f"{rule.alpha_:.3f}" in said
    assert promise(rule) in said
    found = forecast_labels(rule, [8, 16, 32])
    lines = [line.split() for line in said.splitlines()]
    for place, count in enumerate((8, 16, 32)):
        assert [f"{count}", f"{found.accuracy[place]:.3f}"] in [line[:2] for line in lines]
    told = well("predict", "model.json", "new.csv", "-o", "out.csv")
    table = pd.read_csv("out.csv")
    X, y = split(new)
    np.testing.assert_array_equal(table["predicted"], rule.predict(X))
    chances = table[["probability_0", "probability_1"]].to_numpy()
    np.testing.assert_allclose(chances, rule.predict_proba(X), rtol=1e-12)
    recall = (table["predicted"].to_numpy() == y).groupby(y).mean().mean()
    assert f"{recall:.3f} on {len(new)}" in told
    assert promise(rule) in told


def test_windows_from_all_over_a_session(crowd, person):
    said = well("calibrate", "--prior", crowd[1], "few.csv", "-o", "m.json", "--scattered")
    rule = HierarchicalBlendClassifier(crowd[0], consecutive=False).fit(*split(person[0]))
    assert f"{rule.alpha_:.3f}" in said


def test_classes_that_are_not_equally_frequent(crowd, person):
    words = ["--prior", crowd[1], "few.csv", "-o", "model.json", "--class-prior"]
    said = well("calibrate", *words, "0.9", "0.1")
    rule = HierarchicalBlendClassifier(crowd[0], class_prior=(0.9, 0.1)).fit(*split(person[0]))
    assert promise(rule) in said
    told = well("predict", "model.json", "new.csv", "-o", "out.csv")
    table = pd.read_csv("out.csv").set_index(person[1].index)
    recall = (table["predicted"] == person[1]["label"]).groupby(person[1]["label"]).mean()
    assert f"{0.9 * recall[0] + 0.1 * recall[1]:.3f} on" in told
    assert run("calibrate", *words, "0.9", "0.2").exit_code == 1


@pytest.mark.parametrize("counts", [(1, 1), (1, 4), (4, 0)])
def test_there_is_a_forecast_from_the_first_window_on(crowd, person, counts):
    few = pd.concat([person[0].query(f"label == {one}").head(n) for one, n in enumerate(counts)])
    few.to_csv("fewer.csv", index=False)
    said = well("calibrate", "--prior", crowd[1], "fewer.csv", "-o", "m.json")
    assert promise(HierarchicalBlendClassifier(crowd[0]).fit(*split(few))) in said
    # The windows that are there stay.
    after = {(1, 1): "2", (1, 4): "2+4", (4, 0): "4+1"}[counts]
    assert after in [line.split()[0] for line in said.splitlines()]


def test_before_the_first_label_the_crowd_answers(crowd, person):
    said = well("calibrate", "--prior", crowd[1], "-o", "m.json")
    rule = HierarchicalBlendClassifier(crowd[0]).start()
    assert promise(rule) in said
    well("predict", "m.json", "new.csv", "-o", "out.csv")
    X = person[1].drop(columns="label").to_numpy()
    np.testing.assert_array_equal(pd.read_csv("out.csv")["predicted"], rule.predict(X))


def test_windows_without_a_label_count(crowd, person):
    few, new = person
    some = new.head(20)
    # A gap makes other numbers of the labels in a CSV file.
    pd.concat([few, some.assign(label=None)]).to_csv("mixed.csv", index=False)
    said = well("calibrate", "--prior", crowd[1], "mixed.csv", "-o", "m.json")
    assert "4 of 0, 4 of 1; 20 unlabelled" in said
    rule = HierarchicalBlendClassifier(crowd[0]).fit(*split(few))
    rule.partial_fit(some.drop(columns="label"), None)
    assert load_model("m.json").intercept[0] == pytest.approx(rule.intercept_)
    some.drop(columns="label").to_csv("bare.csv", index=False)
    result = run("calibrate", "--prior", crowd[1], "bare.csv", "-o", "m.json")
    assert "20 unlabelled" in result.stdout
    assert "no column 'label'" in result.stderr


def test_a_prior_without_class_means(crowd, person):
    less = crowd[0].without("class_means")
    less.save("less.npz")
    result = run("calibrate", "--prior", "less.npz", "few.csv", "-o", "m.json")
    assert "posterior blend" in result.stderr
    assert promise(PosteriorBlendClassifier(less).fit(*split(person[0]))) in result.stdout
    assert run("calibrate", "--prior", "less.npz", "-o", "n.json").exit_code == 1


def test_earlier_sessions_tighten_the_prior(crowd, person):
    words = ["--prior", crowd[1], "--earlier", "few.csv", "-o", "m.json"]
    well("calibrate", *words)
    few = person[0].assign(task="yesterday")
    mine = crowd[0].for_person(TaskSet.from_frame(few))
    rule = HierarchicalBlendClassifier(mine).start()
    X = person[1].drop(columns="label")
    np.testing.assert_allclose(load_model("m.json").decision_function(X), rule.decision_function(X))


def test_features_go_by_name_and_other_columns_stay(crowd, person):
    """A counter in the table is no feature, whatever the order of the columns."""
    few, new = (one.assign(trial=range(len(one))).iloc[:, ::-1] for one in person)
    few.to_csv("wide.csv", index=False)
    new.loc[new.index[3], "Cz_alpha"] = np.nan
    new.to_csv("later.csv", index=False)
    well("calibrate", "--prior", crowd[1], "few.csv", "-o", "one.json")
    well("calibrate", "--prior", crowd[1], "wide.csv", "-o", "two.json")
    np.testing.assert_allclose(load_model("two.json").coef, load_model("one.json").coef)
    result = run("predict", "two.json", "later.csv")
    lines = result.stdout.splitlines()
    assert lines[0] == "trial,label,predicted,probability_0,probability_1"
    assert lines[4].endswith(",,,")
    assert "1 windows lack" in result.stderr


@pytest.mark.parametrize("kind", ["float", "text", "gap.csv", "gap.parquet"])
def test_labels_of_another_type_mean_the_same(crowd, person, kind):
    """A gap in a column turns whole numbers into others, and into text in some files."""
    few = person[0].astype({"label": float})
    if kind == "text":
        few = person[0].astype({"label": str})
    if kind.startswith("gap"):
        few.loc[few.index[0], "label"] = np.nan
    name = "other.parquet" if kind != "gap.csv" else "other.csv"
    few.to_parquet(name) if name.endswith("parquet") else few.to_csv(name, index=False)
    said = well("calibrate", "--prior", crowd[1], name, "-o", "m.json")
    assert f"{3 if kind.startswith('gap') else 4} of 0, 4 of 1" in said
    assert f"{len(few) - kind.startswith('gap')} labelled" in well(
        "predict", "m.json", name, "-o", "out.csv"
    )


def test_labels_may_be_names_of_classes(person):
    TaskPrior.from_tasks(load_mental_math()[:9], rehearse=False).save("named.npz")
    few = person[0].assign(label=person[0]["label"].map({0: "rest", 1: "arithmetic"}))
    few.to_csv("named.csv", index=False)
    few.assign(Fz_theta=few["Fz_theta"] * 1.01).to_csv("before.csv", index=False)
    words = ["--prior", "named.npz", "--earlier", "before.csv", "-o", "m.json"]
    assert "4 of rest, 4 of arithmetic" in well("calibrate", "named.csv", *words)
    assert "8 labelled" in well("predict", "m.json", "named.csv", "-o", "out.csv")


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["calibrate", "--prior", "{prior}", "bad.csv", "-o", "m.json"], "Fz_theta"),
        (["calibrate", "--prior", "{prior}", "many.csv", "-o", "m.json"], "several tasks"),
        (["calibrate", "--prior", "{prior}", "odd.csv", "-o", "m.json"], "other"),
        (["calibrate", "--prior", "few.csv", "few.csv", "-o", "m.json"], "prior"),
        (["calibrate", "--prior", "{prior}", "--earlier", "odd.csv", "-o", "m.json"], "odd.csv"),
        (["calibrate", "--prior", "{prior}", "--earlier", "bare.csv", "-o", "m.json"], "bare.csv"),
        (["predict", "few.csv", "new.csv"], "JSON"),
        (["calibrate", "few.csv", "--prior", "{prior}", "--earlier=few.csv", "-om.json"], "twice"),
        (["calibrate", "--prior", "{prior}", "few.csv", "--label", "no", "-o", "m.json"], "'no'"),
        (["calibrate", "--prior", "{prior}", "few.csv", "-o", "{prior}"], "also read"),
        (["calibrate", "--prior", "{prior}", "--earlier", "few.csv", "-o", "few.csv"], "also read"),
        (["predict", "{prior}", "few.csv", "-o", "few.csv"], "also read"),
        (["study", "rows.csv", "-o", "."], "also read"),
        (["export", "few.csv", "-o", "few.csv"], "also read"),
        (
            ["features", "eeg", "{prior}", "--label-from=csv", "--labels=few.csv", "-ofew.csv"],
            "read",
        ),
    ],
)
def test_refusals(crowd, person, words, word):
    few = person[0]
    few.rename(columns={"Fz_theta": "F3_theta"}).to_csv("bad.csv", index=False)
    few.assign(task=range(len(few))).to_csv("many.csv", index=False)
    few.assign(label="other").to_csv("odd.csv", index=False)
    few.drop(columns="label").to_csv("bare.csv", index=False)
    few.to_csv("rows.csv", index=False)
    before = Path("few.csv").read_bytes(), Path(crowd[1]).read_bytes()
    result = run(*(one.format(prior=crowd[1]) for one in words))
    assert result.exit_code == 1
    assert word in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert not Path("m.json").exists()
    assert (Path("few.csv").read_bytes(), Path(crowd[1]).read_bytes()) == before
