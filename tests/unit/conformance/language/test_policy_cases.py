"""Cases on watermark policies: how they are read, where they are kept apart from cases for Spark."""

from decimal import Decimal
from pathlib import Path

import pytest

from conformance.core.case import Case
from conformance.language import InvalidCase, read_any, read_case
from conformance.language.catalogue import Catalogue
from conformance.policies.case import PolicyCase
from conformance.policies.engines import IdleTimeout
from conformance.policies.trace import BatchBoundary, ClockReading, Event, IdlePoll
from conformance.suite.coverage import coverage
from conformance.suite.discovery import load, shipped
from tests.support.whole_suite import whole_suite

HERE = Path(__file__).parent


def read(path: Path) -> PolicyCase:
    (found,) = read_any(path, f"policies/{path.stem}")
    assert isinstance(found, PolicyCase)
    return found


def test_every_key_is_read() -> None:
    case = read(HERE / "valid" / "policy.yaml")
    assert case.family == "policies"
    assert (case.strength, case.tags) == ("observed", ("own",))
    assert [mirror.id for mirror in case.mirrors] == ["S35", "S40"]
    assert case.throttle == ("emit-by-frame", {"frame": 2, "offset": 1})
    assert (case.trace.inputs, case.trace.clock_unit, case.trace.window) == (("left", "right"), "ns", 10)
    assert case.trace.entries == (
        ClockReading(7),
        Event(10, "left"),
        Event(-5, "right"),
        Event(12, "left"),
        IdlePoll(),
        IdlePoll("right"),
        BatchBoundary(),
    )
    rules = case.rules
    assert isinstance(rules.policy, IdleTimeout)
    assert (rules.engine, rules.policy.timeout) == ("Hazelcast Jet 0.6", 5)
    second = case.steps[1]
    assert second.name == "on the first input"
    assert second.expect.watermark == {"left": 7, "right": None}
    assert case.lines["trace.2"] == 15
    assert case.lines["trace.2.expect.late"] == 17


def test_keys_that_are_absent_are_told_from_null() -> None:
    expected = read(HERE / "valid" / "policy.yaml").steps[5].expect
    assert expected.model_fields_set == {"emitted"}


def test_formatting_does_not_matter_to_the_digest(tmp_path: Path) -> None:
    texts = ["title: x\npolicy: {stream-time: {grace: 1}}\ntrace: [event: 1]\n"]
    texts += [
        "# why\ntrace:\n  - event: 1\npolicy:\n  stream-time: {grace: 1}\ntitle: 'x'\n",
        texts[0].replace("1", "2"),
    ]
    digests = []
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text)
        digests.append(read(tmp_path / f"{number}.yaml").digest)
    assert digests[0] == digests[1] != digests[2]


def test_a_share_may_be_any_notation_of_a_number(tmp_path: Path) -> None:
    for text, share in [("0.1", "0.1"), ("1", "1"), ("1.0", "1"), ("1e-1", "0.1")]:
        (tmp_path / "a.yaml").write_text(f"title: x\npolicy: {{quantile: {{quantile: {text}}}}}\ntrace: [event: 1]\n")
        policy = read(tmp_path / "a.yaml").rules.policy
        assert getattr(policy, "quantile", None) == Decimal(share)


def test_what_reads_cases_for_spark_does_not_read_them() -> None:
    with pytest.raises(InvalidCase):
        read_case(HERE / "valid" / "policy.yaml", "policy")


def test_a_suite_keeps_them_apart() -> None:
    suite = whole_suite()
    assert {case.family for case in suite.policy_cases} == {"policies"}
    assert all(isinstance(case, Case) and case.family != "policies" for case in suite.cases)
    ids = [case.id for case in suite.all_cases]
    assert ids == sorted(ids)
    assert len(ids) == len(suite.cases) + len(suite.policy_cases)


def test_ids_are_unique_over_both_sorts(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "a.yaml").write_text("title: x\npolicy: {stream-time: {grace: 1}}\ntrace: [event: 1]\n")
    (tmp_path / "two" / "a.yaml").write_text(
        "title: x\nstreams: {events: at TIMESTAMP}\nquery: [from: events]\nsteps: [idle: {}]\n"
    )
    suite = load([tmp_path / "one", tmp_path / "two"])
    assert [problem.message.partition(", already used by")[0] for problem in suite.problems] == ["duplicate id 'a'"]


def test_they_count_for_the_statements_they_pin() -> None:
    suite = whole_suite()
    catalogue = Catalogue.at(shipped())
    assert catalogue is not None
    statements = next(one for one in coverage(suite.policy_cases, catalogue) if one.name == "founding statements")
    of_policies = {id for id, entry in (catalogue.statements or {}).items() if entry["concerns"] == "policies"}
    assert of_policies == set(statements.cases)
    assert all(len(cases) >= 1 for cases in statements.cases.values())


def test_a_suite_asks_for_links_and_known_ids(tmp_path: Path) -> None:
    (tmp_path / "behaviours.yaml").write_text("late-predicate: The rule\n")
    (tmp_path / "tags.yaml").write_text("smoke: Runs first\n")
    (tmp_path / "statements.yaml").write_text("S35: {statement: A}\n")
    text = "title: x\nmirrors: [S36]\ntags: [smok]\npolicy: {stream-time: {grace: 1}}\ntrace: [event: 1]\n"
    (tmp_path / "a.yaml").write_text(text)
    assert [problem.message for problem in load([tmp_path]).problems] == [
        "`links` is missing for strength `documented`: add `links` that document it, or write `strength: observed`",
        "unknown mirror 'S36': not in statements.yaml",
        "unknown tag 'smok': did you mean 'smoke'?",
    ]
