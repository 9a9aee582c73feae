"""Remembers what py4j finds behind a Java name: pyspark asks for the same few classes again and again.

Each question is a round trip, and for a name that is not a class the JVM searches all jars.
"""

from __future__ import annotations

import functools
from typing import Any, Callable


def remember() -> None:
    """From now on, a package, a class or a static method that py4j has found is not looked up again.

    A JVM does not lose a class, and values of fields are not remembered. A simple name may be unknown, and so pass for a package, until
    its class is imported: of those, only names of packages are remembered.
    """
    from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

    for holder in (JVMView, JavaPackage, JavaClass):
        holder.__getattr__ = _remembering(holder.__getattr__, (JavaPackage, JavaClass, JavaMember), JavaPackage)


def _remembering(look_up: Callable[[Any, str], Any], kinds: Any, package: type) -> Callable[[Any, str], Any]:
    @functools.wraps(look_up)
    def attribute(self: Any, name: str) -> Any:
        found = look_up(self, name)
        if isinstance(found, kinds) and (not isinstance(found, package) or name.islower()):
            # Python asks `__getattr__` only for what is not here.
            self.__dict__[name] = found
        return found

    return attribute
