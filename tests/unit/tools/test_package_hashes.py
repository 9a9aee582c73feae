"""What uv says about hashes, as the lines of ``harness/environments/hashes.txt``."""

from harness.environments import installer
from tools import package_hashes

ANSWER = f"""\
pyspark==3.5.9 ; sys_platform == '0' \\
    --hash=sha256:{"a" * 64}
pyspark==4.0.0 ; sys_platform == '1' \\
    --hash=sha256:{"b" * 64} \\
    --hash=sha256:{"c" * 64}
uv==0.13.9 ; sys_platform == '2' \\
    --hash=sha256:{"d" * 64}
"""


def test_a_line_has_the_version_and_all_its_hashes() -> None:
    assert package_hashes.lines(ANSWER) == [
        f"pyspark==3.5.9 --hash=sha256:{'a' * 64}",
        f"pyspark==4.0.0 --hash=sha256:{'b' * 64} --hash=sha256:{'c' * 64}",
        f"uv==0.13.9 --hash=sha256:{'d' * 64}",
    ]


def test_the_file_is_what_it_writes() -> None:
    text = package_hashes.FILE.read_text(encoding="utf-8")
    assert text == package_hashes.HEADER + "\n".join(installer.known().values()) + "\n"
