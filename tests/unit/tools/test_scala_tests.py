"""What counts as a test in Scala source, and what its name is."""

import pytest

from tools.scala_tests import ScalaTest, scala_tests


def found(source: str) -> list[tuple[str, str]]:
    return [(test.suite, test.name) for test in scala_tests(source)]


def names(body: str) -> list[str]:
    return [test.name for test in scala_tests(f"class ASuite extends StreamTest {{\n{body}\n}}\n")]


def test_a_test_belongs_to_the_class_above_it() -> None:
    source = """
abstract class ABase extends StreamTest { test("one") { } }
@SlowSQLTest
class BSuite extends ABase { test("two") { } }
"""
    assert found(source) == [("ABase", "one"), ("BSuite", "two")]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('test("plain") { }', "plain"),
        ('test("over " +\n    "two lines") { }', "over two lines"),
        ('testQuietly("quiet") { }', "quiet"),
        ('test("tagged", SlowTest) { }', "tagged"),
        ('test("says \\"so\\"") { }', 'says "so"'),
        ('test("""raw""") { }', "raw"),
        ('assertNotSupportedInStreamingPlan(\n  "a plan",\n  plan)', "a plan"),
        ('test("a value, $x") { }', "a value, $x"),
        ('test(s"value $x") { }', "value $x"),
        ('test("value " + x) { }', "value $x"),
    ],
)
def test_the_name_is_the_string_it_is_given(body: str, name: str) -> None:
    assert names(body) == [name]


@pytest.mark.parametrize(
    "body",
    [
        "testStream(df)(AddData(input, 1))",
        'assert("a" == b)',
        "def testAll(name: String): Unit = run(name)",
        '// test("a comment") { }',
        '/* test("a comment") { } */',
        'val text = "test(\\"in a string\\") { }"',
        'suite.test("of another object") { }',
    ],
)
def test_calls_that_declare_no_test(body: str) -> None:
    assert names(body) == []


def test_a_loop_over_a_literal_sequence_is_written_out() -> None:
    assert names('for (mode <- Seq(Append, Update)) { test(s"in $mode") { } }') == ["in Append", "in Update"]
    looped = 'Seq(("left_outer", 1), ("right_outer", 2)).foreach { case (kind: String, rows) =>\n'
    assert names(looped + 'test(s"${kind.replace("_", " ")} join") { } }') == ["left outer join", "right outer join"]
    nested = 'Seq(Inner, LeftOuter).foreach { one => Seq(A, B).foreach { two => test(s"$two after $one") { } } }'
    assert names(nested) == ["A after Inner", "B after Inner", "A after LeftOuter", "B after LeftOuter"]


def test_a_name_outside_the_loop_is_not_written_out() -> None:
    assert names('Seq(A, B).foreach { x => run(x) }\ntest(s"of $x") { }') == ["of $x"]


def test_a_helper_of_the_file_makes_several_tests_of_a_name() -> None:
    helper = """
def testInBoth(name: String)(body: OutputMode => Any): Unit = {
  Seq(Append, Update).foreach { mode => test(s"$name - $mode")(body(mode)) }
}
testInBoth("a join") { mode => run(mode) }
"""
    assert names(helper) == ["a join - Append", "a join - Update"]


def test_a_helper_whose_names_vary_otherwise_makes_one() -> None:
    helper = (
        'def testAll(name: String)(f: => Any) { for (v <- versions) { test(s"$name - v$v")(f) } }\ntestAll("x") { }'
    )
    assert names(helper) == ["x"]


def test_the_text_of_a_test_is_its_whole_call() -> None:
    source = 'class ASuite {\n  test("a") { f("}"); g { } } // end\n  test("b") { }\n}\n'
    assert [test.text for test in scala_tests(source)] == ['test("a") { f("}"); g { } }', 'test("b") { }']
    assert next(scala_tests(source)) == ScalaTest("ASuite", "a", 'test("a") { f("}"); g { } }')
