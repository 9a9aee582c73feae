"""Wording of messages, and text made safe to print: of strangers, and with secrets of the user's options taken out."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from unicodedata import category
from urllib.parse import unquote


def counted(number: int, noun: str) -> str:
    """Return ``1 case``, ``2,000 cases``: for nouns whose plural adds an *s*, or *es* to *ch*, or turns *cy* into *cies*."""
    many = f"{noun[:-1]}ies" if noun.endswith("cy") else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"


def duration(ms: int, most: int = 2) -> str:
    """Show a length of time in its largest units, at most so many: ``25 min``, ``1 h 30 min``."""
    parts = list[str]()
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")):
        count, ms = divmod(ms, size)
        parts += [f"{count:,} {unit}"] if count else []
    return " ".join(parts[:most]) or "0 s"


def shortened(text: str, most: int) -> str:
    """Return at most so many characters of a text, the last one ``…`` if it goes on."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


SHOWN = 30
"""How many allowed names a message lists."""
MOST_COMPARED = 2_000
"""How many names are compared with a word at most, which is slow."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, ignoring case; None if none is similar."""
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in islice(known, MOST_COMPARED)}
    return next((by_lower[near] for near in get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)), None)


def similar(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that a word is a slip of; None if it may be meant as it stands."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.lower(), list(known), n=1, cutoff=0.8)), None)


def unknown(
    what: str, word: str, known: Iterable[str], synonyms: Mapping[str, str] | None = None, *, where: str = ""
) -> str:
    """Say ``unknown key 'titel': did you mean 'title'?``, or the allowed names if none is similar; ``where`` follows the word.

    ``synonyms`` are words that are not allowed, each with the allowed word that it means."""
    names = list(known)
    others = synonyms or {}
    message = f"unknown {what} {word!r}{where}"
    if (near := nearest(word, [*names, *others])) is not None:
        return f"{message}: did you mean {others.get(near, near)!r}?"
    if not names:
        return f"{message}: none is defined"
    more = f", … ({len(names)} in total)" if len(names) > SHOWN else ""
    return f"{message}: expected one of {', '.join(names[:SHOWN])}{more}"


def ticket(link: str | None, introduced_by: str | None, *, bug: bool) -> str:
    """Return where a change is documented, or what introduced a bug without a ticket, after a blank: ``" (SPARK-1)"``; empty if nowhere."""
    if link:
        return f" ({link})"
    if not bug:
        return ""
    return f" (no ticket, introduced by {introduced_by})" if introduced_by else " (no ticket)"


_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that act on a terminal instead of being seen: controls, marks of direction, halves of pairs, line ends."""


def printable(text: str, keep: str = "") -> str:
    r"""Return the text with each character that acts on a terminal written as its number, ``\x1b``, except those to ``keep``."""
    if text.isprintable():
        return text
    acts = {char for char in set(text).difference(keep) if category(char) in _ESCAPED}
    return "".join(char.encode("unicode_escape").decode() if char in acts else char for char in text)


def printable_json(document: str) -> str:
    r"""Return a JSON document with the same characters as JSON escapes, which mean the same: ``\u202e``."""
    acts = {char for char in set(document).difference("\n") if category(char) in _ESCAPED}
    return "".join(json.dumps(char)[1:-1] if char in acts else char for char in document)


_COMMAND = re.compile(r"(?:(?<=[\r\n])|\A)(?=[^\S\r\n]*::)")
_OLD_COMMAND = "##["


def without_commands(text: str) -> str:
    r"""Mark lines that GitHub would take for workflow commands by a ``\``, so that they are none.

    The runner reads every line of a log: one that begins with ``::``, or has ``##[`` anywhere, can set an error, mask text or stop
    commands (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
    """
    return _COMMAND.sub(r"\\", text).replace(_OLD_COMMAND, r"#\#[")


HIDDEN = "…"
"""What stands for a secret."""
_SHORTEST = 6

_SECRET_KEY = re.compile(r"secret|password|token|access[.]?key|account[.]?key|credential", re.IGNORECASE)
"""Spark's ``spark.redaction.regex`` (ConfigBuilder in core/…/internal/config/package.scala), and the keys of Azure's storage."""

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*"
_IN_AUTHORITY = re.compile(rf"(?P<scheme>\b{_SCHEME}://)(?P<user>[^\s/?#'\"@]*(?:@[^\s/?#'\"@]*)*)@")
_KEY = re.compile(r"[A-Za-z0-9_.-]+")
_PARAMETER = re.compile(r"(?P<key>[A-Za-z0-9_.-]{1,200})=(?P<value>[^\s;&'\"]+)")
_CONNECT = re.compile(r"(sc://[^\s;]*);\S*")


def is_secret(key: str, value: str = "") -> bool:
    """Return whether a Spark setting is a secret: its key or its value matches, as for Spark's own redaction.

    Paths of jars are none: Spark's connector for Kafka has ``token`` in its name, and a JVM knows no secrets when it starts."""
    if key == "spark.jars" and "@" not in value:
        return False
    return _SECRET_KEY.search(key) is not None or _SECRET_KEY.search(value) is not None


def redact(text: str) -> str:
    """Return the text without the credentials in URLs (``s3a://user:secret@bucket``) and the values of secret keys (``token=…``)."""
    text = _CONNECT.sub(rf"\1;{HIDDEN}", text)
    if "://" in text and "@" in text:
        text = _IN_AUTHORITY.sub(rf"\g<scheme>{HIDDEN}@", text)
    if "=" in text:
        text = _PARAMETER.sub(lambda match: f"{match['key']}={HIDDEN}" if is_secret(match["key"]) else match[0], text)
    return text


def redact_command(words: Iterable[str]) -> Iterator[str]:
    """Yield the words of a command line without secrets: a word is redacted as a whole if it assigns a secret key."""
    for word in words:
        option, assigns, setting = word.partition("=")
        # Both `--conf KEY=VALUE` and `--conf=KEY=VALUE`; a value may have spaces.
        key, again, value = setting.partition("=") if option.startswith("-") else (option, assigns, setting)
        if again and _KEY.fullmatch(key) and is_secret(key, value):
            yield f"{option}={key}={HIDDEN}" if option.startswith("-") else f"{key}={HIDDEN}"
        else:
            yield redact(word)


def secrets_of(settings: Mapping[str, str], urls: Iterable[str] = ()) -> Iterator[str]:
    """Yield the values of secret keys among Spark's settings, and the credentials in URLs."""
    yield from (value for key, value in settings.items() if is_secret(key, value))
    for url in urls:
        if match := _IN_AUTHORITY.search(url):
            for part in (match["user"], match["user"].partition(":")[2]):
                yield part
                yield unquote(part)


def without_secrets(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return a function that removes these secrets from a text or a line of JSON. Numbers stay, and what is shorter than any password:
    they stand for other things as well, and a line would not be JSON without them."""
    unmistakable = [secret for secret in secrets if len(secret) >= _SHORTEST and not secret.isdigit()]
    forms = {form for secret in unmistakable for form in (secret, json.dumps(secret)[1:-1])}
    ordered = sorted(forms, key=len, reverse=True)

    def without(text: str) -> str:
        for form in ordered:
            text = text.replace(form, HIDDEN)
        return text

    return without
