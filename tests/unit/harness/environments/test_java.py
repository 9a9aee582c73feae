"""Which Java serves, and what is said where none does."""

import subprocess
from pathlib import Path

import pytest

from harness.environments import java as javas
from harness.environments import provision
from harness.environments.java import BadJavaOptions, NoSuchJava
from harness.errors import HarnessError
from harness.targets.targets import JavaRequirement, Targets
from tests.support import environments as fakes

SPARK_3 = JavaRequirement(majors=(8, 11, 17))
SPARK_4 = JavaRequirement(majors=(17, 21), modules=("jdk.incubator.vector",))


@pytest.mark.parametrize(
    ("version", "major"), [("1.8.0_392", 8), ("11.0.13", 11), ("17", 17), ("21.0.8", 21), ("25-ea", 25)]
)
def test_the_major_version(version: str, major: int) -> None:
    assert javas.Java(Path("/jdk"), version, frozenset()).major == major


def test_java_home_comes_before_path(bare: dict[str, str], tmp_path: Path) -> None:
    fakes.java(tmp_path / "path-jdk", "11.0.1", "java.base")
    (tmp_path / "path" / "java").symlink_to(tmp_path / "path-jdk" / "bin" / "java")
    home = fakes.java(tmp_path / "jdk", "17.0.1", "java.base")
    assert javas.find(SPARK_3, bare | {"JAVA_HOME": str(home)}).version == "17.0.1"
    assert javas.find(SPARK_3, bare).version == "11.0.1"


def test_a_java_that_does_not_serve_is_passed_over(bare: dict[str, str], tmp_path: Path) -> None:
    fakes.java(tmp_path / "path-jdk", "21.0.8", "java.base", "jdk.incubator.vector")
    (tmp_path / "path" / "java").symlink_to(tmp_path / "path-jdk" / "bin" / "java")
    found = javas.find(SPARK_4, bare | {"JAVA_HOME": str(fakes.java(tmp_path / "jdk", "11.0.1", "java.base"))})
    assert found.home == tmp_path / "path-jdk"


def test_a_java_without_memory_says_so_and_no_other_is_installed(bare: dict[str, str], tmp_path: Path) -> None:
    binary = fakes.java(tmp_path / "jdk", "17.0.1", "java.base") / "bin" / "java"
    binary.write_text("#!/bin/sh\necho Could not allocate compressed class space: 1073741824 bytes; echo bye; exit 1\n")
    with pytest.raises(HarnessError, match=r"Could not allocate compressed class .* \(see `ulimit -a`\)") as caught:
        javas.find(SPARK_3, bare | {"JAVA_HOME": str(tmp_path / "jdk")})
    assert not isinstance(caught.value, javas.NoSuchJava)


def test_java_8_knows_no_modules_and_serves(bare: dict[str, str], tmp_path: Path) -> None:
    found = javas.find(SPARK_3, bare | {"JAVA_HOME": str(fakes.java(tmp_path / "jdk", "1.8.0_392"))})
    assert found.major == 8


def test_usual_places(bare: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.java(tmp_path / "home" / ".sdkman" / "candidates" / "java" / "17", "17.0.1", "java.base")
    monkeypatch.setattr(javas, "_INSTALLED_UNDER", ("~/.sdkman/candidates/java/*",))
    assert javas.find(SPARK_3, bare).version == "17.0.1"


@pytest.mark.parametrize("name", ["JAVA_HOME_8", "JAVA_HOME_8_X64", "JAVA8_HOME"])
def test_a_variable_may_name_the_home_of_one_major_version(name: str, bare: dict[str, str], tmp_path: Path) -> None:
    eight, eleven = (fakes.java(tmp_path / v, v, *m) for v, m in (("1.8.0_504", ()), ("11.0.1", ("java.base",))))
    environ = bare | {name: str(eight), "JAVA_HOME_11": str(eleven), "JAVA_HOME_17": ""}
    assert javas.find(JavaRequirement(majors=(8,)), environ).home == eight
    # Of several that serve the newest.
    assert javas.find(SPARK_3, environ).home == eleven
    with pytest.raises(NoSuchJava) as caught:
        javas.find(JavaRequirement(majors=(21,)), environ)
    found = str(caught.value).splitlines()[1:-1]
    assert found == [f"  JAVA_HOME_11={eleven} is Java 11.0.1", f"  {name}={eight} is Java 1.8.0_504"]
    assert "point JAVA_HOME or JAVA_HOME_21 at it" in str(caught.value)


def test_where_none_serves_each_place_says_why(
    bare: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(javas, "_INSTALLED_UNDER", (f"{tmp_path}/jvm/*",))
    fakes.java(tmp_path / "jvm" / "small", "17.0.9", "java.base")
    fakes.script(tmp_path / "jvm" / "stub" / "bin" / "java", "echo No Java runtime present; exit 1")
    fakes.script(tmp_path / "jvm" / "talker" / "bin" / "java", "echo hello")
    fakes.java(tmp_path / "jdk-11", "11.0.1", "java.base")
    (tmp_path / "path" / "java").symlink_to(tmp_path / "jdk-11" / "bin" / "java")
    with pytest.raises(NoSuchJava) as caught:
        javas.find(SPARK_4, bare | {"JAVA_HOME": str(tmp_path / "gone")})
    assert str(caught.value).splitlines()[1:-1] == [
        f"  JAVA_HOME={tmp_path / 'gone'} has no {tmp_path / 'gone' / 'bin' / 'java'}",
        f"  {tmp_path / 'path' / 'java'} is Java 11.0.1",
        f"  {tmp_path / 'jvm' / 'small'} is Java 17.0.9 without the module jdk.incubator.vector",
        f"  {tmp_path / 'jvm' / 'stub'} fails with exit code 1: No Java runtime present",
        f"  {tmp_path / 'jvm' / 'talker'} does not answer like a Java: hello",
    ]
    assert str(caught.value).startswith("Java 17 or 21 with the module jdk.incubator.vector is needed.")
    assert "point JAVA_HOME or JAVA_HOME_21 at it" in str(caught.value)


def test_a_machine_without_any(bare: dict[str, str]) -> None:
    with pytest.raises(NoSuchJava, match="\n  no Java\n"):
        javas.find(SPARK_3, bare)


def test_a_java_is_asked_once(bare: dict[str, str], tmp_path: Path) -> None:
    home = fakes.java(tmp_path / "jdk", "17.0.1", "java.base")
    environ = bare | {"JAVA_HOME": str(home)}
    first = javas.find(SPARK_3, environ)
    fakes.script(home / "bin" / "java", "exit 1")
    assert javas.find(SPARK_3, environ) == first


def test_only_the_argument_for_the_missing_module_is_passed_over(tmp_path: Path) -> None:
    jdk = tmp_path / "a jdk"
    (jdk / "lib").mkdir(parents=True)
    fakes.script(jdk / "bin" / "java", 'for argument do echo "<$argument>"; done')
    fakes.script(jdk / "bin" / "jps", "echo jps")
    home = tmp_path / "home"
    javas.wrap(home, jdk, ["jdk.incubator.vector"])
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "-Dx=$y", "", "--add-modules=java.sql", "it's"]
    said = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["<-cp>", "<a b:*>", "<-Dx=$y>", "<>", "<--add-modules=java.sql>", "<it's>"]
    assert (home / "lib").resolve() == jdk / "lib"
    assert subprocess.run([home / "bin" / "jps"], capture_output=True, text=True, check=True).stdout == "jps\n"


class TestOptionsOfTheEnvironment:
    @pytest.fixture
    def strict(self, tmp_path: Path) -> Path:
        """A JDK that refuses options, as every Java refuses those it does not know."""
        home = fakes.java(tmp_path / "jdk", "17.0.1", "java.base")
        script = home / "bin" / "java"
        checked = 'if [ -n "$JAVA_TOOL_OPTIONS" ]; then echo "Unrecognized option: $JAVA_TOOL_OPTIONS"; exit 1; fi'
        fakes.script(script, checked + "\n" + script.read_text().partition("\n")[2])
        return home

    def test_a_java_that_they_keep_from_starting_is_still_a_java(
        self, bare: dict[str, str], strict: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        environ = bare | {"JAVA_HOME": str(strict)}
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xbad")
        with pytest.raises(BadJavaOptions) as found:
            javas.find(SPARK_3, environ)
        assert found.value.exit_code == 2
        assert "no Java starts with the options in JAVA_TOOL_OPTIONS: fails with exit code 1: Unrec" in str(found.value)
        assert "\n" not in str(found.value)
        monkeypatch.delenv("JAVA_TOOL_OPTIONS")
        assert javas.find(SPARK_3, environ).version == "17.0.1"

    def test_nothing_is_downloaded(self, bare: dict[str, str], strict: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {**bare, "JAVA_HOME": str(strict), "JAVA_TOOL_OPTIONS": "-Xbad"}.items():
            monkeypatch.setenv(name, value)
        for target in Targets.load().entries:
            with pytest.raises(BadJavaOptions):
                provision.obstacle(target)
