"""The report as a reader sees it: in a real browser, on a desk, on a phone and on paper."""

import csv
from pathlib import Path

import pytest

from crossfade import Task, load_mental_math
from crossfade.report import write_report
from crossfade.simulate import simulate_tasks
from crossfade.study import CalibrationStudy

pytest.importorskip("matplotlib")
playwright = pytest.importorskip("playwright.sync_api", reason="Needs the package playwright.")

METHODS = ["target", "average-source", "paper", "convex", "posterior", "lda"]
pytestmark = pytest.mark.slow
HOSTILE = "</script><script>alert(1)</script> <img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Report of the first sixteen participants of Mental Math."""
    tasks = load_mental_math()[:16]
    study = CalibrationStudy(tasks, methods=METHODS, n_splits=5, random_state=0)
    return write_report(study.run(), tasks, tmp_path_factory.mktemp("report"), formats=())[-1]


@pytest.fixture
def read(opened):
    return lambda path, width=1200, **options: opened(path.as_uri(), width, **options)


def column(page, place):
    """What can be seen of a column of the table of participants."""
    rows = page.locator("#participants tbody tr:visible")
    return [text.strip() for text in rows.locator(f":nth-child({place})").all_inner_texts()]


def numbers(texts):
    return [float(text.replace("−", "-")) for text in texts]


def test_verdict_is_what_one_sees_first(read, report):
    page = read(report)
    verdict = page.locator(".verdict")
    box = verdict.bounding_box()
    assert verdict.is_visible()
    assert box["y"] + box["height"] < 800
    assert "the posterior blend" in verdict.inner_text()
    assert len(verdict.inner_text().replace("\u00a0", " ").split()) <= 20
    # The statistics stand below it, one line each.
    statistics = page.locator(".statistics li")
    assert statistics.count() >= 3
    assert statistics.first.bounding_box()["y"] > box["y"] + box["height"]
    size = "element => parseFloat(getComputedStyle(element).fontSize)"
    assert verdict.evaluate(size) > 1.4 * page.locator("#run dd").first.evaluate(size)
    for figure in page.locator(".plot svg[role]").all():
        box = figure.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
    assert page.locator(".plot svg").count() == 5


def test_a_click_on_a_head_sorts(read, report):
    page = read(report)
    heads = page.locator("#participants thead th")
    names = heads.all_inner_texts()
    gain = names.index("gain") + 1
    before = column(page, gain)
    button = heads.nth(gain - 1).locator("span")
    button.click()
    assert heads.nth(gain - 1).get_attribute("aria-sort") == "ascending"
    assert column(page, gain) != before
    assert numbers(column(page, gain)) == sorted(numbers(before))
    button.press("Enter")
    assert heads.nth(gain - 1).get_attribute("aria-sort") == "descending"
    assert numbers(column(page, gain)) == sorted(numbers(before), reverse=True)
    heads.first.locator("span").press(" ")
    assert heads.nth(gain - 1).get_attribute("aria-sort") == "none"
    assert column(page, 1) == sorted(column(page, 1))


def test_filters_hide_rows(read, report):
    page = read(report)
    assert len(column(page, 1)) == 64
    page.fill("#find", "subject03")
    assert column(page, 1) == ["Subject03"] * 4
    page.select_option("#budget", "10 %")
    assert column(page, 1) == ["Subject03"]
    assert page.locator("#shown").inner_text() == "1 of 64 lines"
    page.fill("#find", "")
    assert column(page, 2) == ["10 %"] * 16
    page.select_option("#budget", "")
    assert len(column(page, 1)) == 64


def test_a_method_can_be_hidden_in_all_figures(read, report):
    page = read(report)
    own = page.locator('[data-series="posterior"]')
    others = page.locator('[data-series="target"]')
    assert own.count() > 20
    n_own, n_others = (part.locator("visible=true").count() for part in (own, others))
    button = page.locator('.methods [data-method="posterior"]')
    button.click()
    playwright.expect(button).to_have_attribute("aria-pressed", "false")
    # A slow machine paints a little later than it listens.
    playwright.expect(own.locator("visible=true")).to_have_count(0)
    assert others.locator("visible=true").count() == n_others
    button.click()
    playwright.expect(button).to_have_attribute("aria-pressed", "true")
    playwright.expect(own.locator("visible=true")).to_have_count(n_own)


@pytest.mark.parametrize("touch", [False, True])
def test_a_point_says_what_it_is(read, report, touch):
    page = read(report, has_touch=touch)
    tip = page.locator("#tip")
    assert not tip.is_visible()
    point = page.locator('#accuracy [data-tip^="Posterior blend, 5 %"]')
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    (page.touchscreen.tap if touch else page.mouse.move)(*place)
    assert tip.is_visible()
    assert tip.inner_text() == point.get_attribute("data-tip")
    shown = tip.bounding_box()
    assert shown["x"] >= 0
    assert shown["x"] + shown["width"] <= 1200
    (page.touchscreen.tap if touch else page.mouse.move)(5, 5)
    assert not tip.is_visible()


def test_every_table_can_be_downloaded(read, report, tmp_path):
    page = read(report)
    buttons = page.locator("#numbers button.file").all()
    assert len(buttons) == 10
    for button in buttons:
        with page.expect_download() as event:
            button.click()
        name = event.value.suggested_filename
        event.value.save_as(tmp_path / name)
        assert name == button.inner_text()
        assert (tmp_path / name).read_bytes() == (report.parent / name).read_bytes()
        # Chromium takes more than ten within a second for an attack.
        page.wait_for_timeout(150)
    with open(tmp_path / "participants.csv") as stream:
        assert len(list(csv.DictReader(stream))) == 16 * 4 * len(METHODS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_on_a_phone(read, report, scheme):
    page = read(report, 360, color_scheme=scheme, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.locator("#participants").scroll_into_view_if_needed()
    for text in page.locator("p:visible, h1, h2, h3, button:visible").all():
        box = text.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360


#: Ratio of contrast of the letters of an element, as WCAG 2 has it.
CONTRAST = """element => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const linear = parts(colour).slice(0, 3).map((one) => {
      const c = one / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const clear = (part) => (parts(getComputedStyle(part).backgroundColor)[3] ?? 1) === 0;
  let behind = element;
  while (behind.parentElement && clear(behind)) behind = behind.parentElement;
  const [a, b] = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor]
    .map(light).sort((one, other) => other - one);
  return (a + 0.05) / (b + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_from_what_is_behind_them(read, report, scheme):
    page = read(report, color_scheme=scheme)
    kinds = ".kind, .verdict, .statistics li, .facts, a, h2, .methods p, .methods button, "
    kinds += "figcaption, thead th, tbody th, td, td small, .get, dt, label, pre, button.file"
    for kind in kinds.split(", "):
        assert page.locator(kind).first.evaluate(CONTRAST) >= 4.5, kind


def test_print_has_all_rows_and_no_buttons(read, report):
    page = read(report, color_scheme="dark")
    page.fill("#find", "Subject03")
    page.locator('.methods [data-method="posterior"]').click()
    page.emulate_media(media="print")
    assert page.locator("#participants tbody tr:visible").count() == 64
    unseen = page.locator(".methods .screen, .hint, nav, .filters, .get")
    assert unseen.locator("visible=true").count() == 0
    # The buttons are the legend, whether their method was hidden on the screen or not.
    assert page.locator(".methods button:visible").count() == len(METHODS)
    assert page.locator('[data-series="posterior"]').locator("visible=true").count() > 20
    for box in page.locator(".box, .plot").all():
        assert box.evaluate("box => box.scrollHeight <= box.clientHeight + 1")
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_hostile_names_are_only_names(read, tmp_path):
    tasks = [
        Task(task.X, task.y, name=f"{place} {HOSTILE}", group=f"{HOSTILE} {place // 2}")
        for place, task in enumerate(simulate_tasks(6, n_features=3, random_state=0))
    ]
    study = CalibrationStudy(
        tasks, methods=["posterior", "target"], budgets=[2], n_splits=2, random_state=0
    )
    report = write_report(
        study.run(), tasks, tmp_path, title=HOSTILE, about={"site": HOSTILE}, formats=()
    )[-1]
    page = read(report, 360)
    assert page.title() == HOSTILE
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert column(page, 1)[0] == f"0 {HOSTILE}"
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    with page.expect_download() as event:
        page.locator("#numbers button.file", has_text="participants.csv").click()
    assert HOSTILE in Path(event.value.path()).read_text()
