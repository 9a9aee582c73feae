"""Pages of a report as a browser with scripts has them."""

import json
import re
from pathlib import Path

_SHARED = re.compile(r'<script src="(?P<file>[./]*shared\.js)" defer></script>')
_MARK = re.compile("<!--([a-z2-7]{8})-->")


def whole_page(file: Path) -> str:
    """Return the text of a page with the parts that it shares with others; a part that is in no file fails."""
    text = file.read_text(encoding="utf-8")
    if (source := _SHARED.search(text)) is not None:
        script = (file.parent / source["file"]).read_text(encoding="utf-8")
        parts = json.loads(script.removeprefix("globalThis.shared = ").removesuffix(";\n"))
        while _MARK.search(text):
            text = _MARK.sub(lambda mark: parts[mark[1]], text)
    return text
