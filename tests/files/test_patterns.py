"""Searching a text as a whole first never misses a line, and no pattern takes all memory."""

from __future__ import annotations

import re
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sagents_nb.files import Expression, FileError, FileSystem, split_lines
from sagents_nb.files.patterns import matching
from tests.talking import PATIENCE

PIECES = (
    r"a b \s \S . [^a] [ab] ^ $ \b \B a* b+ \s* (a|b) (b)\1 a{1,2} .* \. b? \W+ a*? a*+ (?=a) "
    r"(?!\s) \A \Z (?<!a) (?i) | \w+ [*+] (?:a) \d \w"
)
pieces = st.sampled_from(PIECES.split())
patterns = st.lists(pieces, min_size=1, max_size=5).map("".join)
texts = st.text(alphabet="ab \n\r.\t", max_size=30)


@pytest.mark.spec("S1.7.5")
@settings(max_examples=400)
@given(patterns, texts, st.booleans())
@example("a$", "a\r\nb", False)
@example("a$", "b\na\r", False)
@example("a(?!\\s)", "a\nb", False)
@example("a\\s*+$", "a\n b", False)
@example("\\Ab", "a\nb", False)
def test_what_is_in_a_line_may_be_in_the_text(source: str, text: str, ignore_case: bool) -> None:
    try:
        expression = Expression(source, ignore_case=ignore_case)
    except FileError:
        return
    lines = [line.removesuffix("\r") for line in split_lines(text)]
    if expression.lines_found(lines):
        assert expression.may_be_in(text)


@settings(max_examples=400)
@given(patterns, st.lists(texts, max_size=4))
@example("a$", ["b", "a\r", "a"])
@example("a[^b]b", ["xa", "b", "aab"])
@example("^$", ["", "", "a"])
@example("a*", ["b", "", ""])
def test_what_is_in_a_line_of_one_of_many_texts_may_be_in_that(
    source: str, texts: list[str]
) -> None:
    try:
        expression = Expression(source)
    except FileError:
        return
    lines = [[line.removesuffix("\r") for line in split_lines(text)] for text in texts]
    found = [number for number, some in enumerate(lines) if expression.lines_found(some)]
    assert set(found) <= set(expression.may_be_in_each(texts)) <= set(range(len(texts)))


simple = st.lists(st.sampled_from(["a", "b", "1", "ä", " ", "\\d", "\\w", "."]), max_size=4)
repeated = st.sampled_from(["", "*", "+", "?"])
some_lines = st.lists(st.text(alphabet="ab1ä \U00010d41\x1c_", max_size=8), max_size=4)


@settings(max_examples=400)
@given(simple.map("".join), repeated, some_lines)
@example("b\\d", "", ["ab\U00010d41"])  # a digit of a newer Unicode than most Pythons know
@example("b\\w", "+", ["abä"])
@example("a", "", ["b", "xa"])
def test_a_text_and_what_is_simple_after_it_are_found_as_in_each_line(
    simple: str, repeated: str, lines: list[str]
) -> None:
    expression = Expression(f"ab{simple}{repeated}")
    found = [number - 1 for number in expression.lines_found(lines)]
    assert expression.may_be_in_each(lines) == found


globs = st.lists(
    st.sampled_from(["a", "b", "ab", "*", "a*", "?", "**", "a**", "", ".", "..", "[a]", "\\"]),
    max_size=5,
).map("/".join)
some_paths = st.lists(st.sampled_from(["a", "b", "ab", "[a]"]), min_size=1, max_size=4).map(
    "/".join
)
changes = st.tuples(st.sampled_from(["write", "mkdir", "delete"]), some_paths)


@settings(max_examples=400)
@given(st.lists(changes, max_size=10), globs, st.booleans())
@example([("write", "a/b"), ("delete", "a/b")], "*", False)
@example([("write", "a/b/a"), ("delete", "a")], "*", False)
def test_a_glob_finds_what_looking_at_all_paths_finds(
    changes: list[tuple[str, str]], glob: str, rooted: bool
) -> None:
    fs = FileSystem()
    for change, path in changes:
        with suppress(FileError):
            getattr(fs, change)(*([path, "text"] if change == "write" else [path]))
    glob = "/" * rooted + glob
    everything = [entry.path for entry in fs.entries()]
    assert [entry.path for entry in fs.entries(glob)] == matching(everything, glob)


@pytest.mark.parametrize("count", [10, 1000])
def test_a_glob_of_one_folder_looks_at_no_other(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = FileSystem()
    for number in range(count):
        fs.write(f"/d{number}/a.md", "text")
        fs.write(f"/d{number}/b/c.md", "text")
    looked: list[str] = []

    def seen(paths: list[str], pattern: str) -> list[str]:
        looked.extend(paths)
        return matching(paths, pattern)

    monkeypatch.setattr("sagents_nb.files.patterns.matching", seen)
    assert fs.list("/d7/*.md") == ["/d7/a.md"]
    assert fs.list("/d7/b/c.md") == ["/d7/b/c.md"]
    assert looked == ["/d7/a.md", "/d7/b", "/d7/b/c.md"]


def test_of_many_texts_those_with_a_hit_are_told_apart() -> None:
    texts = [f"text {number}\r\nof two lines" for number in range(100)]
    assert Expression(r"text \d*7$").may_be_in_each(texts) == list(range(7, 100, 10))
    assert Expression("three").may_be_in_each(texts) == []
    assert Expression("three").may_be_in_each([]) == []


def test_what_is_quick_on_each_text_and_slow_on_all_is_searched_in_each() -> None:
    expression = Expression(r"([a\s]|[a\s]{2})+c\d")
    assert expression.may_be_in_each([*["aaa"] * 100, "c"]) == []
    assert expression.may_be_in_each(["aaa", "ac1"]) == [1]  # as one, it would begin in the first


@pytest.mark.parametrize("source", ["needle", r"\bneedle\d+$", "(?i)NEEDLE", "[xyz]{3}", r"a\.b"])
def test_plain_patterns_are_looked_for_in_the_whole(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.files.patterns.WHOLE_SECONDS", PATIENCE)
    assert not Expression(source).may_be_in("nothing\nof it\n" * 100)


def test_what_is_quick_on_lines_and_slow_on_a_text_is_searched_by_line() -> None:
    # There are more ways to divide a run of such characters than any machine can try in the
    # text, and few in a line.
    expression = Expression(r"([a\s]|[a\s]{2})+c\d")
    text = "aaa\n" * 100 + "c"
    assert expression.may_be_in(text)
    assert expression.may_be_in("also this")
    assert expression.lines_found(split_lines(text)) == []


@pytest.mark.parametrize(
    "source",
    [
        "x{1000000000}",
        "x{" + "9" * 5000 + "}",
        "(?:x{1000}){1000}",
        "(?:x{1000,}){1000,2000}",
        "(?:(?:a?){1000}){1000}",
        "(" * 22 + "a" + "+)" * 22,
        "(?:x{1000}(?#)){1000}",
        "(?:x{1000})(?#and so){1000}",
        "(?:x{1000})(?i){1000}",
        "(?:x{1000}[)(]){1000}",
        "(?:x{1000}[^](]){1000}",
        "(?:x{1000}[[)(]){1000}",
        r"(?:x{1000}[\])(]){1000}",
        r"(?:x{1000}\(){1000}",
        "(?:x{1000}[[:(]){1000}",
        "(?:x{1000}[a-[:x:](]){1000}",
        "(" * 500 + "a" + ")" * 500,
        "|".join(map(str, range(50_000))),
    ],
)
def test_what_would_be_too_large_is_refused_before_it_is_compiled(source: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"is too large .*; repeat less often") as refusal:
            Expression(source)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("(?x)a { 3 }", "(?x"),
        ("(?iV1)[a[b]]", "(?iV"),
        ("a(?R)?b", "(?R"),
        ("(a|(?1))*", "(?1"),
        ("(?P<n>a(?&n)?)", "(?&"),
        ("[[:alpha:]](?R)", "(?R"),
    ],
)
def test_what_nobody_can_tell_the_size_of_is_refused(source: str, part: str) -> None:
    with pytest.raises(FileError, match=f"has {re.escape(repr(part))}, .* write it without"):
        Expression(source)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "01234567-89ab-cdef-0123-456789abcdef"),
        (
            r'(\S+) (\S+) \[([^]]+)\] "(\S+) (.+?) (\S+)" (\d{3}) (\d+)+',
            'h u [now] "GET / 1" 200 5',
        ),
        (r"^[[:alpha:]_]+\s*[:=]\s*[[:digit:]]{4}$", "year = 2024"),
        (r"print\(?x\)?", "print(x)"),
        (r"\(?1?\)?-2", "(1)-2"),
        (r".{3000,}", "x" * 3000),
        (r"(?:(?:ab)+,)+$", "abab,ab,"),
        ("(a{1,1000}){1,1000}", "a"),
        ("(?:x{0,5000}){0,5000}y", "xy"),
    ],
)
def test_what_people_write_is_not_too_large(source: str, line: str) -> None:
    expression = Expression(source)
    assert expression.may_be_in(line)
    assert expression.lines_found([line]) == [1]


ODD = (
    r"a [ab] [)(] [](] [^](] [[)] [[:alpha:](] [[:(] [a-[:x:](] \( \) (?#() (?#\)() [\](] x{300} "
    r"a{3000} (?i) | { \N{(} \p{(} [:(] [^[:^alpha:])] {e<=1:[(]} [a&&(] [a||(] [--(]"
)
odd = st.sampled_from(ODD.split())
repeats = st.sampled_from(["", "?", "+", "*?", "{20}", "{200}+", "{3,}", "{,9}"])
nested = st.recursive(
    odd,
    lambda inner: st.builds(
        "{}{})".format, st.sampled_from(["(", "(?:", "(?>", "(?="]), st.lists(inner).map("".join)
    ).flatmap(lambda group: repeats.map(group.__add__)),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.lists(nested, max_size=3).map("".join))
@example("(?:a{3000}[[:(]){3}[[:)]")
def test_what_is_not_refused_needs_little_memory(source: str) -> None:
    tracemalloc.start()
    try:
        Expression(source)
    except FileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 60_000_000


def test_a_repeated_group_is_not_tried_on_a_line_that_goes_on_for_ever() -> None:
    line = "ab" * 600_000
    for expression in (Expression("(a|b)*[cd]"), Expression("(?:ab){2,}(?i)[cd]")):
        assert expression.may_be_in(line)
        with pytest.raises(
            FileError, match="in a line of over 1,000,000 characters; use a pattern"
        ):
            expression.lines_found(["short", line])
        assert expression.lines_found(["short", "ababd"]) == [2]
    assert Expression("(ab)?c|b[ab]+$").lines_found([line]) == [1]


def test_what_takes_too_much_memory_all_the_same_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Greedy:
        flags = 0

        def search(self, text: str, start: int = 0, *, timeout: float) -> None:
            raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("regex.compile", lambda *args, **options: Greedy())
        expression = Expression("(a) greedy one")
    assert expression.may_be_in("text")
    with pytest.raises(FileError, match=r"'\(a\) greedy one' took too much memory; use a simpler"):
        expression.lines_found(["text"])
