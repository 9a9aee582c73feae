"""What py4j finds is asked for once. The classes are as py4j has them, as far as names go."""

import sys
from types import ModuleType

import pytest

from harness.driver.session import remember


class Named:
    def __init__(self, name, asked):
        self.name = name
        self.asked = asked


class JavaMember(Named):
    pass


class JavaClass(Named):
    def __getattr__(self, name):
        self.asked.append(f"{self.name}.{name}")
        return 42 if name.isupper() else JavaMember(name, self.asked)


class JavaPackage(Named):
    def __getattr__(self, name):
        self.asked.append(f"{self.name}.{name}")
        kind = JavaPackage if name.islower() else JavaClass
        return kind(f"{self.name}.{name}", self.asked)


class JVMView(Named):
    def __init__(self, asked):
        super().__init__("", asked)
        self.imported = set()

    def __getattr__(self, name):
        self.asked.append(name)
        if name == "missing":
            raise ValueError("missing does not exist in the JVM")
        return (JavaClass if name in self.imported else JavaPackage)(name, self.asked)


@pytest.fixture
def jvm(monkeypatch):
    module = ModuleType("py4j.java_gateway")
    for kind in (JVMView, JavaPackage, JavaClass, JavaMember):
        copy = type(kind.__name__, kind.__bases__, dict(vars(kind)))
        monkeypatch.setattr(sys.modules[__name__], kind.__name__, copy)
        setattr(module, kind.__name__, copy)
    monkeypatch.setitem(sys.modules, "py4j", ModuleType("py4j"))
    monkeypatch.setitem(sys.modules, "py4j.java_gateway", module)
    remember()
    view = module.JVMView.__new__(module.JVMView)
    view.name, view.asked, view.imported = "", [], {"functions"}
    return view


def test_packages_classes_and_methods_are_looked_up_once(jvm):
    first = jvm.org.apache.SparkSession.getActiveSession
    asked = ["org", "org.apache", "org.apache.SparkSession", "org.apache.SparkSession.getActiveSession"]
    assert jvm.asked == asked
    assert jvm.org.apache.SparkSession.getActiveSession is first
    assert jvm.functions is jvm.functions
    assert jvm.asked == [*asked, "functions"]


def test_the_value_of_a_field_is_asked_for_each_time(jvm):
    assert jvm.functions.MAX == jvm.functions.MAX == 42
    assert jvm.asked == ["functions", "functions.MAX", "functions.MAX"]


def test_a_class_may_be_imported_after_it_was_not_found(jvm):
    assert type(jvm.PythonUtils).__name__ == "JavaPackage"
    jvm.imported.add("PythonUtils")
    assert type(jvm.PythonUtils).__name__ == "JavaClass"


def test_a_failure_is_not_remembered(jvm):
    for _ in range(2):
        with pytest.raises(ValueError, match="does not exist"):
            _ = jvm.missing
    assert jvm.asked == ["missing", "missing"]
