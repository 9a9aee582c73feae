"""An HDFS on this machine: a name node and a data node in one process, as Hadoop tests itself with."""

import os
import subprocess
from pathlib import Path

from tests.engine.maven import jar
from tests.engine.processes import Processes

JARS = (
    "org.apache.hadoop:hadoop-client-minicluster:3.3.4",
    "junit:junit:4.13.2",
    "org.hamcrest:hamcrest-core:1.3",
)


class Hdfs:
    """``close`` ends it. ``environment``: of a target, whose Hadoop client and logging it shares."""

    def __init__(self, environment, folder: Path) -> None:
        variables = environment.environ()
        self._processes = Processes(folder, variables)
        java = Path(variables["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in variables else "java"
        (folder / "core-site.xml").write_text("<configuration/>")  # the shell asks for one
        classpath = [folder, *map(jar, JARS), environment.spark_home / "jars" / "*"]
        port = self._processes.start(
            "hdfs",
            [
                *(str(java), "-Xmx512m", "-Dorg.apache.logging.log4j.level=INFO"),
                *("-cp", os.pathsep.join(map(str, classpath))),
                *("org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1"),
            ],
            until=r"namenode on port (\d+)",
        )
        self.url = f"hdfs://localhost:{port}/tests"
        self._shell = [str(java), "-cp", os.pathsep.join(map(str, classpath)), "org.apache.hadoop.fs.FsShell"]

    def names(self) -> list[str]:
        """What lies in the directory that ``url`` names."""
        listed = subprocess.run([*self._shell, "-ls", "-C", self.url], capture_output=True, text=True, check=True)
        return listed.stdout.split()

    def close(self) -> None:
        self._processes.close()
