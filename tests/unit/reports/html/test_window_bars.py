"""How long a window lives in the picture, and where its values stand."""

import re
from importlib.resources import files

import pytest

from conformance.account.account import BatchAccount, account, batches_of
from conformance.core.case import Case
from conformance.core.versions import SparkVersion
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import Prediction, predict
from reports.html.timeline import Timeline, ValueLabel, placed, timeline
from tests.support.whole_suite import whole_suite

CASES = {case.id: case for case in whole_suite().cases}
VERSION = SparkVersion(4, 3, 0)
UPDATE = "output-modes/update-evicts-without-emitting"
COMPLETE = "output-modes/complete-emits-every-group-every-batch"
APPEND = "output-modes/append-emits-each-window-once"


def told(case: Case, prediction: Prediction, *, with_model: bool = True) -> tuple[BatchAccount, ...]:
    return batches_of(account(case, VERSION, prediction.observation, prediction if with_model else None))


def drawn(id: str, *, with_model: bool = True) -> Timeline:
    """The picture of what the model predicts, as if an engine had answered so."""
    prediction = predict(CASES[id], VERSION)
    found = timeline(CASES[id], told(CASES[id], prediction, with_model=with_model))
    assert found is not None
    return found


def column(line: Timeline, x: float) -> int:
    return max(at for at, one in enumerate(line.columns) if one.x < x)


class TestLives:
    def test_in_update_mode_a_window_lives_until_its_state_is_removed(self) -> None:
        # "Structured Streaming Programming Guide", update mode: the intermediate counts are written as updates, and the
        # state of 12:00 – 12:10 goes when the watermark, 12:25 − 10 minutes, has passed its end.
        line = drawn(UPDATE)
        window = next(one for one in line.windows if "12:00 – 12:10" in one.tooltip)
        assert (window.end, window.by_model) == ("evicted", True)
        assert column(line, window.x + window.width) == 3
        assert [column(line, x) for x in window.emissions] == [0]

    def test_without_the_model_the_removal_is_not_known(self) -> None:
        windows = drawn(UPDATE, with_model=False).windows
        assert {one.end for one in windows} == {"unknown"}
        assert all(one.open for one in windows)

    def test_in_complete_mode_every_window_stays_and_has_a_mark_at_each_emission(self) -> None:
        line = drawn(COMPLETE)
        first = next(one for one in line.windows if "12:00 – 12:10" in one.tooltip)
        assert [column(line, x) for x in first.emissions] == [0, 1, 2]
        assert {one.end for one in line.windows} == {"open"}

    def test_in_append_mode_the_engine_tells_the_end_itself(self) -> None:
        emitted = [one for one in drawn(APPEND).windows if one.emissions]
        assert emitted
        assert {(one.end, one.by_model) for one in emitted} == {("evicted", False)}

    def test_the_words_tell_what_the_picture_tells(self) -> None:
        assert "removes the windows 12:00 – 12:10, by the reference model" in drawn(UPDATE).described


def overlapping(a: ValueLabel, b: ValueLabel) -> bool:
    return abs(a.y - b.y) < 12 and a.left < b.x and b.left < a.x


class TestLabels:
    def test_no_value_covers_another(self) -> None:
        labelled = 0
        for case in CASES.values():
            if case.output_mode == "append":
                continue
            try:
                prediction = predict(case, VERSION)
            except Unpredictable:
                continue
            line = timeline(case, told(case, prediction))
            values = line.values if line is not None else ()
            labelled += bool(values)
            assert not [(a, b) for at, a in enumerate(values) for b in values[at + 1 :] if overlapping(a, b)], case.id
        assert labelled > 30

    def test_a_value_gives_way_to_another_and_to_a_mark(self) -> None:
        label = ValueLabel(100, 50, "7")
        first, second = placed([(label, 0, 100), (label, 0, 100)], [(98, 50)], 0, 100)
        assert not overlapping(first, second)
        assert all(abs(one.y - 50) > 8 for one in (first, second))


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("mark", "ground"), [("emission", "window"), ("window-edge", "paper")])
def test_marks_stand_out_from_what_they_lie_on(mark: str, ground: str, scheme: int) -> None:
    # WCAG 2.1, 1.4.11: graphical objects have a contrast of at least 3:1.
    style = (files("reports.html") / "assets" / "report.css").read_text(encoding="utf-8")
    colours = {name: re.findall(rf"--{name}: (#[0-9a-f]+)", style)[scheme] for name in (mark, ground)}
    full = {name: c if len(c) == 7 else "#" + "".join(2 * one for one in c[1:]) for name, c in colours.items()}
    assert contrast(full[mark], full[ground]) >= 3
