"""Modules that a platform gives a program, and no package of the engine has."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Dict, Iterator, List, Tuple


def made(name: str, names: Dict[str, Any]) -> ModuleType:
    """Return a module with these names."""
    module = ModuleType(name)
    vars(module).update(names)
    return module


@contextmanager
def importable(*modules: ModuleType) -> Iterator[None]:
    """Let the modules be imported, each also as an attribute of its package, and put back what stood in their places."""
    changed: List[Tuple[Dict[str, Any], str, Any]] = []

    def put(names: Dict[str, Any], name: str, module: ModuleType) -> None:
        changed.append((names, name, names.get(name)))
        names[name] = module

    for module in modules:
        package, _, last = module.__name__.rpartition(".")
        put(sys.modules, module.__name__, module)
        if package in sys.modules:
            put(vars(sys.modules[package]), last, module)
    try:
        yield
    finally:
        for names, name, before in reversed(changed):
            names.pop(name, None)
            if before is not None:
                names[name] = before
