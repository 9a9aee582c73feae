"""The order of the JVM's class path: Spark's jars that it loads most from come first.

A JVM searches its jars one after another until it finds a class. Spark's own order is that of its directory's
entries, which no file system promises. All jars stay behind these, so nothing is missing.
"""

from __future__ import annotations

import os
import re
from typing import Dict, List

CLASS_PATH = "spark.driver.extraClassPath"
FIRST_JARS = "spark.conformance.firstJars"


def order_class_path(settings: Dict[str, str], home: str) -> None:
    """Let the class path begin with the jars that the settings name, without versions and in their order.

    ``settings``: of the JVM; somebody's own beginning of the class path stays as it is. ``home``: the directory of this Spark.
    """
    names = settings.pop(FIRST_JARS, "").split()
    if not names or CLASS_PATH in settings:
        return
    jars = os.path.join(home, "jars")
    found = sorted(os.listdir(jars)) if os.path.isdir(jars) else []
    first: List[str] = []
    for name in names:
        # spark-sql: spark-sql_2.12-3.5.9.jar
        ours = re.compile(re.escape(name) + r"(_2\.\d+)?-\d.*\.jar")
        first += [os.path.join(jars, jar) for jar in found if ours.fullmatch(jar)]
    if first:
        settings[CLASS_PATH] = os.pathsep.join(first)
