"""A case: why, the query, the picture, and every step side by side."""

import pytest

BOTH = pytest.mark.parametrize("single", [False, True], ids=["folder", "one file"])
LATE = "late-drops/late-by-the-watermark-of-the-batch-before"


def case(reader, id, single=False):
    return reader.open(f"case/{id}" if single else f"cases/{id}.html", single)


@BOTH
def test_why_query_sources_and_how_to_run_it(reader, single):
    page = case(reader(), LATE, single)
    text = page.locator("[data-page]:visible").inner_text()
    for words in (
        "Why",
        "Three rows are waiting",
        ".withWatermark(",
        "conformance run cases/late-drops/",
        "late-wm-previous",
    ):
        assert words in text
    assert (
        page.get_by_role("link", name="SPARK-40925").first.get_attribute("href").startswith("https://issues.apache.org")
    )


@BOTH
def test_each_behaviour_has_its_versions_and_its_reason(reader, single):
    page = case(reader(), LATE, single)
    heads = page.locator("section.behaviour:visible > h2").all_inner_texts()
    assert ["3.5.9, 4.3.0" in heads[0], "3.3.4" in heads[1], len(heads)] == [True, True, 2]
    older = page.locator("section.behaviour:visible").nth(1)
    assert "late rows were filtered by the micro-batch's own watermark" in older.inner_text()
    assert "Differs from 4.3.0 at step 1, micro-batch 2" in older.inner_text()


def test_the_timeline_tells_rows_watermark_windows_and_where_versions_part(reader):
    page = case(reader(), LATE)
    newer, older = (page.locator("section.behaviour").nth(at).locator("figure > .scroll svg") for at in (0, 1))
    assert newer.locator(".f-taken").count() == 3
    assert older.locator(".f-taken").count() == 2
    assert older.locator(".f-late").count() == 1
    assert newer.locator(".t-watermark").count() == 1
    assert newer.locator(".t-window:not(.open)").count() == 1
    assert older.locator(".t-parts").count() == 1
    words = older.locator("desc").text_content()
    assert "Micro-batch 2 of step 1, data: reads 1, emits 0, drops 1 as late (10), runs with the watermark 15" in words


def test_no_data_batches_and_restarts_are_drawn(reader):
    page = case(reader(), "recovery/replay-filters-late-rows-as-the-first-attempt-did")
    assert page.locator("figure .t-cut").count() == 2
    assert "restart" in page.locator("figure svg").first.inner_html()
    page = case(reader(), "late-drops/window-still-open")
    assert page.locator("section.behaviour").first.locator(".t-empty").count() == 2


def test_a_picture_has_a_name_and_words(reader):
    page = case(reader(), LATE)
    picture = page.get_by_role("img", name="Event time against micro-batches on Spark 4.3.0")
    assert picture.count() == 1


def test_a_violation_is_open_and_marked_where_it_begins(reader):
    page = case(reader(), "late-drops/window-still-open")
    wrong = page.locator("section.behaviour", has_text="violates")
    assert "emitted, not expected" in wrong.inner_text() or "expected, not emitted" in wrong.inner_text()
    step = wrong.locator("details.diverges")
    assert step.get_attribute("open") is not None
    assert "expected, not observed" in step.text_content()
    assert wrong.locator("details.step[open]").count() == 1


def test_a_version_without_an_answer_says_why(reader):
    page = case(reader(), "late-drops/downtime-makes-no-row-late")
    silent = page.locator("section", has=page.get_by_role("heading", name="Versions without a result"))
    assert "the engine did not answer within 60 s" in silent.inner_text()


@BOTH
def test_from_a_case_to_its_behaviour_and_back(reader, single):
    page = case(reader(), LATE, single)
    page.get_by_role("link", name="late-wm-previous").click()
    article = page.locator("article:visible", has=page.locator("h3", has_text="late-wm-previous"))
    article.first.wait_for()
    assert article.first.is_visible()
    article.first.get_by_role("link", name="A micro-batch filters late rows").click()
    page.locator("h1:visible", has_text="A micro-batch").wait_for()
    assert "A micro-batch filters late rows" in page.locator("h1:visible").inner_text()


def test_the_script_can_be_copied(reader):
    one = reader(permissions=["clipboard-read", "clipboard-write"])
    page = case(one, LATE)
    page.get_by_role("button", name="Copy the script").click()
    copied = page.get_by_role("button", name="Copied")
    copied.wait_for()
    assert copied.count() == 1
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == page.locator("pre.script").text_content()
    compile(text, "script", "exec")


@BOTH
def test_what_no_case_tests_is_seen(reader, single):
    page = reader().open("behaviours" if single else "behaviours.html", single)
    untested = page.locator(".untested:visible")
    assert untested.count() >= 1
    assert "No case tests this." in untested.first.inner_text()
    assert "Not tested, by design" in page.locator(".beyond:visible").first.inner_text()


@BOTH
def test_what_the_run_was(reader, single):
    page = reader().open("about" if single else "about.html", single)
    text = page.locator("[data-page]:visible").inner_text()
    trust = ("Can I trust it?", "case, engine and model agree", "wrong models are detected")
    for words in (*trust, "Suite", "container", "sha256:", "--runtime container", "Not tested, by design"):
        assert words in text


def test_the_model_stands_beside_the_engine_and_tells_why(reader):
    page = case(reader(), "late-drops/window-still-open")
    agreeing, wrong = page.locator("section.behaviour").all()
    assert agreeing.locator("table.sides th", has_text="Model").count() == 3
    assert agreeing.get_by_text("same as the engine").count() == 8
    assert "12:00, 12:10, 6" in wrong.locator("details.diverges tr").nth(1).locator("td").nth(2).inner_text()
    agreeing.get_by_text("Explanation by the reference model").click()
    assert "max 12:30 − 25 min = 12:05, advances from 11:35" in agreeing.locator(".words").inner_text()
