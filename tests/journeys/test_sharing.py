"""From a lab's tasks to a clinic's predictions, by commands alone, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import (
    HierarchicalBlendClassifier,
    Ledger,
    MulticlassPrior,
    PosteriorBlendClassifier,
    TaskPrior,
    forecast_labels,
    load_mental_math,
    load_model,
)
from crossfade.cli import main
from crossfade.prior._archive import pack, unpack


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
    rule = HierarchicalBlendClassifier(merged).fit(few.drop(columns="label"), few["label"])
    assert "Blend     hierarchical" in said
    assert f"alpha     {rule.alpha_:.3f}" in said
    lower, upper = rule.expected_accuracy_interval(0.9)
    promise = f"{rule.expected_accuracy_:.3f}  (90 % interval {lower:.2f} to {upper:.2f})"
    assert f"Forecast  {promise}" in said
    assert "What more labels would bring" in said
    found = forecast_labels(rule, [8, 16, 32])
    for place, count in enumerate((8, 16, 32)):
        low, high = found.lower[place], found.upper[place]
        words = [f"{count}", f"{found.accuracy[place]:.3f}", f"{low:.2f}", "to", f"{high:.2f}"]
        assert any(line.split()[:5] == words for line in said.splitlines())
    assert json.loads((built / "model.json").read_text())["prior"]["n_tasks"] == 35

    said = well(run("predict", "model.json", "new.csv", "-o", "out.csv"))
    table, new = pd.read_csv("out.csv"), pd.read_csv("new.csv")
    X = new.drop(columns="label")
    np.testing.assert_array_equal(table["predicted"], rule.predict(X))
    chances = table[["probability_0", "probability_1"]].to_numpy()
    np.testing.assert_allclose(chances, rule.predict_proba(X), rtol=1e-12)
    hits = (table["predicted"] == table["label"]).groupby(table["label"]).mean().mean()
    assert f"Balanced accuracy {hits:.3f} on {len(new)} labelled windows" in said
    assert f"; forecast {promise}" in said


def test_a_forecast_that_falls_with_more_labels_is_explained(run, built, monkeypatch):
    def falling(rule, budgets, level):
        found = forecast_labels(rule, budgets, level=level)
        return found._replace(accuracy=rule.expected_accuracy_ - 0.0001 * np.array(budgets) ** 2)

    said = well(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "model.json"))
    assert "More labels do not harm" not in said
    monkeypatch.setattr("crossfade.blend.forecast_labels", falling)
    said = well(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "model.json"))
    assert "More labels do not harm. That a forecast falls is chance" in " ".join(said.split())
    assert "-0.102" in said


def test_what_a_prior_is_not_good_for_is_said_when_it_is_built(run, built):
    assert "people are few" not in well(run("prior", "build", "lab-a.csv", "-o", "p.npz"))
    table = pd.read_csv("lab-a.csv")
    table[table["task"].isin(table["task"].unique()[:9])].to_csv("nine.csv", index=False)
    said = well(run("prior", "build", "nine.csv", "-o", "nine.npz"))
    assert "9 people are few" in said
    assert "no recipe" in said


def test_convex_blend(run, built):
    words = ["few.csv", "-o", "model.json", "--blend", "convex"]
    assert "alpha" in well(run("calibrate", "--prior", "a.npz", *words))
    assert json.loads((built / "model.json").read_text())["blend"] == "ConvexBlendClassifier"


@pytest.mark.parametrize("blend", ["posterior", "convex"])
def test_a_crowd_drowned_in_noise(run, built, monkeypatch, blend):
    """The convex blend then leaves the crowd out; both say what more labels would bring."""
    prior = TaskPrior.load("a.npz")
    W = np.tile(np.eye(9)[0], (18, 1)) * np.where(np.arange(18) % 2, 1.0, -1.0)[:, None]
    none = TaskPrior.from_projections(
        W, feature_names=prior.feature_names, feature_scale=prior.feature_scale
    )
    none.save("none.npz")
    result = run("calibrate", "--prior", "none.npz", "few.csv", "-o", "m.json", "--blend", blend)
    assert "What more labels would bring" in well(result)
    assert ("cancel out" in result.stderr) == (blend == "convex")

    def fail(*_, **__):
        raise ValueError("cannot tell")

    # Nothing is written unless all can be said.
    monkeypatch.setattr("crossfade.blend.forecast_labels", fail)
    refused(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "n.json"), "cannot tell")
    assert not (built / "n.json").exists()


def test_classes_that_are_not_equally_frequent(run, built):
    words = ["--prior", "a.npz", "few.csv", "-o", "model.json", "--class-prior"]
    said = well(run("calibrate", *words, "0.9", "0.1"))
    few = pd.read_csv("few.csv")
    rule = HierarchicalBlendClassifier(TaskPrior.load("a.npz"), class_prior=(0.9, 0.1))
    rule.fit(few.drop(columns="label"), few["label"])
    assert f"Forecast  {rule.expected_accuracy_:.3f}" in said
    assert "of the accuracy (90 % of 0, 10 % of 1)" in said
    assert f"now, 4     {rule.expected_accuracy_:.3f}" in said

    said = well(run("predict", "model.json", "new.csv", "-o", "out.csv"))
    table = pd.read_csv("out.csv")
    hits = (table["predicted"] == table["label"]).groupby(table["label"]).mean()
    accuracy = 0.9 * hits[0] + 0.1 * hits[1]
    assert f"Accuracy (90 % of 0, 10 % of 1) {accuracy:.3f} on" in said
    assert f"forecast {rule.expected_accuracy_:.3f}" in said
    refused(run("calibrate", *words, "0.9", "0.2"), "class_prior must be two positive")


def test_windows_from_all_over_a_session(run, built):
    few = pd.read_csv("few.csv")
    for flags, in_a_row in (([], True), (["--scattered"], False)):
        words = ["--prior", "a.npz", "few.csv", "-o", "m.json", *flags]
        rule = HierarchicalBlendClassifier(TaskPrior.load("a.npz"), in_a_row=in_a_row)
        rule.fit(few.drop(columns="label"), few["label"])
        assert f"alpha     {rule.alpha_:.3f}" in well(run("calibrate", *words))


def parts_of(few, counts):
    return pd.concat([few[few["label"] == label].head(n) for label, n in enumerate(counts)])


@pytest.mark.parametrize("counts", [(1, 1), (1, 4), (2, 3), (4, 0)])
def test_from_the_first_window_on_there_is_a_forecast(run, built, counts):
    few = parts_of(pd.read_csv("few.csv"), counts)
    few.to_csv("fewer.csv", index=False)
    said = well(run("calibrate", "--prior", "a.npz", "fewer.csv", "-o", "m.json"))
    rule = HierarchicalBlendClassifier(TaskPrior.load("a.npz"))
    rule.fit(few.drop(columns="label"), few["label"])
    lower, upper = rule.expected_accuracy_interval(0.9)
    promise = f"{rule.expected_accuracy_:.3f}  (90 % interval {lower:.2f} to {upper:.2f})"
    assert f"Forecast  {promise}" in said
    assert promise in run("predict", "m.json", "new.csv").stderr
    have = f"{counts[0]}" if len(set(counts)) == 1 else "+".join(map(str, counts))
    assert f"now, {have} " in said
    # What is there already stays.
    after = {(1, 1): "2", (1, 4): "2+4", (2, 3): "4", (4, 0): "4+1"}[counts]
    lines = [line.split() for line in said.splitlines()]
    [now] = [place for place, line in enumerate(lines) if line[:1] == ["now,"]]
    assert lines[now + 1][0] == after


def test_before_the_first_label_the_crowd_answers(run, built):
    said = well(run("calibrate", "--prior", "a.npz", "-o", "m.json"))
    rule = HierarchicalBlendClassifier(TaskPrior.load("a.npz")).start()
    assert "Labelled  nothing yet" in said
    assert "alpha     0.000" in said
    assert f"Forecast  {rule.expected_accuracy_:.3f}" in said
    assert "now, 0" in said
    well(run("predict", "m.json", "new.csv", "-o", "out.csv"))
    X = pd.read_csv("new.csv").drop(columns="label")
    np.testing.assert_array_equal(pd.read_csv("out.csv")["predicted"], rule.predict(X.to_numpy()))
    X.rename(columns={"Pz_beta": "Oz_beta"}).to_csv("other.csv", index=False)
    refused(run("predict", "m.json", "other.csv"), "missing: 'Pz_beta'")


def test_windows_without_a_label_count_too(run, built):
    prior = TaskPrior.load("a.npz")
    few, new = pd.read_csv("few.csv"), pd.read_csv("new.csv").head(20)
    # A gap makes text of the other labels in a CSV file.
    pd.concat([few, new.assign(label=None)]).to_csv("mixed.csv", index=False)
    said = well(run("calibrate", "--prior", "a.npz", "mixed.csv", "-o", "m.json"))
    assert "Labelled  4 of 0, 4 of 1; 20 unlabelled" in said
    rule = HierarchicalBlendClassifier(prior).fit(few.drop(columns="label"), few["label"])
    rule.partial_fit(new.drop(columns="label"), None)
    assert load_model("m.json").intercept_ == pytest.approx(rule.intercept_)
    new.drop(columns="label").to_csv("bare.csv", index=False)
    said = well(run("calibrate", "--prior", "a.npz", "bare.csv", "-o", "m.json"))
    assert "Labelled  nothing yet; 20 unlabelled" in said
    new.drop(columns=["label", "Pz_beta"]).to_csv("bare.csv", index=False)
    result = run("calibrate", "--prior", "a.npz", "bare.csv", "-o", "m.json")
    refused(result, "Features of the prior are missing: 'Pz_beta'")


def test_budgets_to_forecast_for_can_be_chosen(run, built):
    words = ["--prior", "a.npz", "few.csv", "-o", "m.json", "--budgets"]
    said = well(run("calibrate", *words, "8,24+5"))
    rows = [line.split()[0] for line in said.splitlines() if line.startswith("   ")]
    assert rows[-2:] == ["8", "24+5"]
    refused(run("calibrate", *words, "0.5"), "--budgets takes numbers of windows")
    refused(run("calibrate", *words, "24+2+3"), "has numbers for 3 classes, and there are 2. Give")
    refused(run("calibrate", *words, "many"), "A budget is a number of windows of each class")


def test_a_table_without_labels_says_that_all_windows_count_as_unlabelled(run, built):
    pd.read_csv("few.csv").drop(columns="label").to_csv("bare.csv", index=False)
    result = run("calibrate", "--prior", "a.npz", "bare.csv", "-o", "m.json")
    well(result)
    assert "windows count as unlabelled. If a column has the labels, name it" in result.stderr


def test_a_prior_without_class_means_says_what_is_lost(run, built):
    prior = TaskPrior.load("a.npz")
    prior.without("class_means").save("less.npz")
    result = run("calibrate", "--prior", "less.npz", "few.csv", "-o", "m.json")
    said = well(result)
    assert "Note: less.npz holds no class means, so the posterior blend" in result.stderr
    few = pd.read_csv("few.csv")
    rule = PosteriorBlendClassifier(prior.without("class_means"))
    rule.fit(few.drop(columns="label"), few["label"])
    assert "Blend     posterior" in said
    assert f"Forecast  {rule.expected_accuracy_:.3f}" in said
    refused(run("calibrate", "--prior", "less.npz", "-o", "n.json"), "knows class means")
    few[few["label"] == 0].to_csv("one.csv", index=False)
    said = well(run("calibrate", "--prior", "less.npz", "one.csv", "-o", "m.json"))
    assert "What more labels would bring cannot be told yet" in said


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


def test_labels_of_another_type_are_the_same(run, built):
    """Whole numbers become others where one is missing, and text in a CSV file."""
    new = pd.read_csv("new.csv")
    few = pd.read_csv("few.csv")
    few.astype({"label": float}).to_csv("few_float.csv", index=False)
    for name in ("few.csv", "few_float.csv"):
        well(run("calibrate", "--prior", "a.npz", name, "-o", "model.json"))
        said = run("predict", "model.json", "new.csv").stderr
        assert "Balanced accuracy" in said
        assert f"on {len(new)} labelled windows" in said
        new.astype({"label": float}).to_csv("other.csv", index=False)
        assert run("predict", "model.json", "other.csv").stderr == said
        new.astype({"label": float}).to_parquet("other.parquet")
        assert run("predict", "model.json", "other.parquet").stderr == said
        gap = new.astype({"label": float})
        gap.loc[3, "label"] = np.nan
        gap.to_parquet("gap.parquet")
        gap.to_csv("gap.csv", index=False)
        said = run("predict", "model.json", "gap.parquet").stderr
        assert f"on {len(new) - 1} labelled windows" in said
        assert run("predict", "model.json", "gap.csv").stderr == said
    gap.loc[0, "label"] = 0.5
    gap.to_csv("gap.csv", index=False)
    refused(run("predict", "model.json", "gap.csv"), "has label '0.5', but the model's classes")


def test_labels_of_one_class_only(run, built):
    well(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "model.json"))
    new = pd.read_csv("new.csv").query("label == 1")
    new.to_csv("one.csv", index=False)
    said = run("predict", "model.json", "one.csv").stderr
    assert "Share of 1 found" in said
    assert "forecast of the balanced accuracy" in said


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
    assert "not in the units of the prior" in result.stderr
    assert "Feature 'Fz_theta' varies" in result.stderr
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


def forged(path, **cards):
    """The file with other cards, or without (None), under a checksum that fits."""
    header, arrays = unpack(path, path.read_bytes(), "TaskPrior")
    for name, card in cards.items():
        del arrays[name]
        if card is not None:
            arrays[name] = np.frombuffer(card, dtype=np.uint8)
    path.write_bytes(pack(header, arrays))


def test_a_card_that_contradicts_its_numbers_is_noticed(run, built):
    path = built / "a.npz"
    prior, whole = TaskPrior.load(path), path.read_bytes()
    data = prior.card_data()
    assert "is whole and valid" in well(run("prior", "check", "a.npz"))

    def as_json(card):
        return json.dumps(card, sort_keys=True).encode()

    less = {key: value for key, value in data.items() if key != "privacy"}
    twice = b'{"privacy": {"kind": "released"}, ' + as_json(data)[1:]
    private = prior.card().replace("exact sums: ", "released with epsilon = 0.1: ")
    for cards, message in (
        ({"card_json": as_json(data | {"made_by": "me"})}, "The card's 'made_by' is not what"),
        ({"card_json": as_json(data | {"safe": None})}, "The card's 'safe' is not what"),
        ({"card_json": as_json(less)}, "The card's 'privacy' is not what"),
        ({"card_json": twice}, "The card in JSON cannot be read"),
        (
            {"card_json": b" " + as_json(data)},
            "The card in JSON is not written as Crossfade writes",
        ),
        ({"card_json": b"{"}, "The card in JSON cannot be read"),
        ({"card_json": b"[" * 100_000}, "The card in JSON cannot be read"),
        ({"card_json": b"7"}, "The card in JSON cannot be read"),
        ({"card_json": None}, "card_json is missing"),
        ({"card_md": private.encode()}, "The card in Markdown is not what the numbers say"),
        ({"card_md": None}, "card_md is missing"),
    ):
        path.write_bytes(whole)
        forged(path, **cards)
        refused(run("prior", "check", "a.npz"), message)


def test_no_prior_is_merged_with_itself(run, built):
    TaskPrior.load("a.npz").annotated(made_by="somebody else").save("copy.npz")
    well(run("prior", "build", "lab-b.csv", "-o", "b.npz", "--scale", "a.npz"))
    for words in (("a.npz", "a.npz"), ("a.npz", "b.npz", "copy.npz")):
        refused(run("prior", "merge", *words, "-o", "c.npz"), "count twice")
    assert not (built / "c.npz").exists()


def test_a_prior_is_released(run, built):
    pytest.importorskip("opendp")
    budget = ["--epsilon", "5", "--delta", "1e-5", "--ledger", "l.json", "-o", "public.npz"]
    result = run("prior", "release", "a.npz", *budget)
    assert "released with epsilon=5, delta=1e-05 (its scale is not covered)" in well(result)
    assert "scale was learnt" in result.stderr
    public = TaskPrior.load("public.npz")
    assert public.release.epsilon == 5.0
    assert public.half_gap is None
    assert "is whole and valid" in well(run("prior", "check", "public.npz"))

    well(run("prior", "build", "lab-b.csv", "-o", "b.npz", "--scale", "a.npz"))
    result = run("prior", "release", "b.npz", *budget)
    assert "not covered" not in well(result)
    assert "Note" not in result.stderr
    again = run("prior", "release", "public.npz", *budget[:-1], "c.npz")
    refused(again, "not exact any more")
    refused(run("prior", "merge", "public.npz", "a.npz", "-o", "c.npz"), "not exact any more")
    for epsilon in ("0", "-1", "nan"):
        words = ["--epsilon", epsilon, "--delta", "1e-5", "--ledger", "l.json", "-o", "c.npz"]
        refused(run("prior", "release", "a.npz", *words), "epsilon must be above 0")
    refused(run("prior", "release", "a.npz", *budget[:4], "-o", "c.npz"), "--ledger", 2)
    assert not (built / "c.npz").exists()


def test_a_prior_with_a_clip_is_released_with_class_means(run, built):
    pytest.importorskip("opendp")
    words = ["--scale", "a.npz", "--clip", "16"]
    told = well(run("prior", "build", "lab-b.csv", "-o", "b.npz", *words))
    assert "sums of class means clipped to 16" in told
    words = ["--epsilon", "9", "--delta", "1e-5", "--ledger", "l.json", "-o", "c.npz"]
    told = well(run("prior", "release", "b.npz", *words))
    assert "sums of class means clipped to 16" in told
    assert "lacks          a replay, in which everybody's record depends on all others" in told
    # It answers before the first label.
    assert well(run("calibrate", "--prior", "c.npz", "-o", "model.json"))
    well(run("predict", "model.json", "new.csv", "-o", "labels.csv"))
    for clip, message in (("0", "clip must be a positive number"), ("nan", "got nan")):
        refused(run("prior", "build", "lab-b.csv", "-o", "d.npz", "--clip", clip), message)
    refused(run("prior", "build", "lab-b.csv", "-o", "d.npz", "--clip", "wide"), "--clip", 2)
    refused(run("prior", "merge", "a.npz", "b.npz", "-o", "d.npz"), "have different bounds")
    assert not Path("d.npz").exists()


def test_releases_are_counted_and_refused_past_the_budget(run, built):
    pytest.importorskip("opendp")
    words = ["--epsilon", "1", "--delta", "1e-5", "--ledger", "ledger.json", "-o", "public.npz"]
    told = well(run("prior", "release", "a.npz", *words, "--budget", "1.5"))
    assert "ledger.json: 1 release" in told
    well(run("prior", "build", "lab-b.csv", "-o", "b.npz", "--scale", "a.npz"))
    # One ledger is one population, whoever is in the prior.
    assert "epsilon=1.465" in well(run("prior", "release", "b.npz", *words))
    first = (built / "public.npz").read_bytes()
    refused(run("prior", "release", "a.npz", *words), "budget of 1.5")
    assert (built / "public.npz").read_bytes() == first
    # What cannot be written is not counted.
    refused(run("prior", "release", "a.npz", *words[:-1], "nowhere/p.npz"), "There is no folder")
    assert len(Ledger("ledger.json").releases) == 2


def test_no_command_replaces_what_it_reads(run, built):
    Path("link.npz").hardlink_to("a.npz")
    before = {name: Path(name).read_bytes() for name in ("a.npz", "lab-a.csv")}
    budget = ["--epsilon", "1", "--delta", "1e-5", "--ledger", "x.json"]
    for words in (
        ("build", "lab-a.csv", "-o", "lab-a.csv"),
        ("build", "lab-a.csv", "--scale", "a.npz", "-o", "a.npz"),
        ("merge", "a.npz", "a.npz", "-o", "a.npz"),
        ("release", "a.npz", *budget, "-o", "a.npz"),
        ("release", "a.npz", *budget, "-o", "link.npz"),
        ("release", "a.npz", *budget, "-o", "x.json"),
    ):
        refused(run("prior", *words), f"{words[-1]} would replace ")
    assert {name: Path(name).read_bytes() for name in before} == before
    assert not list(built.glob("*.json"))


@pytest.mark.parametrize("command", ["show", "check"])
def test_other_priors_are_called_by_name(run, built, command):
    MulticlassPrior.from_tasks(load_mental_math()[:8]).save("many.npz")
    refused(run("prior", command, "many.npz"), "many.npz is the file of a MulticlassPrior")


def test_a_prior_that_lost_its_replay_makes_a_model_and_says_so(run, built):
    prior = TaskPrior.load("a.npz")
    prior.without("replay").save("less.npz")
    result = run("calibrate", "--prior", "less.npz", "few.csv", "-o", "m.json")
    said = well(result)
    assert "Note: This prior holds no replay" in result.stderr
    assert "What more labels would bring is not known" in said
    assert (built / "m.json").exists()
    assert "Blend     hierarchical" in said


def test_windows_without_a_label_are_left_out_where_no_one_can_use_them(run, built):
    TaskPrior.load("a.npz").without("class_means").save("less.npz")
    few = pd.read_csv("few.csv")
    gap = few.astype({"label": object})
    gap.loc[[0, 5], "label"] = None
    gap.to_csv("gap.csv", index=False)
    result = run("calibrate", "--prior", "less.npz", "gap.csv", "-o", "m.json")
    well(result)
    assert "Note: 2 windows without a label are left out" in result.stderr
