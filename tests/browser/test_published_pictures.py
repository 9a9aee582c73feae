"""The pictures of the published results: what lives, what is emitted, and that every value can be read."""

import pytest

from reports.html.addresses import InAFolder, case_key
from tests.support.effort import sample

HIDDEN = """() => [...document.querySelectorAll("figure.timeline")].flatMap(figure => {
  const svg = figure.querySelector(".scroll svg"), frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll(".t-value")].map(text => [text, text.getBoundingClientRect()]);
  const after = new Set(boxes.map(([text]) => text));
  return boxes.flatMap(([text, box], at) => [
    ...boxes.slice(at + 1).filter(([, other]) => box.left < other.right - 1 && other.left < box.right - 1
      && box.top < other.bottom - 4 && other.top < box.bottom - 4).map(([other]) => `${text.textContent} lies on ${other.textContent}`),
    ...(box.left < frame.left - 1 || box.right > frame.right + 1 ? [`${text.textContent} is cut off`] : []),
    ...[...svg.children].slice([...svg.children].indexOf(text) + 1).filter(one => !after.has(one))
      .map(one => `${one.tagName} above ${text.textContent}`),
  ]);
})"""


def with_values(report, folder, mode):
    """Cases in a mode whose pictures have values: of the others there is nothing to see."""
    cases = (id for id, case in report.cases.items() if case.output_mode == mode)
    return sample([id for id in cases if "t-value" in (folder / InAFolder().file(case_key(id))).read_text()], 24)


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_no_value_is_hidden_in_any_picture(published_reader, published_report, published_folder, mode):
    reader, found, labels = published_reader(), [], 0
    for id in with_values(published_report, published_folder, mode):
        page = reader.open(InAFolder().file(case_key(id)))
        found += [f"{id}: {what}" for what in page.evaluate(HIDDEN)]
        labels += page.locator(".t-value").count()
    assert labels > 20
    assert found == []


def test_in_update_mode_a_window_ends_after_its_last_emission_and_says_how_that_is_known(published_reader):
    page = published_reader().open("cases/output-modes/update-evicts-without-emitting.html")
    figure = page.locator("figure.timeline").first
    bar = figure.locator("g", has=page.locator("title", has_text="12:00 – 12:10")).locator("rect")
    mark = figure.locator(".scroll svg .t-flag").first
    assert bar.bounding_box()["x"] + bar.bounding_box()["width"] > mark.bounding_box()["x"] + 100
    assert figure.locator(".scroll svg .t-end.by-model").count() == 1
    legend = figure.locator("figcaption").inner_text()
    for words in ("window; ends where its state is removed", "emitted", "end known from the reference model only"):
        assert words in legend


def test_in_complete_mode_no_window_ends(published_reader, published_report, published_folder):
    reader, drawn = published_reader(), 0
    for id in with_values(published_report, published_folder, "complete"):
        page = reader.open(InAFolder().file(case_key(id)))
        merged = page.locator("figure.timeline .scroll svg title", has_text="becomes part of another window").count()
        assert page.locator("figure.timeline .scroll svg .t-end").count() == merged, id
        drawn += page.locator("figure.timeline .scroll svg .t-window.open").count()
    assert drawn > 10
