"""From a lab's tasks to a clinic's predictions, by commands alone, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from crossfade import (
    Ledger,
    MulticlassPrior,
    TaskPrior,
    load_mental_math,
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


def test_what_a_prior_is_not_good_for_is_said_when_it_is_built(run, built):
    assert "people are few" not in well(run("prior", "build", "lab-a.csv", "-o", "p.npz"))
    table = pd.read_csv("lab-a.csv")
    table[table["task"].isin(table["task"].unique()[:9])].to_csv("nine.csv", index=False)
    said = well(run("prior", "build", "nine.csv", "-o", "nine.npz"))
    assert "9 people are few" in said
    assert "no recipe" in said


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
    refused(run("predict", "few.csv", "new.csv"), "is not a model file")
    well(run("calibrate", "--prior", "a.npz", "few.csv", "-o", "model.json"))
    text = (built / "model.json").read_text()
    (built / "altered.json").write_text(text.replace('"alpha": 0', '"alpha": 1'))
    refused(run("predict", "altered.json", "new.csv"), "altered after it was saved")
    refused(run("predict", "model.json", "new.csv", "-o", "out.txt"), "ends in .csv or .parquet")
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
