"""A JAVA_HOME that passes over the modules its JDK lacks."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.environments import java_home
from tests.support import environments as fakes


def test_only_the_argument_for_the_missing_module_is_passed_over(tmp_path: Path) -> None:
    jdk = tmp_path / "a jdk"
    (jdk / "lib").mkdir(parents=True)
    fakes.script(jdk / "bin" / "java", 'for argument do echo "<$argument>"; done')
    fakes.script(jdk / "bin" / "jps", "echo jps")
    home = tmp_path / "home"
    java_home.make(home, jdk, ["jdk.incubator.vector"])
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "-Dx=$y", "", "--add-modules=java.sql", "it's"]
    said = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["<-cp>", "<a b:*>", "<-Dx=$y>", "<>", "<--add-modules=java.sql>", "<it's>"]
    assert (home / "lib").resolve() == jdk / "lib"
    assert subprocess.run([home / "bin" / "jps"], capture_output=True, text=True, check=True).stdout == "jps\n"
