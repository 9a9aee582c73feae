"""What the README and the docs say of the published results, counted again from them."""

from __future__ import annotations

import lzma

from reports.analysis.job_relevance import QUERY_NEEDS
from reports.analysis.published_pairs import PAIRS
from tests.support.published import published_report
from tools import stated_numbers
from tools.publish_pairs import content, needs_and_bugs


def test_the_pages_say_what_the_published_results_say() -> None:
    for path, text in stated_numbers.files(published_report()):
        stale = f"{path.name} is stale: run python -m tools.regenerate"
        assert path.read_text(encoding="utf-8") == text, stale


def test_each_sentence_is_there_once() -> None:
    for page, _, end, sentence in stated_numbers.sentences(published_report()):
        flat = " ".join((stated_numbers.ROOT / page).read_text(encoding="utf-8").split())
        assert flat.count(sentence + end) == 1, f"{page} lacks: {sentence}"


def test_published_pairs_follow_from_the_published_results() -> None:
    stale = "what is derived of them is stale: run python -m tools.publish_pairs"
    report = published_report()
    assert lzma.decompress(PAIRS.read_bytes()) == content(report), stale
    assert lzma.decompress(QUERY_NEEDS.read_bytes()) == needs_and_bugs(report), stale
