"""The text of each rule is what the model executes."""

import ast

import pytest

from conformance.model.catalogue import RULE_FUNCTIONS, catalogue
from conformance.model.source_text import readers, value_text

TRIED = ((10_000_000, 10_000), (10_000_001, 10_000), (9, 2), (None, 1))
"""Arguments, of which a function takes one or two."""


def results(function):
    found = []
    for one, other in TRIED:
        for arguments in ((one, other), (one,), ((3, 5),), ([3, 5],)):
            try:
                found.append(function(*arguments))
            except Exception as error:
                found.append(type(error))
    return found


@pytest.mark.parametrize("rule", catalogue())
def test_the_model_reads_every_rule_and_the_text_is_python(rule):
    found = readers(rule)
    assert found
    for one in found:
        assert rule in one.text
        ast.parse(one.text)
        assert len(one.text.splitlines()) <= 40


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, values in RULE_FUNCTIONS.items() for name in values])
def test_the_text_of_a_value_computes_what_the_model_computes(rule, name):
    text = value_text(rule, name)
    assert text is not None
    if text.startswith("def "):
        scope = {}
        exec(text, scope)
        written = scope[ast.parse(text).body[0].name]
    else:
        written = eval(text)
    value = RULE_FUNCTIONS[rule][name]
    if callable(value):
        assert results(written) == results(value)
    else:
        assert written == value


def test_data_has_no_text():
    assert value_text("late_watermark", "own batch") is None


def test_the_place_that_reads_a_rule_is_named():
    (one,) = readers("late_watermark")
    assert (one.module, one.function) == ("conformance/model/query.py", "_execute")
    assert one.text == 'own = same or rules.late_watermark == "own batch"'


def test_what_is_no_rule_is_read_nowhere():
    assert readers("late_watermar") == ()
