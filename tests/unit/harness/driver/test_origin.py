"""Whose exception it is, by the innermost frame outside of the standard library."""

import json

import pytest

from harness.driver.errors import (
    DriverError,
    MissingName,
    check_argument,
    method,
    own_failures_marked,
    raised_by_driver,
)
from harness.driver.jobs.jvm_methods import place
from harness.driver.request import CaseRequest


def of_module(name, text):
    """The names that a text defines, as if it stood in a module of this name."""
    package = name.rpartition(".")[0] or name
    found = {"__name__": name, "__package__": package}
    exec(compile(text, f"/somewhere/site-packages/{name.replace('.', '/')}.py", "exec"), found)
    return found


DRIVER = of_module(
    "harness.driver.dataframe",
    """
import json

def fails():
    return {}["agg"]

def parses():
    return json.loads("{")

def asks(function):
    return function()

def asks_until_it_fails(function):
    yield 1
    function()
""",
)
PYSPARK = of_module("pyspark.sql.dataframe", "def refuses():\n    raise ValueError('cannot resolve column x')\n")


def raised(function, *arguments):
    with pytest.raises((LookupError, TypeError, ValueError, ZeroDivisionError)) as caught:
        function(*arguments)
    return caught.value


def test_a_mistake_of_the_driver_is_its_own():
    assert raised_by_driver(raised(DRIVER["fails"]))
    assert raised_by_driver(raised(CaseRequest.parse, {}))
    assert raised_by_driver(raised(place, None))


def test_so_is_one_that_the_standard_library_notices():
    error = raised(DRIVER["parses"])
    assert isinstance(error, json.JSONDecodeError)
    assert raised_by_driver(error)


def test_what_pyspark_raises_is_sparks():
    assert not raised_by_driver(raised(DRIVER["asks"], PYSPARK["refuses"]))


def test_what_a_users_function_raises_is_not_the_drivers():
    assert not raised_by_driver(raised(DRIVER["asks"], of_module("my_job", "def totals():\n    1 / 0\n")["totals"]))


def test_an_exception_without_frames_comes_from_elsewhere():
    assert not raised_by_driver(ValueError("terminated with exception"))


def test_a_missing_method_is_what_the_release_lacks():
    with pytest.raises(MissingName) as caught:
        method(object(), "applyInPandasWithState")
    error = caught.value.error
    assert isinstance(error, AttributeError)
    assert str(error) == "'object' object has no attribute 'applyInPandasWithState'"
    assert not raised_by_driver(error)


def test_so_is_a_missing_argument():
    def trigger(*, processingTime=None, once=None):  # noqa: N803
        raise AssertionError("it is only asked about its arguments")

    check_argument(trigger, "once")
    with pytest.raises(MissingName) as caught:
        check_argument(trigger, "availableNow")
    assert isinstance(caught.value.error, TypeError)
    assert str(caught.value.error) == "got an unexpected keyword argument 'availableNow'"


@pytest.mark.parametrize("name", ["asks", "asks_until_it_fails"])
def test_a_state_function_says_that_the_mistake_is_its_own(name):
    def answer(function):
        found = own_failures_marked(DRIVER[name])(function)
        return list(found)

    with pytest.raises(DriverError, match="KeyError: 'agg'"):
        answer(DRIVER["fails"])
    with pytest.raises(ValueError, match="cannot resolve column x"):
        answer(PYSPARK["refuses"])
