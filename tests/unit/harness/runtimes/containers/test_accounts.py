"""Which user of an image a driver runs as."""

import pytest

from harness.runtimes.containers.images import choose_account

PASSWD = """\
root:x:0:0:root:/root:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
spark:x:185:185::/home/spark:/bin/sh
app:x:1001:0::/home/app:/bin/sh
not a line
"""


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ("spark", "185:185"),
        ("185", "185:185"),
        ("185:0", "185:185"),
        ("1001", "1001:0"),
        ("app", "1001:0"),
        ("", "185:185"),
        ("root", "185:185"),
        ("0", "185:185"),
        ("4711", "185:185"),
    ],
)
def test_the_images_own_user_unless_it_is_root_or_has_no_name(configured, expected):
    assert choose_account(PASSWD, configured) == expected


def test_the_user_nobody_if_there_is_no_user_spark():
    without = PASSWD.replace("spark:x:185", "sshd:x:104")
    assert choose_account(without, "") == "65534:65534"
    assert choose_account(without, "185") == "65534:65534"


@pytest.mark.parametrize("passwd", ["", "root:x:0:0::/:/bin/sh\n", "toor:x:0:0::/:/bin/sh\n"])
def test_root_is_never_chosen(passwd):
    assert choose_account(passwd, "root") is None


@pytest.mark.parametrize(
    "line", ["not a line", "app", "app:x:1001", "app:x:many:0::/:/bin/sh", "app:x:1001:::/:/bin/sh"]
)
def test_lines_that_are_not_accounts_are_skipped(line):
    assert choose_account(f"{line}\n{PASSWD}".replace("app:x:1001:0", "other:x:1002:0"), "app") == "185:185"
