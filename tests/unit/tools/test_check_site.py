"""What the check of a built site finds."""

import pytest

from tools.check_site import main, problems

GOOD = {
    "index.html": '<h1 id="top-of-it">A</h1><a href="b/c.html#x">c</a> <a href="#top-of-it">up</a> <a href="b/">b</a>'
    '<a href="https://example.org/gone">elsewhere</a> <a href="mailto:a@b.c">mail</a> <link rel="canonical" href="https://x.y/">'
    '<a href="report/matrix.html#?family=late-drops">filtered</a> <script src="a.js?v=1"></script>',
    "b/index.html": "",
    "b/c.html": '<p id="x">X</p><a href="../index.html">back</a> <img src="data:image/png;base64,AA">',
    "report/matrix.html": "",
    "404.html": '<a href="/site/b/c.html#x">c</a> <a href="/site/.">home</a>',
    "a.js": "",
}


def site(folder, **changed):
    for name, text in (GOOD | changed).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_good_site(tmp_path):
    assert list(problems(site(tmp_path), "/site/")) == []
    assert main([str(tmp_path), "/site/"]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="gone.html">x</a>', "index.html: gone.html leads to no file"),
        ('<a href="b/c.html#gone">x</a>', "index.html: b/c.html#gone leads to no place"),
        ('<a href="#gone">x</a>', "index.html: #gone leads to no place"),
        ('<img src="gone.png">', "index.html: gone.png leads to no file"),
        ('<img src="https://example.org/a.png">', "index.html: fetches https://example.org/a.png"),
        ('<script src="//example.org/a.js"></script>', "index.html: fetches //example.org/a.js"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "index.html: fetches https://example.org/a.css"),
    ],
)
def test_what_is_wrong_is_named_with_its_page(tmp_path, capsys, text, said):
    folder = site(tmp_path, **{"index.html": text, "404.html": ""})
    assert list(problems(folder, "/site/")) == [said]
    assert main([str(folder)]) == 1
    assert capsys.readouterr().err == f"{said}\n"


def test_a_folder_without_pages_is_no_site(tmp_path):
    assert list(problems(tmp_path)) == [f"{tmp_path} has no pages"]
