"""The report of a study: its files say what its tables say, whatever the study was."""

import importlib.util
import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from crossfade import Task, TaskSet
from crossfade.report import write_report
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy, StudyResult, verdict
from crossfade.study.statistics import by_task, compare, forecast_errors, labels_saved, summarise

pytest.importorskip("matplotlib")

HOSTILE = "</script><script>alert(1)</script><b>&\"' {{title}} $x_$"
VOID = {"meta", "input", "br", "link"}
TABLES = [
    *("needed", "summary", "forecast", "reliability", "probabilities", "comparison"),
    *("labels_saved", "participants", "left_out", "failures"),
]
LDA = "scikit-learn's LDA"


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


class Page(HTMLParser):
    """Texts and elements of a page; what is opened must be closed."""

    def __init__(self, path):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.source = path.read_text("utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).replace("\u00a0", " ").split())

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

    def values(self, attribute):
        return [found[attribute] for _, found in self.elements if attribute in found]

    def section(self, name):
        return re.search(rf'<section id="{name}">(.*?)</section>', self.source, re.S)[1]

    def row(self, section, method):
        """Class and content of each cell of a method in the table of a section."""
        label = method.replace("'", "&#39;")
        [line] = re.findall(rf'<tr><th scope="row">{label}<?.*?</tr>', self.section(section))
        return re.findall(r'<td class="(.*?)">(.*?)</td>', line)

    @property
    def data(self):
        return json.loads(re.search(r'id="data">(.*?)</script>', self.source, re.S)[1])


def study(tasks=None, methods=("target", "convex", "posterior", "lda"), **options):
    tasks = simulate_tasks(6, n_features=4, random_state=0) if tasks is None else tasks
    options = {"budgets": [0.05, 0.2], "n_splits": 4, "random_state": 0} | options
    return CalibrationStudy(tasks, methods=list(methods), **options).run(), TaskSet(tasks)


@pytest.fixture
def without(monkeypatch):
    """Let packages seem to be missing; figures take most of the time of a report."""
    find = importlib.util.find_spec

    def hide(*names):
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name in names else find(name)
        )

    return hide


@pytest.fixture
def bare(without, tmp_path):
    """The page of a report without figures."""

    def page(result, tasks, **options):
        without("matplotlib")
        return Page(write_report(result, tasks, tmp_path, **options)[-1])

    return page


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A study of six, and the folder with its report."""
    folder = tmp_path_factory.mktemp("report")
    result, tasks = study()
    written = write_report(result, tasks, folder, about={"seed": 7, "splits": "random"})
    return result, tasks, folder, written


# -- files ----------------------------------------------------------------------------------------


def test_every_file_is_there(usual):
    _, _, folder, written = usual
    figures = ["needed", "accuracy", "differences-lda", "differences-target", "forecast"]
    names = {f"{name}.csv" for name in TABLES} | {f"figures/{name}.png" for name in figures}
    names |= {"rows.parquet", "report.html"}
    assert {path.relative_to(folder).as_posix() for path in written} == names
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")} == names
    assert written[-1].name == "report.html"


def test_tables_are_those_of_the_statistics(usual):
    result, _, folder, written = usual
    rivals = ("lda", "target")
    expected = {
        # An empty cell of a file is read as NaN.
        "needed": result.needed(0.75, 0.8).map(lambda cell: np.nan if cell == "" else cell),
        "summary": summarise(result.rows),
        "comparison": pd.concat([compare(result.rows, name) for name in rivals]),
        "labels_saved": pd.concat(
            [labels_saved(result.rows, "posterior", name) for name in rivals]
        ),
        "forecast": forecast_errors(result.rows),
        "participants": by_task(result.rows),
    }
    for name, table in expected.items():
        found = pd.read_csv(folder / f"{name}.csv")
        table = table.reset_index(drop=True)
        pd.testing.assert_frame_equal(found, table, rtol=1e-5, atol=1e-12, check_dtype=False)
    rows = pd.read_parquet(folder / "rows.parquet")
    pd.testing.assert_frame_equal(rows, result.rows, check_dtype=False)
    # The page has the same files within itself.
    data = Page(written[-1]).data
    assert set(data) == {f"{name}.csv" for name in TABLES}
    for name, text in data.items():
        assert text == (folder / name).read_text()


def test_files_are_the_same_whenever_they_are_written(usual, tmp_path):
    result, tasks, folder, written = usual
    again = write_report(result, tasks, tmp_path, about={"seed": 7, "splits": "random"})
    assert len(again) == len(written)
    for path in again:
        assert path.read_bytes() == (folder / path.relative_to(tmp_path)).read_bytes(), path
        os.utime(path, (1, 1))
    (tmp_path / "summary.csv").write_text("something else")
    (tmp_path / "figures" / "accuracy.png").unlink()
    assert write_report(result, tasks, tmp_path, about={"seed": 7, "splits": "random"}) == again
    renewed = {path.name for path in again if path.stat().st_mtime > 1}
    assert renewed == {"summary.csv", "accuracy.png"}


def test_figures_have_the_formats_that_are_asked_for_and_no_date(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    result, tasks = study(methods=["lda"], budgets=[0.2])
    for folder in ("one", "two"):
        write_report(result, tasks, tmp_path / folder, formats=("svg", "pdf"))
    names = {f"{name}.{kind}" for name in ("needed", "accuracy") for kind in ("svg", "pdf")}
    assert {path.name for path in (tmp_path / "one" / "figures").iterdir()} == names
    for name in names:
        one, two = (tmp_path / folder / "figures" / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    # Nobody else's figures change.
    assert dict(matplotlib.rcParams) == before


def test_without_optional_packages(usual, tmp_path, without):
    result, tasks, _, _ = usual
    without("matplotlib", "pyarrow")
    page = Page(write_report(result, tasks, tmp_path)[-1])
    rows = pd.read_csv(tmp_path / "rows.csv")
    pd.testing.assert_frame_equal(rows, result.rows, check_dtype=False)
    assert not (tmp_path / "figures").exists()
    assert "svg" not in [tag for tag, _ in page.elements]


@pytest.mark.parametrize(
    ("options", "word"),
    [({"formats": ["gif"]}, "gif"), ({"tasks": 1}, "among the tasks")],
)
def test_refusals(usual, tmp_path, options, word):
    result, tasks, _, _ = usual
    tasks = tasks[options.pop("tasks", 0) :]
    with pytest.raises(ValueError, match=word):
        write_report(result, tasks, tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


# -- the page -------------------------------------------------------------------------------------


def test_the_answer_comes_first_and_the_run_is_described(usual):
    result, _, _, written = usual
    page = Page(written[-1])
    assert verdict(result) in page.text
    [headline] = re.findall(r'<p class="verdict">(.*?)</p>', page.source)
    line = result.needed(0.75, 0.8).set_index("method").loc["posterior"]
    assert f"{line['windows']:g} windows of each class" in headline
    for words in ("6 participants · 4 methods · 2 budgets · 4 splits", "Seed 7", "at random"):
        assert words in page.text
    for mean in summarise(result.rows)["mean"]:
        assert f"{mean:.3f}" in page.text
    sections = re.findall('<section id="(.*?)">', page.source)
    assert sections[:5] == ["needed", "accuracy", "forecast", "gains", "alpha"]


def test_the_accuracy_to_reach_can_be_chosen(usual, tmp_path, bare):
    result, tasks, _, _ = usual
    page = bare(result, tasks, reach=0.99, share=0.9)
    assert "until 90 % of people reach a balanced accuracy of 0.99." in page.text
    table = pd.read_csv(tmp_path / "needed.csv")
    assert set(table["accuracy"]) == {0.99}
    # Columns that would say "not reached" in every line are left out.
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page.section("needed"))
    assert heads == ["method", "reach it in the end", "never reach it"]


def test_who_sees_test_windows_does_not_win_and_twins_are_shown_once(tmp_path, bare):
    methods = ["hierarchical", "hierarchical-unlabelled", "lda", "lda-calibrated"]
    result, tasks = study(methods=methods, budgets=[0, 2, 4, (6, 3)], n_splits=6)
    page = bare(result, tasks)
    assert "no label 2 of each class 4 of each class 6+3" in page.text
    for name in ("accuracy", "forecast"):
        for row in re.findall("<tr>(.*?)</tr>", page.section(name), re.S):
            if "unlabelled" in row:
                assert "best" not in row
    assert "best" in page.section("accuracy")
    twin = "LDA (calibrated)"
    assert twin not in page.section("accuracy").partition("<table")[2]
    assert twin in page.section("forecast")
    scores = pd.read_csv(tmp_path / "probabilities.csv").set_index(["method", "budget"])
    means = by_task(result.rows).groupby(["method", "budget"])[["log_loss", "brier"]].mean()
    for place, line in scores.iterrows():
        np.testing.assert_allclose(line[["log_loss", "brier"]], means.loc[place], rtol=1e-5)


# -- studies of all kinds -------------------------------------------------------------------------


def test_names_are_never_markup(tmp_path):
    tasks = [
        Task(task.X, task.y, name=f"{place} {HOSTILE}", feature_names=[HOSTILE, "b", "c", "d"])
        for place, task in enumerate(simulate_tasks(6, n_features=4, random_state=0))
    ]
    methods = ["posterior", (HOSTILE, LogisticRegression()), ("x\n|`y", Refuses(0.0))]
    with pytest.warns(UserWarning, match="failed on"):
        result, tasks = study(tasks, methods)
    options = {"title": HOSTILE, "about": {HOSTILE: HOSTILE}, "notes": [HOSTILE]}
    page = Page(write_report(result, tasks, tmp_path, formats=(), **options)[-1])
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert not {"b", "alert"} & {tag for tag, _ in page.elements}
    assert page.values("data-method") == ["posterior", HOSTILE, "x\n|`y"]
    assert any(tip.startswith(f"{HOSTILE}, ") for tip in page.values("data-tip"))
    assert page.data["participants.csv"] == (tmp_path / "participants.csv").read_text()
    assert HOSTILE in page.text
    assert "too large <b>for me</b>" in page.text


@pytest.mark.filterwarnings("ignore:.*failed on")
@pytest.mark.parametrize(
    "options",
    [
        {"methods": ["lda"]},
        {"methods": ["target", "lda-pooled"]},
        {"methods": ["posterior", "lda"], "budgets": [(6, 3)]},
        {"budgets": [0.1, 3]},
        {"methods": [("never", Refuses())]},
    ],
)
def test_any_methods_and_budgets_will_do(tmp_path, options):
    result, tasks = study(**options)
    page = Page(write_report(result, tasks, tmp_path, formats=())[-1])
    assert verdict(result) in page.text
    assert not re.search(r"\bnan\b", page.text)


def test_tasks_without_names_and_those_left_out(tmp_path, bare):
    tasks = [Task(task.X, task.y) for task in simulate_tasks(6, n_features=4, random_state=0)]
    X, y = np.asarray(tasks[1].X), np.asarray(tasks[1].y)
    tasks[1] = Task(X[y == y[0]], y[y == y[0]])
    few = np.concatenate([np.flatnonzero(tasks[3].y == label)[:3] for label in np.unique(y)])
    tasks[3] = Task(np.asarray(tasks[3].X)[few], np.asarray(tasks[3].y)[few])
    with pytest.warns(UserWarning, match="left out"):
        result, tasks = study(tasks, budgets=[2, 3])
    page = bare(result, tasks)
    table = pd.read_csv(tmp_path / "left_out.csv")
    lone = int((y == y[0]).sum())
    assert table[["task", "budget", "smaller_class"]].to_numpy().tolist() == [
        ["task 2", 2.0, lone],
        ["task 2", 3.0, lone],
        ["task 4", 3.0, 3],
    ]
    assert "windows of one class only" in page.text


def test_failures_are_told_and_left_out_of_the_means(tmp_path, bare):
    methods = ["posterior", ("never", Refuses()), ("sometimes", Refuses(0.0))]
    with pytest.warns(UserWarning, match="failed on"):
        result, tasks = study(methods=methods, n_splits=10)
    page = bare(result, tasks)
    assert "ValueError: too large <b>for me</b>" in page.text
    failures = pd.read_csv(tmp_path / "failures.csv")
    assert failures.query("method == 'never'")["n"].sum() == 6 * 2 * 10
    assert pd.read_csv(tmp_path / "summary.csv").query("method == 'never'")["mean"].isna().all()
    assert all("failed" in content for _, content in page.row("accuracy", "never"))


def test_means_of_other_tasks_are_marked_and_never_the_best(bare):
    result, tasks = study(methods=["target", "lda"], budgets=[0.2])
    rows = result.rows.copy()
    lda, first = rows["method"] == "lda", rows["task"] == rows["task"].iloc[0]
    rows.loc[lda, "balanced_accuracy"] = 1.0
    rows.loc[lda & first, ["balanced_accuracy", "accuracy", "roc_auc", "brier"]] = np.nan
    page = bare(StudyResult(rows), tasks)
    [(look, content)] = page.row("accuracy", LDA)
    assert (look, content.split("<small>")[0]) == ("number", "1.000")
    assert "5 of 6 tasks" in content
    assert page.row("accuracy", "Person alone")[0][0] == "number best"


def test_of_many_people_the_page_shows_some_and_the_file_has_all(tmp_path, bare):
    result, tasks = study(methods=["lda"], budgets=[0.2])
    rows = pd.concat(
        result.rows.assign(task=result.rows["task"] + f" {copy}", group=f"{copy}")
        for copy in range(400)
    )
    many = [Task(task.X, task.y, f"{task.name} {copy}") for copy in range(400) for task in tasks]
    page = bare(StudyResult(rows), many)
    assert "the first 2000 of 2400 lines" in page.text
    assert len(pd.read_csv(tmp_path / "participants.csv")) == 2400
