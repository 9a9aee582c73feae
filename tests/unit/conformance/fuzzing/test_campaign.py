"""A campaign finds differences, knows the documented ones, counts the rest, and loses nothing."""

from dataclasses import replace

import pytest

from conformance.core.errors import WrongUsage
from conformance.core.versions import SparkVersion, StateStore
from conformance.fuzzing import comparison
from conformance.fuzzing.campaign import Campaign, CampaignListener, as_case, written_into
from conformance.fuzzing.comparison import ByTheModel, ModelOracle, OracleAnswer, cached_prediction
from conformance.fuzzing.coverage import Drawing, coverage_of
from conformance.judging.comparison import divergence
from conformance.judging.verdict import AS_THE_CASE_SAYS
from conformance.language import case_from, read_case
from conformance.model.catalogue import rules_of
from conformance.model.errors import ModelDefect, Unpredictable
from conformance.model.wrong_models import WRONG_MODELS
from conformance.oracle.prediction import predict, verdict_on
from conformance.suite.discovery import ID
from tests.support.each_other import ByEachOther
from tests.support.effort import number

V334, V344, V359, V430 = map(SparkVersion.parse, ("3.3.4", "3.4.4", "3.5.9", "4.3.0"))


AGGREGATING = ["windows", "chains", "joins"]
"""Families in which 3.3 and 3.4 differ soon."""


def wrong_oracle(name, called="a wrong model"):
    wrong = next(wrong for wrong in WRONG_MODELS if wrong.name == name)
    return ModelOracle(wrong.version, wrong.of(rules_of(wrong.version)), called)


def run_campaign(oracles, judge, cases, *, families=(), seed=3, listener=None):
    campaign = Campaign(oracles, judge, Drawing(families, seed), listener)
    return campaign, campaign.run(lambda: campaign.tally.cases >= cases)


def test_a_wrong_model_is_found_and_the_case_is_small():
    _, finds = run_campaign([wrong_oracle("a time equal to the watermark is not late")], ByTheModel(), 200)
    found = next(finds)
    assert (found.steps, found.rows) <= (2, 3)
    assert found.difference.other.oracle == "model-4.3.0"
    assert divergence(found.difference.one.observation, found.difference.other.observation)


def test_the_right_model_is_never_found():
    campaign, finds = run_campaign([ModelOracle(V359)], ByTheModel(), number(16, 200))
    assert [*finds] == []
    assert campaign.tally.cases >= number(16, 200)
    assert len(campaign.tally.rules) > 25


def test_versions_that_differ_as_the_model_predicts_are_counted_by_rule():
    campaign, finds = run_campaign(
        [ModelOracle(V334), ModelOracle(V344)], ByTheModel(alone=False), number(12, 100), families=AGGREGATING
    )
    assert [*finds] == []
    assert "late_watermark" in {name for rules in campaign.tally.known for name, _ in rules}


DEDUPLICATED_BY_ITS_KEYS = {
    "title": "A deduplication by the keys of an aggregation",
    "strength": "observed",
    "streams": {"events": "event_time TIMESTAMP"},
    "query": [
        {"from": "events"},
        {"withWatermark": ["event_time", "1 hour"]},
        {"groupBy": ["event_time"], "agg": ["count(*) AS n"]},
        {"dropDuplicates": ["event_time"]},
    ],
    "steps": [{"add": {"events": [["12:00"]]}, "expect": {}}],
}


def test_the_model_knows_the_settings_of_an_oracle():
    """With RocksDB 4.3 fails over this one (SPARK-51955): that is right of one of them, and known of both."""
    rocksdb = ModelOracle(V430, called="with rocksdb", conf=StateStore.named("rocksdb").conf)
    oracles = {oracle.name: oracle for oracle in (ModelOracle(V430), rocksdb)}
    case = case_from(DEDUPLICATED_BY_ITS_KEYS, "one")
    answers = {name: oracle.answers([case])[0] for name, oracle in oracles.items()}
    judgement = ByTheModel().judge(case, answers, oracles)
    assert not judgement.differences
    assert judgement.known == ((("store of another operator", "SPARK-51955"),),)


def test_what_several_oracles_answer_alike_is_one_find():
    wrong = wrong_oracle("there is no delay")
    campaign, finds = run_campaign([wrong, replace(wrong, called="another")], ByTheModel(), 12)
    assert len([*finds]) == 1
    assert campaign.tally.again


@pytest.fixture(scope="module")
def changes():
    """What is found between two versions of which nothing is known beforehand."""
    _, finds = run_campaign([ModelOracle(V334), ModelOracle(V344)], ByEachOther(), number(12, 40), families=AGGREGATING)
    return [*finds]


def test_where_nothing_is_known_beforehand_a_change_is_found_once_by_its_rule(changes):
    rules = [found.difference.rules for found in changes]
    assert any("late_watermark" in dict(one) for one in rules)
    assert len(rules) == len({*rules})


def test_a_difference_between_engines_of_one_version_is_a_find():
    """Here one of them is the model, and the model knows that it is right."""
    wrong = replace(wrong_oracle("there is no delay", "other"), version=V359)
    oracles = [replace(ModelOracle(V359), called="one"), wrong]
    campaign, finds = run_campaign(oracles, ByTheModel(alone=False), 60)
    found = next(finds)
    assert {found.difference.one.oracle, found.difference.other.oracle} == {"one", "other"}
    assert not campaign.tally.known


def test_the_same_seed_goes_the_same_way():
    told = []
    for _ in range(2):
        campaign, finds = run_campaign(
            [wrong_oracle("no key is remembered")], ByTheModel(), number(6, 12), families=["deduplication"]
        )
        told.append(([found.written for found in finds], campaign.tally.cases, campaign.tally.rules))
    assert told[0] == told[1]
    assert told[0][0]


def test_an_unknown_family():
    with pytest.raises(WrongUsage, match="unknown family"):
        Drawing(["windwos"], 1)


class Strange:
    """An oracle that changes what the model answers."""

    name, version, conf, at_once = "strange", V359, {}, 4

    def __init__(self, change):
        self.asked = 0
        self.closed = 0
        self.change = change

    def answers(self, cases):
        found = []
        for case in cases:
            self.asked += 1
            found.append(self.change(self.asked, ModelOracle(V359).answers([case])[0]))
        return found

    def close(self):
        self.closed += 1


def shorter(answer):
    """It never comes to its last step."""
    if answer.observation is None:
        return answer
    return OracleAnswer(answer.observation.model_copy(update={"steps": answer.observation.steps[:-1]}))


def test_an_answer_that_does_not_repeat_is_not_a_find():
    once = Strange(lambda n, answer: shorter(answer) if n == 5 else answer)
    campaign, finds = run_campaign([once], ByTheModel(), 12)
    assert [*finds] == []
    assert campaign.tally.unsteady == 1


def test_an_oracle_without_an_answer_is_counted():
    campaign, finds = run_campaign([Strange(lambda n, _: OracleAnswer(None, "the engine died"))], ByTheModel(), 12)
    assert [*finds] == []
    assert campaign.tally.unanswered == {"strange": campaign.tally.cases}
    assert campaign.tally.last_unanswered == "the engine died"


def test_what_the_model_does_not_predict_is_counted(monkeypatch):
    def unknown(*_):
        raise Unpredictable("a construct")

    monkeypatch.setattr("conformance.fuzzing.comparison._cached", comparison._cached.__wrapped__)
    monkeypatch.setattr("conformance.oracle.prediction.CaseSimulation", unknown)
    campaign, finds = run_campaign([ModelOracle(V359)], ByTheModel(), 24, families=["state-functions"])
    assert [*finds] == []
    assert campaign.tally.not_predicted.total() + campaign.tally.unanswered.total() > 5


def test_a_model_that_fails_is_a_defect(monkeypatch):
    def broken(*_):
        raise TypeError("oh")

    monkeypatch.setattr("conformance.oracle.prediction.CaseSimulation", broken)
    case = case_from(
        {"title": "t", "streams": {"e": "t TIMESTAMP"}, "query": [{"from": "e"}], "steps": [{"idle": {}}]}, "x"
    )
    with pytest.raises(ModelDefect):
        cached_prediction(case, V359)


def test_an_interrupted_campaign_keeps_what_was_becoming_smaller():
    class Stopped(CampaignListener):
        smaller = 0

        def shrinking(self, written, tally):
            self.smaller += 1
            self.smallest = written
            if self.smaller == 2:
                raise KeyboardInterrupt

    oracle = Strange(lambda _, answer: shorter(answer))
    stopped = Stopped()
    campaign, finds = run_campaign([oracle], ByTheModel(), 100, listener=stopped)
    with pytest.raises(KeyboardInterrupt):
        for _ in finds:
            pass
    (found,) = campaign.tally.discrepancies
    assert not found.fully_shrunk
    assert found.written == stopped.smallest
    case_from(found.written, "kept")


# What is written.


def test_a_find_between_versions_is_a_case_that_both_conform_to(tmp_path, changes):
    found = next(one for one in changes if "late_watermark" in dict(one.difference.rules))
    file = written_into(tmp_path / "found", found, "conformance maintain fuzz --seed 3")
    text = file.read_text()
    case = read_case(file, file.stem)
    assert ID.fullmatch(file.stem)
    assert case.strength == "observed"
    for version in (V334, V344):
        assert verdict_on(case, predict(case, version)).status in AS_THE_CASE_SAYS
    assert case.differs_on(V334).link == "SPARK-40925"
    assert "Explained by the rule late_watermark (SPARK-40925)" in text
    assert "Find again: conformance maintain fuzz --seed 3" in text
    assert written_into(tmp_path / "found", found, "x").stem == f"{file.stem}-2"


def test_a_find_against_the_model_expects_what_the_engine_did(tmp_path):
    _, finds = run_campaign([wrong_oracle("a row is late by the start of its window")], ByTheModel(), 200)
    file = written_into(tmp_path, next(finds), "again")
    case = read_case(file, file.stem)
    assert verdict_on(case, predict(case, SparkVersion.parse("4.3.0"))).status == "violates"
    assert "conformance explain" in file.read_text()
    assert not case.differs


def test_a_find_of_which_one_fails_is_a_case():
    _, finds = run_campaign([ModelOracle(V334), ModelOracle(V359)], ByEachOther(), number(8, 16))
    cases = [case_from(as_case(found), "found") for found in finds]
    assert all(any(step.expect is not None for step in case.steps) for case in cases)
    assert any(step.expect is not None and step.expect.error is not None for case in cases for step in case.steps)


# What a case reaches.


CASE = {
    "title": "One window",
    "streams": {"events": "t TIMESTAMP"},
    "query": [
        {"from": "events"},
        {"withWatermark": ["t", "10 seconds"]},
        {"groupBy": ["window(t, '10 seconds')"], "agg": ["count(*) AS n"]},
    ],
    "steps": [
        {"add": {"events": [["12:00"]]}},
        {"add": {"events": [["12:01"], ["12:00"]]}},
        {"add": {"events": [["12:00"]]}},
    ],
}


def test_a_case_reaches_the_rules_it_is_decided_by():
    what = coverage_of(case_from(CASE, "x"), V359)
    assert {"is_over", "is_late", "node_watermark_ms", "append_emits"} <= what.rules
    assert not {"session_end_us", "within_expires_us", "join_state_goes"} & what.rules
    assert any(trait.startswith("is_late: True") for trait in what.traits)
    assert any(trait.startswith("is_over: False") for trait in what.traits)


def test_no_new_cases_are_asked_once_the_time_is_over():
    """A batch of an engine takes many seconds; what is not asked is neither counted nor missing."""
    slow = Strange(lambda _, answer: answer)
    campaign = Campaign([slow, ModelOracle(V359)], ByTheModel(), Drawing((), 3))
    assert [*campaign.run(lambda: slow.asked >= 7)] == []
    assert slow.asked == 2 * slow.at_once
    assert 1 <= campaign.tally.cases <= 8
    assert not campaign.tally.unanswered


def test_of_a_campaign_without_time_a_few_cases_are_asked():
    """An engine that starts after the time is over answers still: without an answer, no find would mean nothing."""
    slow = Strange(lambda _, answer: answer)
    campaign = Campaign([slow], ByTheModel(), Drawing((), 3))
    assert [*campaign.run(lambda: slow.asked > 0)] == []
    assert (slow.asked, campaign.tally.cases) == (2 * slow.at_once, 1)
