"""Passes pip's package index settings to uv, which does not read them."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
}
# uv's own variables with their older names: if one is set, pip's setting is not needed.
_ALSO = {
    "UV_DEFAULT_INDEX": ("UV_INDEX_URL",),
    "UV_INDEX": ("UV_EXTRA_INDEX_URL",),
}
_SECTIONS = ("global", "install")


def for_uv(environ: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for what pip's variables and files tell pip; those that are already set for uv are left out."""
    configured = settings(environ)
    variables: dict[str, str] = {}
    for setting, variable in _PIP_TO_UV.items():
        value = configured.get(setting, "").strip()
        if not value or any(environ.get(name) for name in (variable, *_ALSO.get(variable, ()))):
            continue
        if setting == "find-links":
            # pip ignores a missing folder, uv fails.
            value = ",".join(place for place in value.split() if "://" in place or _exists(place))
        elif setting == "no-index":
            value = "1" if value.lower() in {"1", "true", "yes", "on"} else ""
        else:
            value = " ".join(value.split())
        if value:
            variables[variable] = value
    return variables


def _exists(place: str) -> bool:
    """Whether a folder exists; a relative one would be of the checkout."""
    folder = Path(place).expanduser()
    return folder.is_absolute() and folder.exists()


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's settings for package sources, from its variables and files, under the names that its files use."""
    found: dict[str, str] = {}
    for path in _files(environ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in _SECTIONS:
            if parser.has_section(section):
                found |= {name.replace("_", "-"): value for name, value in parser.items(section) if value}
    for setting in _PIP_TO_UV:
        if value := environ.get("PIP_" + setting.upper().replace("-", "_")):
            found[setting] = value
    return found


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    """pip's configuration files, lowest priority first."""
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return
    yield Path("/etc/pip.conf")
    for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep):
        yield Path(folder, "pip", "pip.conf")
    if home := environ.get("HOME"):
        yield Path(home, ".pip", "pip.conf")
        yield Path(home, "Library", "Application Support", "pip", "pip.conf")
    if config := environ.get("XDG_CONFIG_HOME") or (home and f"{home}/.config"):
        yield Path(config, "pip", "pip.conf")
    if appdata := environ.get("APPDATA"):
        yield Path(appdata, "pip", "pip.ini")
    yield Path(sys.prefix, "pip.conf")
    if chosen:
        yield Path(chosen)
