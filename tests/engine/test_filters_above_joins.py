"""Filters that accept nulls, and others that do not, above every kind of join: the model predicts what a real Spark does, or nothing.

``CONFORMANCE_SEED=17 pytest tests/engine/test_filters_above_joins.py`` draws other queries, and ``CONFORMANCE_CASES`` says how many.
"""

import json
import os
import random
from typing import get_args

from conformance.core.operations import JoinType
from conformance.judging.comparison import divergence
from conformance.language import case_from
from conformance.model.errors import Unpredictable
from conformance.oracle.prediction import predict
from reports.results.reading import Results
from tests.engine.typed import conformance
from tests.support.effort import number

SEED = os.environ.get("CONFORMANCE_SEED") or "5"
CASES = int(os.environ.get("CONFORMANCE_CASES") or number(10, 200))
CONDITIONS = (
    *("{a} > 1", "{a} IS NULL", "{a} IS NOT NULL", "{a} IN (1, 3)", "NOT ({a} = 1)", "{a} <=> 2", "{a} <=> NULL"),
    *("coalesce({a}, 0) < 2", "coalesce({a}, 5) > 2", "CASE WHEN {a} > 1 THEN false ELSE true END", "{a} + 1 > 2"),
    *("if({a} IS NULL, true, {a} = 2)", "({a} > 1) IS NULL", "NOT ({a} <=> 2)", "abs({a}) = 2", "{a} BETWEEN 1 AND 2"),
)
OF_BOTH = (
    "{a} > {b}",
    "{a} <=> {b}",
    "coalesce({a}, {b}) > 1",
    "{a} = 1 OR {b} IS NULL",
    "NOT coalesce({a} = {b}, false)",
)
SIDES = {"a": ("at", "k", "n"), "b": ("bt", "j", "m")}
ON = ("at = bt", "k = j AND at = bt", "k = j AND at BETWEEN bt - INTERVAL 1 MINUTE AND bt + INTERVAL 1 MINUTE")


def condition(draw, columns):
    """One, or two in AND or OR, of one column or of both sides."""
    pattern = draw.choice((*CONDITIONS, *OF_BOTH) if len(columns) > 2 else CONDITIONS)
    text = pattern.format(**dict(zip("ab", draw.sample(columns, 2), strict=True)))
    joined = draw.choice(("", "", "AND", "OR"))
    return f"({text}) {joined} ({condition(draw, columns)})" if joined else text


def rows(draw, minute):
    values = (1, 2, 3, None)
    return [
        [f"12:{draw.choice((minute, minute + 1)):02}", draw.choice(values[1:]), draw.choice(values)] for _ in range(4)
    ]


def drawn(draw, how):
    sides = [
        [{"from": stream}, {"withWatermark": [times[0], "10 seconds"]}]
        + [{"where": condition(draw, times[1:])}] * (draw.random() < 0.2)
        for stream, times in SIDES.items()
    ]
    columns = [name for stream in ("a",) if how == "leftSemi" for name in SIDES[stream][1:]] or ["k", "n", "j", "m"]
    on = draw.choice(ON) + (f" AND {condition(draw, ('n', 'm', 'k'))}" if draw.random() < 0.2 else "")
    return {
        "title": f"Filters above a join: {how}",
        "streams": {name: f"{time} TIMESTAMP, {key} INT, {value} INT" for name, (time, key, value) in SIDES.items()},
        "query": [
            *sides[0],
            {"join": sides[1], "on": on, "how": how},
            *[{"where": condition(draw, columns)} for _ in range(draw.choice((1, 1, 2)))],
        ],
        "steps": [
            {"add": {"a": rows(draw, 0), "b": rows(draw, 0)}},
            {"add": {draw.choice("ab"): rows(draw, 0)}},
            {"add": {"a": rows(draw, 30), "b": rows(draw, 30)}},
            {"add": {"a": rows(draw, 50), "b": rows(draw, 50)}},
        ],
    }


def test_the_model_predicts_what_spark_does_or_nothing(tmp_path, capsys):
    draw, version = random.Random(SEED), os.environ.get("CONFORMANCE_SPARK") or "3.5"
    kinds = get_args(JoinType)
    written = {f"case-{at:03}": drawn(draw, kinds[at % len(kinds)]) for at in range(CASES)}
    for name, case in written.items():
        (tmp_path / f"{name}.yaml").write_text(json.dumps(case), encoding="utf-8")
    done = conformance(tmp_path, "run", ".", "--spark", version, "--jobs", "1", "-o", "out.jsonl")
    results = Results.read(tmp_path / "out.jsonl")
    answered = [cell for cell in results.cells if cell.observation is not None]
    spark = results.header.targets[0].version
    assert spark is not None
    assert len(answered) == CASES, done.stdout + done.stderr
    unknown, wrong = [], []
    for cell in answered:
        case = case_from(written[cell.case], cell.case)
        try:
            predicted = predict(case, spark).observation
        except Unpredictable as reason:
            unknown.append(f"{case.id}: {reason}")
            continue
        if parting := divergence(predicted, cell.observation, error_classes=False):
            wrong.append(f"{parting}\n{json.dumps(written[cell.case], indent=1)}")
    with capsys.disabled():
        print(f"\n{CASES} queries, {len(unknown)} not predicted, {len(wrong)} predicted wrongly")
    assert not wrong, "\n".join(wrong)
    assert len(unknown) < CASES * 0.5
