"""Every term of the glossary in docs/design/glossary.md names something that exists, and its old names are gone."""

import ast
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_TERMS = 45
IDENTIFIER = {ast.Name: "id", ast.FunctionDef: "name", ast.ClassDef: "name", ast.arg: "arg", ast.Attribute: "attr"}
"""Where a node of the syntax tree has its identifier."""


def terms():
    """Term, what carries it in the code, and the words that are not used for it."""
    table = (ROOT / "docs" / "design" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([\w.]+)` \|([^|]*)\|$", table, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^\|", table, re.MULTILINE)) - 2, "a row of the glossary has another form"
    return [
        (term, where, [word for word in re.split(r"[,\s]+", not_used) if word]) for term, _, where, not_used in rows
    ]


def words_of_identifiers():
    """Word of an identifier, or two words in a row joined by ``_`` → one place where the product uses it."""
    found = {}
    for root in ("conformance", "harness", "reports"):
        for path in (ROOT / root).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {path.stem}
            for node in ast.walk(tree):
                attribute = IDENTIFIER.get(type(node))
                if attribute is not None:
                    names.add(getattr(node, attribute))
            for name in names:
                words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
                for word in (*words, *map("_".join, pairwise(words))):
                    found.setdefault(word, f"{path.relative_to(ROOT)}: {name}")
    return found


def test_the_glossary_is_short_enough_to_read():
    assert 20 < len(terms()) <= MOST_TERMS


def test_a_term_names_something_that_exists():
    for term, where, _ in terms():
        parts = where.split(".")
        for length in range(len(parts), 0, -1):
            try:
                found = import_module(".".join(parts[:length]))
            except ModuleNotFoundError:
                continue
            break
        for name in parts[length:]:
            fields = getattr(found, "model_fields", {}) or getattr(found, "__dataclass_fields__", {})
            assert hasattr(found, name) or name in fields, f"{term}: there is no {where}"
            found = getattr(found, name, None)


def test_one_word_for_one_thing():
    used = words_of_identifiers()
    assert len(used) > 500
    wrong = {word: used[word] for _, _, words in terms() for word in words if word in used}
    assert wrong == {}
