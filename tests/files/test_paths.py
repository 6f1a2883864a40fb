from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagents_nb.files import Expression, FileError, FileSystem, InvalidPath, normalize
from sagents_nb.files.paths import ancestors, depth, is_below, name, parent

segments = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
any_path = st.one_of(st.text(max_size=30), st.lists(segments, max_size=5).map("/".join))

REFUSED = [
    "",
    "..",
    "../x",
    "/a/../b",
    "/...",
    "/a/..",
    "/a/.. /b",
    "/a/ ../b",
    "~",
    "~/x",
    "~root/x",
    "/~/x",
    "//a",
    "/a//b",
    "/a/",
    "a\x00b",
    "a\nb",
    "a\r\nb",
    "a\x7fb",
    "a\x85b",
    "a\u2028b",
    "a\u202etxt.exe",
    "a\ud800b",
    "..\\..\\windows\\win.ini",
    "\\\\server\\share\\x",
    "C:/x",
    "/c:/x",
    "/" + "a" * 256,
    "/" + "ä" * 128,
    "/".join(["a" * 200] * 21),
]


@pytest.mark.spec("P8")
@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_could_mean_something_else_is_refused_everywhere(path: str) -> None:
    fs = FileSystem()
    fs.write("/keep.md", "kept")
    operations = [
        lambda: normalize(path),
        lambda: fs.write(path, "x"),
        lambda: fs.read(path),
        lambda: fs.exists(path),
        lambda: fs.delete(path),
        lambda: fs.mkdir(path),
        lambda: fs.edit(path, lambda entry: "x"),
        lambda: fs.update_entry(path, title="x"),
        lambda: fs.update_metadata(path, {"a": 1}),
        lambda: fs.move(path, "/y"),
        lambda: fs.move("/keep.md", path),
    ]
    for operation in operations:
        with pytest.raises(InvalidPath):
            operation()
    assert fs.list() == ["/keep.md"]


DEVICES = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"]
DEVICES += [f"{port}{digit}" for port in ("COM", "LPT") for digit in "0123456789¹²³"]


@pytest.mark.spec("P8")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form", ["{}", "{}.txt", "{}.tar.gz", "/a/{}/b", "{} ", "{} .txt"])
def test_names_of_windows_devices_are_refused_on_every_system(device: str, form: str) -> None:
    for text in (device, device.lower(), device.title()):
        with pytest.raises(InvalidPath, match="device"):
            normalize(form.format(text))


@pytest.mark.spec("P8")
@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("a..b", "/a..b"),
        ("/a..b/..c", "/a..b/..c"),
        ("notes.md", "/notes.md"),
        ("./notes.md", "/notes.md"),
        ("/a/./b", "/a/b"),
        ("/", "/"),
        (".", "/"),
        ("/%2e%2e/x", "/%2e%2e/x"),
        ("/.hidden", "/.hidden"),
        ("/a~b/~c", "/a~b/~c"),
        ("/console.md", "/console.md"),
        ("/com10/nul_", "/com10/nul_"),
        ("/a b/ä €.md", "/a b/ä €.md"),
        ("/12:30.md", "/12:30.md"),
    ],
)
def test_fine_names_stay_as_they_are(path: str, normal: str) -> None:
    assert normalize(path) == normal


@pytest.mark.spec("P8")
@given(any_path)
def test_a_normal_path_is_absolute_plain_and_normal_already(path: str) -> None:
    try:
        normal = normalize(path)
    except InvalidPath:
        return
    assert normal.startswith("/")
    assert normalize(normal) == normal
    assert normalize(normal[1:] or "/") == normal
    if normal != "/":
        parts = normal[1:].split("/")
        assert not set(parts) & {"", ".", ".."}
        assert len(parts) == depth(normal) == len(list(ancestors(normal))) + 1
        assert parts[-1] == name(normal)
        assert is_below(normal, parent(normal))


@pytest.mark.spec("S1.7.8")
def test_below_means_whole_segments() -> None:
    assert is_below("/a/x", "/a")
    assert not is_below("/ab", "/a")
    assert not is_below("/a", "/a")
    assert is_below("/a", "/")
    assert not is_below("/", "/")


PATHS = ["/a.md", "/x/b.md", "/x/y/c.md", "/x/b.txt", "/[q].md", "/.h/d.md", "/x.md/e"]


@pytest.mark.spec("P10", "S1.7.1")
@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["/[q].md", "/a.md"]),
        ("/*.md", ["/[q].md", "/a.md"]),
        ("**/*.md", ["/.h/d.md", "/[q].md", "/a.md", "/x/b.md", "/x/y/c.md"]),
        ("/x/*", ["/x/b.md", "/x/b.txt"]),
        ("/x/**", ["/x/b.md", "/x/b.txt", "/x/y/c.md"]),
        ("/?.md", ["/a.md"]),
        ("/[q].md", ["/[q].md"]),
        ("/[a].md", []),
        ("/{a,x}.md", []),
        ("/!a.md", []),
        ("b.md", []),
        ("a?md", ["/a.md"]),
        ("", []),
    ],
)
def test_globs_are_anchored_and_only_three_wildcards_are_special(
    pattern: str, found: list[str]
) -> None:
    fs = FileSystem()
    for path in PATHS:
        fs.write(path, "x")
    assert fs.list(pattern) == found


@pytest.mark.spec("P10")
@pytest.mark.parametrize("pattern", ["*a" * 30 + "b", "*a*b" * 20 + "a", "*" * 900, "**/" * 99])
def test_a_hostile_glob_neither_hangs_nor_breaks(pattern: str) -> None:
    fs = FileSystem()
    fs.write("/" + "a" * 250, "x")
    fs.write("/" + "ab" * 100 + "c", "x")
    with contextlib.suppress(FileError):
        fs.list(pattern)


def test_a_glob_that_is_too_long_is_refused() -> None:
    with pytest.raises(FileError, match="over 1000"):
        FileSystem().list("a" * 2000)


def test_an_expression_that_backtracks_for_ever_is_stopped() -> None:
    expression = Expression("(a|aa)+$", seconds=0.2)
    with pytest.raises(FileError, match=r"took over 0\.2 s; use a simpler pattern"):
        expression.lines_found(["a" * 60 + "b"])
