"""What the README and the docs say of the published results, counted again from them."""

import json
import lzma
from itertools import combinations

from pydantic import TypeAdapter

from conformance.core.versions import SparkVersion
from reports.analysis.gate import KnownPair
from reports.analysis.job_relevance import QUERY_NEEDS
from reports.analysis.published_pairs import PAIRS, published_pair
from reports.results.published import published_releases
from tests.support.effort import sample
from tests.support.published import published_report
from tools import stated_numbers
from tools.publish_pairs import known_pairs, needs_and_bugs


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
    releases = sorted(SparkVersion.parse(release) for release in published_releases(report.results))
    every = [f"{before}..{after}" for before, after in combinations(releases, 2)]
    # Each release is in one of these.
    across = [f"{before}..{after}" for before, after in zip(releases, releases[len(releases) // 2 :], strict=False)]
    wanted, form = {*sample(every, 6), *across, "3.5.3..4.3.0", "3.5.9..4.3.0"}, TypeAdapter(KnownPair)
    for pair, known in known_pairs(report, wanted.__contains__):
        dumped = form.dump_python(known, mode="json", exclude_defaults=True)
        assert form.validate_python(dumped) == published_pair(*pair.split("..")), f"{pair}: {stale}"
        wanted.remove(pair)
    assert not wanted
    assert lzma.decompress(QUERY_NEEDS.read_bytes()) == needs_and_bugs(report), stale


def test_every_two_published_releases_are_a_published_pair() -> None:
    releases = sorted(map(SparkVersion.parse, published_releases(published_report().results)))
    first = json.loads(lzma.decompress(PAIRS.read_bytes()).partition(b"\n")[0])
    assert [*first] == [f"{before}..{after}" for before, after in combinations(releases, 2)]
