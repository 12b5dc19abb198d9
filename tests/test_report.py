"""The report of a study: its files say what its tables say, whatever the study was."""

import ast
import json
import os
import re
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import crossfade
from crossfade import Task, TaskSet, __version__, load_mental_math
from crossfade.plots._methods import method_of
from crossfade.report import write_report
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy, StudyResult, verdict
from crossfade.study._methods import METHODS
from crossfade.study.statistics import by_task, compare, forecast_errors, labels_saved, summarise

pytest.importorskip("matplotlib")

HOSTILE = "</script><script>alert(1)</script><b>&\"' {{title}} $x_$"
VOID = {"meta", "input", "br", "link"}
FILES = [
    *("rows.parquet", "needed.csv", "needed.md", "probabilities.csv"),
    *("summary.csv", "summary.md", "comparison.csv", "comparison.md"),
    *("labels_saved.csv", "labels_saved.md", "forecast.csv", "forecast.md", "participants.csv"),
    *("reliability.csv", "left_out.csv", "failures.csv", "report.html"),
]


class Refuses(ClassifierMixin, BaseEstimator):
    """Fails where the first labelled window is above a limit."""

    def __init__(self, limit=-np.inf):
        self.limit = limit

    def fit(self, X, y):
        if X[0, 0] > self.limit:
            raise ValueError("too large <b>for me</b>")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Reader(HTMLParser):
    """Texts and elements of a page; what is opened must be closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())


def study(tasks=None, methods=("target", "convex", "posterior", "lda"), **options):
    tasks = simulate_tasks(6, n_features=4, random_state=0) if tasks is None else tasks
    options = {"budgets": [0.05, 0.2], "n_splits": 4, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=list(methods), **options).run(), TaskSet(tasks)


def page_of(folder, result, tasks, **options):
    written = write_report(result, tasks, folder, **{"formats": ()} | options)
    assert all(path.is_file() for path in written)
    return Reader(written[-1].read_text("utf-8"))


def bare_page_of(folder, result, tasks, missing=("matplotlib",), **options):
    """The page without its figures, which take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        found = lambda name: None if name in missing else find_spec(name)  # noqa: E731
        patch.setattr("crossfade.report._write.find_spec", found)
        return page_of(folder, result, tasks, **options)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A study of six, and the folder with its report."""
    folder = tmp_path_factory.mktemp("report")
    result, tasks = study()
    written = write_report(result, tasks, folder, about={"seed": 7, "splits": "random"})
    return result, tasks, folder, written


def section(folder, name):
    """Text of one section of the page, with its tags."""
    text = (folder / "report.html").read_text("utf-8")
    return re.search(rf'<section id="{name}">(.*?)</section>', text, re.S)[1]


def data_of(folder):
    text = (folder / "report.html").read_text("utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_modules_take_no_private_name_from_each_other():
    """Modules inside a room are private and may be imported; private names in them may not."""
    package = Path(crossfade.__file__).parent
    taken = [
        (path.name, name.name)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crossfade.")
        for name in node.names
        if name.name.startswith("_") and not name.name.startswith("__")
        if find_spec(f"{node.module}.{name.name}") is None
    ]
    assert taken == []


# -- files ----------------------------------------------------------------------------------------


def test_every_file_is_there(usual):
    _, _, folder, written = usual
    figures = ["needed", "accuracy", "differences-lda", "differences-target", "labels-saved-lda"]
    figures += ["labels-saved-target", "alphas", "forecast"]
    names = {path.relative_to(folder).as_posix() for path in written}
    pictures = {f"figures/{name}.png" for name in figures}
    assert names == {*FILES, *pictures}
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")} == names
    assert written[-1].name == "report.html"


def test_tables_are_those_of_the_statistics(usual):
    result, _, folder, _ = usual
    expected = {
        # An empty cell of a file is read as NaN.
        "needed": result.needed(0.75, 0.8).map(lambda cell: np.nan if cell == "" else cell),
        "summary": summarise(result.rows),
        "comparison": pd.concat([compare(result.rows, name) for name in ("lda", "target")]),
        "labels_saved": pd.concat(
            [labels_saved(result.rows, "posterior", name) for name in ("lda", "target")]
        ),
        "forecast": forecast_errors(result.rows),
        "participants": by_task(result.rows),
    }
    for name, table in expected.items():
        pd.testing.assert_frame_equal(
            pd.read_csv(folder / f"{name}.csv"),
            table.reset_index(drop=True),
            rtol=1e-5,
            atol=1e-12,
            check_dtype=False,
        )
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder / "rows.parquet"), result.rows, check_dtype=False
    )


def test_a_file_from_the_page_is_the_file_beside_it(usual):
    _, _, folder, _ = usual
    data = data_of(folder)
    assert set(data) == {name for name in FILES if name.endswith(".csv")}
    for name, text in data.items():
        assert text == (folder / name).read_text()


def test_files_are_the_same_whenever_they_are_written(usual, tmp_path):
    result, tasks, folder, written = usual
    again = write_report(result, tasks, tmp_path, about={"seed": 7, "splits": "random"})
    for path in again:
        assert path.read_bytes() == (folder / path.relative_to(tmp_path)).read_bytes(), path
    assert len(again) == len(written)


def test_figures_have_the_formats_that_are_asked_for_and_no_date(tmp_path):
    result, tasks = study(methods=["lda"], budgets=[0.2])
    for folder in ("one", "two"):
        write_report(result, tasks, tmp_path / folder, formats=("svg", "pdf"))
    names = {f"{name}.{kind}" for name in ("needed", "accuracy") for kind in ("svg", "pdf")}
    assert {path.name for path in (tmp_path / "one" / "figures").iterdir()} == names
    for name in names:
        one, two = (tmp_path / folder / "figures" / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_files_that_are_there_already_are_left_alone(tmp_path):
    result, tasks = study(methods=["lda"], budgets=[0.2])
    written = write_report(result, tasks, tmp_path)
    for path in written:
        os.utime(path, (1, 1))
    (tmp_path / "summary.csv").write_text("something else")
    (tmp_path / "figures" / "accuracy.png").unlink()
    assert write_report(result, tasks, tmp_path) == written
    renewed = {path.name for path in written if path.stat().st_mtime > 1}
    assert renewed == {"summary.csv", "accuracy.png"}
    assert "something" not in (tmp_path / "summary.csv").read_text()


def test_rows_are_csv_and_figures_are_missing_without_their_packages(usual, tmp_path):
    result, tasks, _, _ = usual
    page = bare_page_of(tmp_path, result, tasks, ("matplotlib", "pyarrow"))
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "rows.csv"), result.rows, check_dtype=False
    )
    assert not (tmp_path / "figures").exists()
    assert "svg" not in [tag for tag, _ in page.elements]
    assert "matplotlib was not installed" in page.text


def test_without_jinja_the_report_says_what_to_install(usual, tmp_path):
    result, tasks, _, _ = usual
    with pytest.raises(ImportError, match=r"needs Jinja2. Install crossfade\[plots\]"):
        bare_page_of(tmp_path, result, tasks, ("jinja2",))
    assert list(tmp_path.iterdir()) == []


def test_refusals_say_what_is_wrong(usual, tmp_path):
    result, tasks, _, _ = usual
    with pytest.raises(ValueError, match=r"formats.*'gif'"):
        write_report(result, tasks, tmp_path, formats=["gif"])
    with pytest.raises(ValueError, match="rows of 1 tasks that are not among the tasks"):
        write_report(result, tasks[1:], tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- the page -------------------------------------------------------------------------------------


def test_page_says_what_was_run_and_found(usual):
    result, _, folder, _ = usual
    page = Reader((folder / "report.html").read_text("utf-8"))
    for words in (
        verdict(result),
        "A calibration study of 6 participants",
        "6 participants · 4 methods · 2 budgets · 4 splits",
        "Seed 7",
        "4 of each task and budget, random",
        "Labelled windows are drawn at random.",
        f"Crossfade {__version__}",
        "No task is left out: all 6 took part.",
        "No split failed.",
        "rows.parquet",
    ):
        assert words in page.text
    table = summarise(result.rows)
    for mean in table["mean"]:
        assert f"{mean:.3f}" in page.text
    for line in forecast_errors(result.rows).itertuples():
        # A true minus, and no sign where it rounds to zero.
        text = f"{line.bias:+.3f}".replace("-", "−")
        assert (text if text[1:] != "0.000" else "0.000") in page.text


def test_the_headline_says_how_many_windows(usual):
    result, _, folder, _ = usual
    [headline] = re.findall(
        r'<p class="verdict">(.*?)</p>', (folder / "report.html").read_text("utf-8")
    )
    line = result.needed(0.75, 0.8).set_index("method").loc["posterior"]
    assert line["bound"] == "<="
    assert headline.replace("\u00a0", " ").startswith(
        "With the posterior blend, 80 % of people reach an accuracy of 0.75 within "
        f"{line['windows']:g} windows of each class."
    )
    assert len(headline.replace("\u00a0", " ").split()) <= 20


def test_sections_are_in_order_and_methods_have_no_ids(usual):
    _, _, folder, _ = usual
    text = (folder / "report.html").read_text("utf-8")
    names = re.findall('<section id="(.*?)">', text)
    assert names[:5] == ["needed", "accuracy", "forecast", "gains", "alpha"]
    assert names[5:] == ["how", "numbers", "cite"]
    heads = re.findall("<h[1-3].*?>(.*?)</h[1-3]>", text)
    assert heads[1] == "How many windows does a new person need?"
    assert not set(METHODS) & set(heads)
    assert text.count('class="methods"') == 1


def test_the_accuracy_to_reach_can_be_chosen(usual, tmp_path):
    result, tasks, _, _ = usual
    page = bare_page_of(tmp_path, result, tasks, reach=0.99, share=0.9)
    assert "until 90 % of people reach a balanced accuracy of 0.99." in page.text
    table = pd.read_csv(tmp_path / "needed.csv")
    assert set(table["accuracy"]) == {0.99}
    assert table["n_never"].gt(0).all()
    assert "No method gets there with the windows that were tried." in page.text
    # Columns that would say so in every line are left out.
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', section(tmp_path, "needed"))
    assert heads == ["method", "reach it in the end", "never reach it", "accuracy levels off at"]
    assert re.search(r"With the posterior blend, \d of 6 never reach it: ", page.text)
    with pytest.raises(ValueError, match="accuracy must be a number"):
        bare_page_of(tmp_path, result, tasks, reach=0.0)


def test_budgets_of_unequal_numbers_alone_have_a_report(tmp_path):
    page = page_of(tmp_path, *study(methods=["posterior", "lda"], budgets=[(6, 3)]))
    assert "no budget has equal numbers of windows in all classes" in page.text
    assert pd.read_csv(tmp_path / "needed.csv").empty
    assert "6+3" in page.text


def test_curves_begin_at_no_label_and_the_winner_sees_no_test_window(tmp_path):
    methods = ["hierarchical", "hierarchical-unlabelled", "lda", "lda-calibrated"]
    methods += ["oracle", "oracle-honest"]
    result, tasks = study(methods=methods, budgets=[0, 2, 4, (6, 3)], n_splits=6)
    page = page_of(tmp_path, result, tasks)
    for words in (
        "no label 2 of each class 4 of each class 6+3",
        "The honest oracle picks it on every second one",
        "scikit-learn's LDA (calibrated) predicts the same labels",
        "Guessing has a log loss of 0.693.",
    ):
        assert words in page.text
    seeing = {label_of(name) for name in methods if method_of(name).given}
    for name in ("needed", "accuracy", "forecast"):
        for row in re.findall("<tr>(.*?)</tr>", section(tmp_path, name), re.S):
            label = re.match(r'<th scope="row"[^>]*>(.*?)(<|$)', row)
            if label and label[1] in seeing:
                assert "best" not in row
    assert "best" in section(tmp_path, "accuracy")
    # The same accuracies are drawn and told once, and differ in probabilities.
    twin = "LDA (calibrated)"
    assert twin not in section(tmp_path, "needed").replace("&#39;", "'")
    table = section(tmp_path, "accuracy").partition("<table")[2]
    assert twin not in table
    assert twin in section(tmp_path, "forecast")
    scores = pd.read_csv(tmp_path / "probabilities.csv").set_index(["method", "budget"])
    means = by_task(result.rows).groupby(["method", "budget"])[["log_loss", "brier"]].mean()
    for place, line in scores.iterrows():
        np.testing.assert_allclose(line[["log_loss", "brier"]], means.loc[place], rtol=1e-5)


def test_one_forecast_is_compared_with_a_constant(usual):
    result, _, folder, _ = usual
    text = Reader(section(folder, "forecast")).text
    table = forecast_errors(result.rows)
    for line in table.itertuples():
        assert f"{line.rms:.3f} {line.constant_rms:.3f}" in text
        assert f"{100 * line.coverage_68:.0f} % {100 * line.coverage_90:.0f} %" in text
    own = table[table["method"] == "posterior"]
    rms = np.sqrt(np.average(own["rms"] ** 2, weights=own["n_splits"]))
    assert f"Posterior blend: one forecast is off by {rms:.3f} (root mean square)" in text


def label_of(name):
    return method_of(name).label


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (-0.3, "the posterior blend is less accurate than scikit-learn's LDA"),
        (0.0, "the posterior blend is about as accurate as scikit-learn's LDA"),
    ],
)
def test_the_headline_does_not_flatter(usual, tmp_path, change, words):
    result, tasks, _, _ = usual
    rows = result.rows[result.rows["method"].isin(["posterior", "lda"])].copy()
    lda = rows[rows["method"] == "lda"]["balanced_accuracy"].to_numpy()
    noise = np.tile([0.01, -0.01], len(lda))[: len(lda)]
    rows.loc[rows["method"] == "posterior", "balanced_accuracy"] = lda + change + noise
    text = bare_page_of(tmp_path, StudyResult(rows), tasks).text
    assert words in text
    few = rows[rows["task"].isin([task.name for task in tasks[:3]])]
    text = bare_page_of(tmp_path, StudyResult(few), tasks).text
    assert "3 participants cannot tell the posterior blend from scikit-learn's LDA" in text


def test_classes_have_the_names_that_they_are_given(usual, tmp_path):
    result, tasks, folder, _ = usual
    labels = tasks[0].classes.tolist()
    counts = np.bincount(np.concatenate([np.asarray(task.y) == labels[1] for task in tasks]))
    text = Reader((folder / "report.html").read_text("utf-8")).text
    assert f"{counts[0]:,} of class {labels[0]}" in text
    names = dict(zip(labels, ["rest", "arithmetic"], strict=True))
    text = bare_page_of(tmp_path, result, TaskSet(tasks, names)).text
    assert f"{counts[0]:,} of rest, {counts[1]:,} of arithmetic" in text


def test_page_has_no_address(usual):
    _, _, folder, _ = usual
    text = (folder / "report.html").read_text("utf-8")
    assert "://" not in text
    assert not re.search(r"url\((?!#)|@import", text)
    for _, attributes in Reader(text).elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            assert attributes.get(name, "#").startswith("#")


def test_ids_are_unique_and_references_lead_somewhere(usual):
    _, _, folder, _ = usual
    text = (folder / "report.html").read_text("utf-8")
    ids = [attributes["id"] for _, attributes in Reader(text).elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = {value[1:] for value in re.findall(r'href="(#[^"]+)"', text)}
    used |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert used
    assert used <= set(ids)


def test_figures_carry_what_the_script_looks_for(usual):
    result, _, folder, _ = usual
    page = Reader((folder / "report.html").read_text("utf-8"))
    methods = set(result.rows["method"])
    assert {found["data-series"] for _, found in page.elements if "data-series" in found} == methods
    assert {found["data-method"] for _, found in page.elements if "data-method" in found} == methods
    text = (folder / "report.html").read_text("utf-8")
    tips = re.findall('data-tip="(.*?)"', text)
    smallest = summarise(result.rows).query("method == 'posterior'").iloc[0]
    [tip] = [one for one in tips if one.startswith("Posterior blend, 5 %: 0.")]
    assert f"{smallest['mean']:.3f}" in tip
    # Points stand in a group of their method, those of people in none.
    own = section(folder, "accuracy").partition(tip)[0].rpartition("data-series=")[2]
    assert own.startswith('"posterior"')
    labels = [found["aria-label"] for tag, found in page.elements if "aria-label" in found]
    pictures = [found for tag, found in page.elements if tag == "svg" and "role" in found]
    assert len(pictures) == 8
    assert all(labels)
    markers = [found for tag, found in page.elements if tag == "svg" and "aria-hidden" in found]
    assert len(markers) == len(methods)


def test_points_on_the_page_look_as_in_the_files(usual):
    """Their look is that of their group; open markers stay open, and faint ones faint."""
    result, _, folder, _ = usual
    table = labels_saved(result.rows, "posterior", "lda")
    figures = re.findall("<figure>(.*?)</figure>", section(folder, "gains"), re.S)
    [saved] = [one for one in figures if "those of scikit-learn" in one]
    groups = re.findall(r'<g data-series="([^"]*)" style="([^"]*)">', saved)
    [theirs] = {style for name, style in groups if name == "lda"}
    assert "fill-opacity: 0;" in theirs
    assert f"stroke: {method_of('lda').colour}" in theirs
    assert saved.count("scikit-learn's LDA, ") >= len(table)
    ours = [style for name, style in groups if name == "posterior"]
    assert ours
    assert not any("opacity" in style for style in ours)
    alphas = re.findall(r'<g data-series="posterior" style="([^"]*)">', section(folder, "alpha"))
    assert alphas
    assert all("fill-opacity: 0.55" in style.split("; ") for style in alphas)


def test_every_method_is_described_and_what_else_it_sees_is_said(tmp_path):
    assert len({method_of(name).label for name in METHODS}) == len(METHODS)
    result, tasks = study(methods=["posterior", "posterior-unlabelled", "oracle", "lda"])
    text = bare_page_of(tmp_path, result, tasks).text
    assert "An estimator fitted to the labelled windows" not in text
    for name in ("posterior-unlabelled", "oracle"):
        one = method_of(name)
        assert f"{one.label} {one.given}" in text
        assert f"{one.label} ({name}) {one.text}" in text


def test_forecasts_come_with_what_puts_them_wrong(usual):
    _, _, folder, _ = usual
    text = Reader((folder / "report.html").read_text("utf-8")).text
    assert "If neighbouring windows are more alike than in the crowd" in text


def test_facts_of_the_citation_are_those_of_its_file(usual):
    _, _, folder, _ = usual
    text = Reader((folder / "report.html").read_text("utf-8")).text
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text("utf-8")
    facts = dict(re.findall(r'^ *-? *([a-z-]+): "?(.*?)"?$', citation, re.M))
    assert facts["doi"] in text
    assert facts["title"] in text
    assert f"{facts['volume']}({facts['issue']}), {facts['start']}" in text
    for name in re.findall(r"family-names: (.*)", citation):
        assert name in text
    software = re.search(r'^title: "(.*)"$', citation, re.M)[1]
    assert software in text
    assert f"Version {re.search(r'^version: (.*)$', citation, re.M)[1]}." in text


def test_mental_math_is_below_two_megabytes(tmp_path):
    tasks = load_mental_math()
    rows = []
    result, _ = study(tasks, ["convex", "posterior"], budgets=[0.05, 0.1, 0.2, 0.5], n_splits=2)
    for place in range(5):
        names = {"convex": f"convex {place}", "posterior": f"posterior {place}"}
        rows.append(result.rows.replace({"method": names}))
    page = page_of(tmp_path, StudyResult(pd.concat(rows, ignore_index=True)), tasks)
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
    lines = [found for tag, found in page.elements if found.get("scope") == "row"]
    assert len(lines) > 36 * 4


# -- studies of all kinds -------------------------------------------------------------------------


def test_names_are_never_markup(tmp_path):
    tasks = [
        Task(task.X, task.y, name=f"{place} {HOSTILE}", feature_names=[HOSTILE, "b", "c", "d"])
        for place, task in enumerate(simulate_tasks(6, n_features=4, random_state=0))
    ]
    methods = ["posterior", (HOSTILE, LogisticRegression()), ("x\n|`y", Refuses(0.0))]
    with pytest.warns(UserWarning, match="failed on"):
        result, tasks = study(tasks, methods)
    page = page_of(tmp_path, result, tasks, title=HOSTILE, about={HOSTILE: HOSTILE})
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not {"b", "alert"} & {tag for tag, _ in page.elements}
    named = [found["data-method"] for _, found in page.elements if "data-method" in found]
    assert named == ["posterior", HOSTILE, "x\n|`y"]
    tips = [found["data-tip"] for _, found in page.elements if "data-tip" in found]
    assert any(tip.startswith(f"{HOSTILE}, ") for tip in tips)
    assert data_of(tmp_path)["participants.csv"] == (tmp_path / "participants.csv").read_text()
    assert HOSTILE in page.text
    assert "too large <b>for me</b>" in page.text
    lines = (tmp_path / "summary.md").read_text().splitlines()
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert len(lines) == 2 + 3 * 2
    assert len(bars) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"methods": ["lda"]},
            ["there is nothing to compare it with", "None of the methods forecasts"],
        ),
        (
            {"methods": ["posterior"], "budgets": [2]},
            ["2 of each class", "there is nothing to compare it with"],
        ),
        ({"methods": ["oracle", "lda-pooled"]}, ["Oracle alpha", "Pooled LDA"]),
        ({"methods": ["convex", "posterior"]}, ["Posterior blend compared with Convex blend"]),
        ({"splits": "chronological"}, ["1 split", "This is done once."]),
        ({"budgets": [2, 3, 5]}, ["2 of each class", "3 of each class", "5 of each class"]),
        ({"budgets": [0.1, 3]}, ["10 %", "3 of each class"]),
    ],
)
def test_any_methods_and_budgets_will_do(tmp_path, options, words):
    page = page_of(tmp_path, *study(**options))
    for one in words:
        assert one in page.text
    assert not re.search(r"\bnan\b", page.text)


def test_sessions_of_one_participant_are_tasks_with_a_group(tmp_path):
    tasks = [
        Task(task.X, task.y, name=f"session {place}", group=f"person {place // 2}")
        for place, task in enumerate(simulate_tasks(6, n_features=4, random_state=0))
    ]
    page = bare_page_of(tmp_path, *study(tasks))
    assert "6 of 3 participants" in page.text
    assert "person 2" in page.text
    assert "A calibration study of 6 tasks" in page.text


def test_one_participant_alone(tmp_path):
    result, tasks = study()
    one = StudyResult(result.rows[result.rows["task"] == tasks[2].name])
    page = bare_page_of(tmp_path, one, tasks)
    assert "A calibration study of 1 participant" in page.text
    assert "it was not run" in page.text


def test_tasks_without_names_and_those_left_out_are_told_apart(tmp_path):
    tasks = [Task(task.X, task.y) for task in simulate_tasks(6, n_features=4, random_state=0)]
    X, y = np.asarray(tasks[1].X), np.asarray(tasks[1].y)
    tasks[1] = Task(X[y == y[0]], y[y == y[0]])
    few = np.concatenate([np.flatnonzero(tasks[3].y == label)[:3] for label in np.unique(y)])
    tasks[3] = Task(np.asarray(tasks[3].X)[few], np.asarray(tasks[3].y)[few])
    with pytest.warns(UserWarning, match="left out"):
        result, tasks = study(tasks, budgets=[2, 3])
    page = bare_page_of(tmp_path, result, tasks)
    table = pd.read_csv(tmp_path / "left_out.csv")
    assert table.to_numpy().tolist() == [
        ["task 2", 2.0, (y == y[0]).sum(), "windows of one class only"],
        ["task 2", 3.0, (y == y[0]).sum(), "windows of one class only"],
        ["task 4", 3.0, 3, "no window of each class left to test on"],
    ]
    assert "windows of one class only" in page.text
    assert "A calibration study of 5 participants" in page.text


def test_failures_are_told_and_left_out_of_the_means(tmp_path):
    methods = ["posterior", ("never", Refuses()), ("sometimes", Refuses(0.0))]
    with pytest.warns(UserWarning, match="failed on"):
        result, tasks = study(methods=methods, n_splits=10)
    page = bare_page_of(tmp_path, result, tasks)
    assert "ValueError: too large <b>for me</b>" in page.text
    failures = pd.read_csv(tmp_path / "failures.csv")
    assert failures.query("method == 'never'")["n"].sum() == 6 * 2 * 10
    assert pd.read_csv(tmp_path / "summary.csv").query("method == 'never'")["mean"].isna().all()
    assert "120" in page.text
    line = re.search(r'<tr><th scope="row">never</th>(.*?)</tr>', section(tmp_path, "accuracy"))
    assert re.findall("<small>(.*?)</small>", line[1]) == ["failed"] * 2
    n_failed = failures["n"].sum()
    page = bare_page_of(tmp_path, StudyResult(result.rows), tasks)
    assert f"{n_failed} splits failed; the study does not say why." in page.text


def test_means_of_other_tasks_are_marked_and_never_the_best(tmp_path):
    result, tasks = study(methods=["target", "lda"], budgets=[0.2])
    rows = result.rows.copy()
    lda, first = rows["method"] == "lda", rows["task"] == rows["task"].iloc[0]
    scores = ["balanced_accuracy", "accuracy", "roc_auc", "brier"]
    rows.loc[lda, "balanced_accuracy"] = 1.0
    rows.loc[lda & first, scores] = np.nan
    bare_page_of(tmp_path, StudyResult(rows), tasks)
    text = section(tmp_path, "accuracy")
    cell = r'<tr><th scope="row">{}</th><td class="(.*?)">(.*?)</td></tr>'
    look, content = re.search(cell.format("scikit-learn&#39;s LDA"), text).groups()
    assert (look, content.split("<small>")[0]) == ("number", "1.000")
    assert "<small>5 of 6 tasks</small>" in content
    assert re.search(cell.format("Person alone"), text)[1] == "number best"
    rows = result.rows.copy()
    rows.loc[lda & (rows["split"] == 0) & first, scores] = np.nan
    bare_page_of(tmp_path, StudyResult(rows), tasks)
    text = section(tmp_path, "accuracy")
    assert (
        "<small>1 split failed</small>" in re.search(cell.format("scikit-learn&#39;s LDA"), text)[2]
    )


def test_a_method_that_has_no_accuracy_at_one_budget(tmp_path):
    result, tasks = study(methods=["posterior", "lda"], budgets=[1, 2, 4])
    page = bare_page_of(tmp_path, result, tasks)
    assert verdict(result) in page.text
    saved = pd.read_csv(tmp_path / "labels_saved.csv")
    assert saved["n_labelled"].tolist() == [4, 8]


def test_a_study_in_which_all_failed_has_a_report(tmp_path):
    with pytest.warns(UserWarning, match="failed on"):
        result, tasks = study(methods=[("never", Refuses())])
    page = page_of(tmp_path, result, tasks, formats=["png"])
    assert "No method has an accuracy: all 48 splits failed." in page.text
    assert not (tmp_path / "figures").exists()


def test_labels_saved_are_told_in_words(tmp_path):
    """Windows that were not tried are not counted, and nothing is saved by a negative number."""
    tasks = simulate_tasks(6, n_features=4, random_state=0)
    result, tasks = study(tasks, methods=["posterior", "lda"], budgets=[2, 4, 8], n_splits=20)
    page = bare_page_of(tmp_path, result, tasks)
    text = page.text.partition("compared with")[2].partition("labels_saved.csv")[0]
    table = pd.read_csv(tmp_path / "labels_saved.csv")
    smallest = table.iloc[0]
    assert (smallest["bound"], smallest["saved"]) == ("<=", 0.0)
    assert "at most 4 unknown fewer were not tried" in text
    assert "at least 0" not in text
    assert "−" not in text
    for line in table.itertuples():
        assert f"{line.accuracy:.3f} {line.n_labelled:.0f}" in text


def test_tables_in_markdown_have_the_words_of_the_page(usual):
    result, _, folder, _ = usual
    heads, _, first, *_ = (folder / "comparison.md").read_text().splitlines()
    cells = dict(zip(heads.split(" | "), first.split(" | "), strict=True))
    line = compare(result.rows, "lda").iloc[0]
    assert cells["| method"] == f"| {method_of(line['method']).label}"
    assert cells["budget"] == "5 %"
    assert cells["mean difference"] == f"{line['mean_difference']:+.3f}".replace("-", "−")
    assert cells["better"] == f"{line['wins']}"


def test_methods_with_one_alpha_for_all_do_not_choose_it(tmp_path):
    result, tasks = study(methods=["target", "average-source", "oracle", "posterior", "lda"])
    page = page_of(tmp_path, result, tasks)
    [label] = [found["aria-label"] for _, found in page.elements if "Mean alpha" in str(found)]
    assert label.endswith("For Oracle alpha, Posterior blend, at each budget.")


def test_a_report_does_not_change_how_others_are_drawn(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    write_report(*study(methods=["lda"], budgets=[0.2]), tmp_path, formats=["svg"])
    assert dict(matplotlib.rcParams) == before
