"""How the driver collects a micro-batch. The JVM's classes are as py4j shows them, as far as they are asked for."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

from harness.driver.collecting import collect, collect_in_the_execution

VALUE = ["java.lang.Object", "org.apache.spark.sql.types.DataType"]


class Conversion:
    """Spark's ``EvaluatePython`` with parameters of these types."""

    _fqn = "org.apache.spark.sql.execution.python.EvaluatePython"

    def __init__(self, types):
        self.types = types

    def registerPicklers(self):  # noqa: N802 — as Spark names it
        self.registered = True

    def toJava(self, row, schema, *more):  # noqa: N802 — as Spark names it
        assert self.registered
        assert schema == "schema"
        assert len(more) == len(self.types) - 2
        return tuple(row)


class JavaList(list):
    add = list.append


@pytest.fixture
def spark_with():
    def spark(types):
        conversion = Conversion(types)
        method = SimpleNamespace(
            getName=lambda: "toJava",
            getParameterTypes=lambda: [SimpleNamespace(getName=lambda name=name: name) for name in types],
        )
        java = SimpleNamespace(
            lang=SimpleNamespace(Class=SimpleNamespace(forName=lambda _: SimpleNamespace(getMethods=lambda: [method]))),
            util=SimpleNamespace(ArrayList=JavaList),
        )
        pickler = SimpleNamespace(
            Pickler=lambda: SimpleNamespace(dumps=lambda rows: bytearray(pickle.dumps(list(rows))))
        )
        python = SimpleNamespace(EvaluatePython=conversion)
        jvm = SimpleNamespace(
            java=java,
            net=SimpleNamespace(razorvine=SimpleNamespace(pickle=pickler)),
            scala=SimpleNamespace(Option=SimpleNamespace(empty=lambda: "none")),
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    spark=SimpleNamespace(sql=SimpleNamespace(execution=SimpleNamespace(python=python)))
                )
            ),
        )
        return SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm))

    return spark


def frame_of(rows):
    """A frame that Spark must not plan again."""
    plan = SimpleNamespace(executeCollect=lambda: rows)
    execution = SimpleNamespace(sparkPlan=lambda: plan)
    return SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda: execution, schema=lambda: "schema"))


@pytest.mark.parametrize("more", [[], ["boolean"], ["boolean", "scala.Option"]])
def test_rows_are_those_of_the_plan_as_spark_converts_them(spark_with, more):
    rows_of = collect_in_the_execution(spark_with([*VALUE, *more]))
    assert rows_of(frame_of([["a", 1], ["b", None]])) == [("a", 1), ("b", None)]
    assert rows_of(frame_of([])) == []


@pytest.mark.parametrize("types", [[*VALUE, "scala.Option"], [*VALUE, "boolean", "scala.Option", "int"], []])
def test_a_spark_that_converts_otherwise_is_asked_as_users_ask_it(spark_with, types):
    assert collect_in_the_execution(spark_with(types)) is collect
