from __future__ import annotations

import base64
import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbconvert.filters.markdown import markdown2html

import sagents_nb as sa
from sagents_nb.transcript import (
    MOST,
    MOST_IMAGE,
    MOST_IMAGES,
    bounded,
    folded,
    inert,
    latest_markdown,
    markdown,
    run_summary,
    title_of,
    with_folds,
)
from tests.export.pages import leads_nowhere_else
from tests.talking import agent_of, call

CALL = sa.ToolCall("c1", "look", {"at": "sky"})


def conversation(result: sa.ToolResult | None) -> list[sa.Message]:
    said = [sa.Message.user("what?\nnow"), sa.Message.assistant("Let me see.", [CALL])]
    return [*said, sa.Message.tool([result])] if result else said


def test_a_conversation_reads_as_markdown() -> None:
    text = markdown(
        [*conversation(sa.ToolResult("c1", "look", "blue")), sa.Message.assistant("It is blue.")]
    )
    assert text == (
        "> what?\n> now\n\n"
        "Let me see.\n\n"
        "- `look(at='sky')` gave\n\n  ```text\n  blue\n  ```\n\n"
        "It is blue."
    )


def test_what_failed_and_what_waits_is_said() -> None:
    failed = markdown(conversation(sa.ToolResult("c1", "look", "clouds", is_error=True)))
    assert "- `look(at='sky')` failed" in failed
    result = sa.ToolResult("c1", "look", "clouds", is_error=True, metadata={"declined": True})
    assert "- `look(at='sky')` was not done" in markdown(conversation(result))
    assert markdown(conversation(None)).endswith("- `look(at='sky')` waits for a decision")
    broken = sa.Message("assistant", (sa.TextPart("Hal"),), error="The stream was cut.")
    assert markdown([broken]) == "Hal\n\n**The stream was cut.**"


def test_backticks_in_a_result_cannot_end_its_block() -> None:
    text = markdown(conversation(sa.ToolResult("c1", "look", "a\n````\nb")))
    assert "  `````text\n  a\n  ````\n  b\n  `````" in text


def test_a_result_says_that_images_and_files_are_in_it() -> None:
    drawn, paper = sa.ImagePart("iVBORw0KGgo="), sa.FilePart("JVBERg==", "application/pdf")
    text = markdown(conversation(sa.ToolResult("c1", "look", [drawn])))
    assert "  ```text\n  [an image, shown in the panel and exports]\n  ```" in text
    parts = [sa.TextPart("Both:"), drawn, drawn, paper]
    text = markdown(conversation(sa.ToolResult("c1", "look", parts)))
    assert "  Both:\n  [2 images, shown in the panel and exports]\n  [a file]\n  ```" in text


def test_long_results_and_arguments_are_cut() -> None:
    long = sa.ToolCall("c1", "look", {"at": "x" * 500})
    text = markdown(
        [
            sa.Message.assistant("", [long]),
            sa.Message.tool([sa.ToolResult("c1", "look", "y" * 5000)]),
        ]
    )
    assert "3,000 more characters" in text
    assert "x" * 61 not in text


def test_half_a_character_keeps_no_page_from_showing_the_rest() -> None:
    said = sa.Message.assistant("a \ud83d b \U0001f600", [call("x", at="\udc00")])
    result = sa.ToolResult("c1", "x", [sa.JsonPart({"\udc00": "\ud83d"})])
    text = markdown([said, sa.Message.tool([result])])
    assert text.encode().decode().startswith("a \\ud83d b \U0001f600")
    assert '{"?":"?"}' in text


def test_a_tool_name_that_a_model_made_up_is_made_visible_too() -> None:
    odd = sa.ToolCall("c1", "x\x1b[2J`y", {"\x07": "\x1b"})
    text = markdown([sa.Message.assistant("", [odd])])
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("`") == 2


BREAKS_OUT = "ls`\n\n> Yes, I approve.\r\n\r\n## A heading\u2029\n[click](http://x.example)\n\n`x"


def test_no_name_begins_a_quote_or_a_heading() -> None:
    odd = sa.ToolCall("c1", BREAKS_OUT, {BREAKS_OUT: 1})
    decided = {"edited_arguments": {BREAKS_OUT: 2}, "decision": {"by": BREAKS_OUT}}
    result = sa.ToolResult("c1", "ls", "fine", metadata=decided)
    text = markdown([sa.Message.assistant("", [odd]), sa.Message.tool([result])])
    line, *block = text.splitlines()
    assert line.count("> Yes, I approve. ## A heading [click]") == 5
    assert block == ["", "  ```text", "  fine", "  ```"]
    page = Page(markdown2html(inert(text)))
    assert page.tags <= {"ul", "li", "p", "code", "pre", "div", "span"}


def test_an_error_of_several_lines_is_shown_as_it_is() -> None:
    error = "It failed:\n\n> Yes, I approve."
    assert markdown([sa.Message("assistant", (), error=error)]) == f"```text\n{error}\n```"


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "</pre>", "&amp;"])
def test_the_html_is_escaped_text(text: str) -> None:
    shown = folded(text, markdown([sa.Message.user(text), sa.Message.assistant(text)]))
    assert shown.count(html.escape(text)) == 3
    assert "<script" not in shown
    assert shown.count("</pre>") == 1


def test_the_summary_is_one_stable_line() -> None:
    messages = [*conversation(sa.ToolResult("c1", "look", "x")), sa.Message.assistant("y")]
    assert run_summary("completed", messages) == "Agent run completed: 2 turns, 1 tool call"
    assert run_summary("cancelled", []) == "Agent run cancelled: 0 turns"


def test_a_result_shows_its_summary_and_the_transcript_folded_under_it() -> None:
    def look() -> str:
        return "blue"

    result = agent_of(call("look"), "It is blue.", tools=[look]).run("what?")
    assert repr(result) == "Agent run completed: 2 turns, 1 tool call"
    shown = result._repr_mimebundle_()
    assert shown["text/plain"] == repr(result)
    assert shown["text/html"].startswith("<details><summary>Agent run completed")
    assert "It is blue." in shown["text/html"]


PATHOLOGICAL = {
    "quotes": ">" * 5_000 + " x",
    "quotes with spaces": "> " * 1_500 + "x",
    "items": "- " * 3_000 + "x",
    "numbers": "1. " * 3_000 + "x",
    "items and quotes": "* > " * 500 + "x",
    "items over lines": "".join("  " * depth + "- a\n" for depth in range(400)),
    "items in tabs": "".join("\t" * depth + "- a\n" for depth in range(400)),
    "a line of many after others": "Fine.\n\nAlso fine.\n- a\n" + " >" * 200,
    "emphasis": "**" * 2_500 + "x" + "**" * 2_500,
    "emphasis over lines": "**a*\n" * 900,
    "brackets": "[" * 20_000,
    "many such paragraphs": ("*a _b " * 250 + "\n\n") * 200,
    "an item of many lines": "1. a\n" + "b\n" * 20_000,
    "behind a fence": "```\ncode\n```\n" + ">" * 5_000,
    "behind a longer fence": "````\n```\n````\n" + "**a*\n" * 900,
    "behind a fence in HTML": "<!--\n```\n-->\n" + "**a*\n" * 900,
    "behind a fence in a list": "- a\n  ```\nb\n\n" + "**a*\n" * 900,
    "numbers that begin no item": "a\n" + "2. **a*\n" * 900,
    "rows of no table": "| a | b |\n|---|\n" + "| **a* | b |\n" * 900,
    "behind what no fence is": "```a`b\n" + "**a*\n" * 900,
}


@pytest.mark.parametrize("text", PATHOLOGICAL.values(), ids=PATHOLOGICAL.keys())
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_markdown_that_no_renderer_bears_is_plain_text(role: str, text: str) -> None:
    text = text.strip()
    said = sa.Message.user(text) if role == "user" else sa.Message.assistant(text)
    quote = "> " if role == "user" else ""
    lines = [line.removeprefix(quote) for line in markdown([said]).split("\n")]
    fence = lines[-1]
    assert lines[0] == f"{fence}text"
    assert fence.startswith("```")
    assert "\n".join(lines[1:-1]) == text
    assert fence not in text


def test_an_error_that_no_renderer_bears_is_plain_text() -> None:
    note = ">" * 5_000
    text = markdown([sa.Message("assistant", (), error=note)])
    assert text == f"```text\n{note}\n```"


PYTHON = "def total(values):\n    return sum(x * y_z[0] for (x, y_z) in values)  # *all*\n"
ORDINARY = {
    "prose": "A *word*, a **bold** one and `code_like_this`, [linked](https://example.org/a_b).\n\n"
    * 2_000,
    "lists": "- one\n  - two `a`\n    - three\n      1. four\n        > five\n" * 500,
    "a table": "| a | b |\n|---|---|\n" + "| *1* | `2` [a](b) |\n" * 2_000,
    "a long numbered list": "".join(f"{i}. Item *{i}* of `many` (really)\n" for i in range(1, 900)),
    "rules": "-" * 300 + "\n\n" + "*" * 300 + "\n\n" + "- " * 25,
    "code": f"Look:\n\n```python\n{PYTHON * 1_500}```\n\nDone.",
    "code that is deep": "~~~json\n" + "".join(" " * d + "[\n" for d in range(300)) + "~~~",
    "HTML": "<details>\n<summary>More</summary>\n\n*Inside*\n\n</details>\n" * 300,
}


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_markdown_stays_what_it_is(text: str) -> None:
    assert bounded(text) == text
    assert markdown([sa.Message.assistant(text)]) == text.strip()


# what a notebook shows


class Page(HTMLParser):
    """The tags of a page, and what in them is no plain text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.live: list[str] = []
        self.drawn = False  # whether a diagram is made of anything
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.drawn |= name == "class" and "mermaid" in (value or "").lower()
            address = name == "href" and leads_nowhere_else(value or "")
            if not address and name not in ("class", "title", "id", "start", "align", "style"):
                self.live.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.text += data


SHOWN = {
    "p", "br", "hr", "em", "strong", "del", "a", "code", "pre", "span", "div", "ol", "ul", "li",
    "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
    "section", "sup",
}  # fmt: skip
HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</pre>", "</code>", "<!--",
    "![t](http://x/y)", "![t][r]", "[r]: javascript:alert(1)", "[l](javascript:alert(1))",
    "[l]( java\\script:alert(1) )", "[l](<javascript:alert(1)>)", "[l](&#106;avascript:alert(1))",
    "[l](JAVASCRIPT&colon;alert(1))", "[l](data:text/html,x)", "<javascript:alert(1)>",
    "[l](//x/y)", "[l](///x/y)", "[l](/\\x/y)", "[l](\\/x/y)", "[l](\\\\x/y)", "[l](\t//x/y)",
    "[l](\n/ /x)", "[l](\x1f//x/y)", "[l](\x01//x/y)", "[l](<//x/y>)", "[l](</\t/x/y>)",
    "[l](&#47;/x)", "[l](/&#x2f;x)", "[l](/&sol;x)", "[l](/&bsol;x)", "[l](/&Tab;/x)",
    "[l](/&#10;/x)",
    "[l](&Tab;//x)", "[l](\\/\\/x)", "[l](/\\/x)", "[l](/\\\\x)", "[r]: //x/y", "[r]: /\\x",
    "[r]:\n//x",
    "[r]: /&#47;x", "[r]: <//x>", "[r]: /&Tab;/x",
    "```mermaid\ngraph\n", "~~~ mermaid x\n", "<svg/onload=x>", "<a href='javascript:x'>",
    "<https://x/onfocus=alert(1)>",
]  # fmt: skip
AROUND = [
    "`", "``", "```", "```html", "~~~", "$", "$$", "\\", "!", "[", "](", ")", "<", ">", "- ", "> ",
    "    ", "\n", "\n\n", "  ", "1. ", "# ", "|", "|-|", "a", "[foo]:", "[^1]:", "*", "_", "\t",
    "&lt;",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_of_what_is_hostile_alone_nothing_is_live(text: str) -> None:
    page = Page(markdown2html(inert(f"{text}\n\n[l][r]")))
    assert page.tags <= SHOWN
    assert page.live == []


@given(st.lists(st.sampled_from([*HOSTILE, *AROUND, *AROUND]), max_size=14).map("".join))
def test_nothing_a_model_writes_is_more_than_text_where_a_page_trusts_it(text: str) -> None:
    page = Page(markdown2html(inert(text)))
    assert page.tags <= SHOWN
    assert page.live == []
    assert not page.drawn


@pytest.mark.parametrize(
    "start", ["```mermaid", "~~~~ MERMAID x", "> ```\u00a0mermaid", "1. ```mermaid"]
)
def test_no_diagram_is_drawn_whose_images_somebody_would_be_asked_for(start: str) -> None:
    text = f"{start}\ngraph LR\nA@{{ img: 'http://x/y' }}"
    assert Page(markdown2html("```mermaid\nA --> B\n```")).drawn
    assert "mermaid" not in inert(text).lower()
    assert not Page(markdown2html(inert(text))).drawn


@pytest.mark.parametrize("mark", ["`", "~", "` ", "~ "])
def test_a_line_of_marks_takes_no_time_by_its_square(mark: str) -> None:
    line = mark * 300_000  # by its square it is a matter of hours
    assert inert(line) == line


@pytest.mark.parametrize(
    "formula",
    [
        "$\\style{cursor:url(//x)}{y}$", "$$\\bbox[cursor:url(//x)]{y}$$", "$\\href{//x}{y}$",
        "\\begin{equation}\\mmlToken{mi}[style='cursor:url(//x)']{y}\\end{equation}",
        "\\\\(\\style{cursor:url(//x)}{y}\\\\)", "&#36;\\style{cursor:url(//x)}{y}&#36;",
        "$\\fcolorbox{red;cursor:url(//x)}{red}{y}$", "$\\unicode[a;cursor:url(//x)]{65}$",
        "&dollar;&bsol;style{cursor:url(//x)}{y}$", "$\\&#x73;tyle{cursor:url(//x)}{y}$",
    ],
)  # fmt: skip
def test_no_formula_has_a_style_or_leads_anywhere(formula: str) -> None:
    text = Page(markdown2html(inert(formula))).text
    assert not re.search(r"\\(style|bbox|href|mmlToken|fcolorbox|unicode)", text)


def test_only_the_webs_addresses_become_links_by_themselves() -> None:
    assert "ftp://" not in inert("![x](ftp://x/y) and FTP://x/y".lower())


def test_a_transcript_with_hostile_names_is_inert_as_well() -> None:
    evil = "<img src=x onerror=alert(1)>"
    call = sa.ToolCall("c1", f"`{evil}", {f"a`\n\n{evil}": evil, "b": f"`{evil}"})
    said = [sa.Message.user(evil), sa.Message.assistant(evil, [call])]
    said += [sa.Message.tool([sa.ToolResult("c1", call.name, f"```\n{evil}\n~~~\n  ```\n{evil}")])]
    page = Page(markdown2html(inert(markdown(said))))
    assert page.tags <= SHOWN
    assert page.live == []
    assert page.text.count("onerror") == 8


def told(result: str) -> str:
    """The transcript of a call with that result, and of an answer, as a page shows it."""
    call = sa.ToolCall("c1", "show_frame", {"name": "df"})
    said = [sa.Message.assistant("Let me see.", [call])]
    said += [sa.Message.tool([sa.ToolResult("c1", call.name, result)])]
    said.append(sa.Message.assistant("It has rows."))
    return str(markdown2html(with_folds(inert(markdown(said)))))


@pytest.mark.parametrize("line", ["a,1", "<b>", "```", "$x$"])
def test_a_long_result_is_folded_and_the_answer_is_not(line: str) -> None:
    page = told("\n".join([line] * 30))
    folded = re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>(.*)", page, re.DOTALL)
    ((summary, inside, after),) = folded
    assert summary == "30 lines"
    assert Page(inside).text.split() == [line] * 30
    assert "It has rows." in Page(after).text
    assert "<details>" not in told("\n".join([line] * 8))


def test_of_what_a_model_writes_only_results_of_calls_are_folded() -> None:
    text = "- one\n\n  ```text\n" + "  a\n" * 30 + "  ```"
    assert with_folds(inert(text)) == text


@given(st.lists(st.sampled_from([*HOSTILE, *AROUND, *AROUND]), max_size=14).map("".join))
def test_nothing_in_a_result_is_more_than_text_where_it_is_folded(text: str) -> None:
    page = Page(told(f"{text}\n" + "\n" * 10))
    assert page.tags <= {*SHOWN, "details", "summary"}
    assert page.live == []


@pytest.mark.parametrize(
    "text",
    [
        "1 < 2 and a <- b", "```py\nif a < b: print('x')\n```", "`dict[str, int]`, [a](https://b/c)",
        "[a](/b?c=d:e) [b](#c) [c]", "$a < b$", "a &lt; b&nbsp;&amp; c", "$\\displaystyle x$",
        "[a](b.ipynb) [a](../b/c.md#d) [a](/b//c) [a](/) [a](./b) [a]() [a](?b)\n\n[c]: /d",
        "*so*\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    ],
)  # fmt: skip
def test_what_is_harmless_stays_as_it_was(text: str) -> None:
    assert inert(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a `List<int>` b", "a List<int> b"),
        ("```cpp\n#include <io>\n\nx<y> z;\n```", "#include <io>\n\nx<y> z;"),
        ("```html\n<b>*cut*", "<b>*cut*"),
        ("```mermaid\ngraph LR\nA --> B\n```", "graph LR\nA --> B"),
        ("- ~~~Mermaid\n  A --> B\n  ~~~", "A --> B"),
        ("use <b>this</b>", "use <b>this</b>"),
        ("- a\n\n  ```\n  <b>\n    <i>\n  ```", "a\n<b>\n  <i>"),
    ],
)
def test_code_with_tags_reads_as_it_was_written(text: str, shown: str) -> None:
    said = Page(markdown2html(inert(text))).text
    assert re.sub(r"\s*\n\s*$|^\s*\n", "", re.sub(r"a\n+", "a\n", said)).strip() == shown


def talk(turns: int, size: int) -> list[sa.Message]:
    """So many turns with a call each, whose answers are of that size."""
    said: list[sa.Message] = []
    for n in range(turns):
        calls = [sa.ToolCall(f"c{n}", "look", {"at": n})]
        result = sa.ToolResult(f"c{n}", "look", f"seen {n}.")
        said += [sa.Message.user(f"Question {n}."), sa.Message.assistant("", calls)]
        said += [sa.Message.tool([result]), sa.Message.assistant(f"Answer {n}. {'x' * size}")]
    return said


def test_of_a_long_conversation_the_latest_turns_are_shown_whole_and_the_rest_is_counted() -> None:
    messages = talk(100, MOST // 10)
    text = latest_markdown(messages)
    assert text.startswith("*360 earlier messages are not shown here; to_frame('messages') has")
    assert markdown(messages[360:]) == text.partition("\n\n")[2]
    assert len(text) < 1.2 * MOST
    assert latest_markdown(messages[:20]) == markdown(messages[:20])
    assert latest_markdown([]) == ""


def test_a_turn_is_shown_whole_unless_it_is_very_long() -> None:
    messages = [sa.Message.user("Before."), *talk(1, int(1.5 * MOST))]
    text = latest_markdown(messages)
    assert text.startswith("*1 earlier message is not shown here;")
    assert text.partition("\n\n")[2] == markdown(messages[1:])
    no_question = talk(1, 5)[1:]
    assert latest_markdown(no_question) == markdown(no_question)


def test_of_a_turn_with_very_many_messages_the_latest_are_shown_and_calls_with_results() -> None:
    calls = [m for m in talk(5_000, 0) if m.role != "user"]
    messages = [sa.Message.user("Do it all."), *calls]
    text = latest_markdown(messages)
    left_out = int(re.findall(r"[\d,]+", text)[0].replace(",", ""))
    assert markdown(messages[left_out:]) == text.partition("\n\n")[2]
    assert messages[left_out].role == "assistant"
    assert 2 * MOST < len(text) < 2.2 * MOST
    assert "waits for a decision" not in text


def test_what_is_left_out_is_not_read() -> None:
    class Counted(list[sa.Message]):
        read = 0

        def __getitem__(self, place: Any) -> Any:
            Counted.read += 1
            return super().__getitem__(place)

    latest_markdown(Counted(talk(10_000, MOST // 10)))
    assert Counted.read < 200


# images


def image(size: int = 8, begins: bytes = b"\x89PNG\r\n\x1a\n") -> sa.ImagePart:
    return sa.ImagePart(base64.b64encode(begins.ljust(size, b"\0")).decode())


def sources(text: str) -> list[str]:
    """Where the images of a page are that is made of Markdown."""
    return re.findall(r'<img src="([^"]*)"', markdown2html(text))


def with_images(messages: list[sa.Message]) -> str:
    return markdown(messages).with_images(lambda text: with_folds(inert(text)))


def test_the_image_of_a_result_is_shown_below_its_text_and_not_named() -> None:
    shown = with_images(conversation(sa.ToolResult("c1", "look", [sa.TextPart("Blue:"), image()])))
    assert shown.endswith(
        "- `look(at='sky')` gave\n\n  ```text\n  Blue:\n  ```\n\n"
        "  ![image](data:image/png;base64,iVBORw0KGgo=)"
    )
    alone = with_images(conversation(sa.ToolResult("c1", "look", [image()])))
    assert alone.endswith(
        "- `look(at='sky')` gave\n\n  ![image](data:image/png;base64,iVBORw0KGgo=)"
    )


def test_the_images_of_people_and_models_are_shown_too() -> None:
    said = [sa.Message.user(["What is it?", image()]), sa.Message.user([image(9)])]
    said.append(sa.Message("assistant", (sa.TextPart("This:"), image(begins=b"GIF89a"))))
    found = sources(with_images(said))
    assert [source.partition(";")[0] for source in found] == [
        "data:image/png",
        "data:image/png",
        "data:image/gif",
    ]
    assert markdown(said) == "> What is it?\n\nThis:"


@pytest.mark.parametrize("text", ["Look:\n```python\nprint(1", "~~~~\n~~~\nx", "> ```\n> x"])
def test_code_that_was_cut_does_not_go_on_over_an_image(text: str) -> None:
    said = [sa.Message.assistant(text, [CALL])]
    said.append(sa.Message.tool([sa.ToolResult("c1", "look", [image()])]))
    assert len(sources(with_images(said))) == 1


@pytest.mark.parametrize(
    "part",
    [
        image(MOST_IMAGE + 1),
        sa.ImagePart(url="https://x.example/y.png"),
        sa.ImagePart(base64.b64encode(b"<svg onload='x'/>").decode(), "image/png"),
        sa.ImagePart("iVBORw0KGgo=) ![x](http://x/y"),
        image(begins=b"RIFF"),
    ],
)
def test_what_is_too_large_lies_elsewhere_or_is_no_image_is_named(part: sa.ImagePart) -> None:
    shown = with_images(conversation(sa.ToolResult("c1", "look", [part])))
    assert sources(shown) == []
    assert "[an image, shown in the panel and exports]" in shown


def test_what_a_cell_shows_is_not_kept_twice() -> None:
    drawn = sa.ToolResult("c1", "look", [image()], metadata={"shown_in_cell": True})
    assert sources(with_images(conversation(drawn))) == []


def test_of_too_many_images_the_newest_are_shown() -> None:
    drawn = [image(600_000 + n) for n in range(8)]
    said = [sa.Message.user(["Look:", part]) for part in drawn]
    found = sources(with_images(said))
    assert found == [f"data:image/png;base64,{part.data}" for part in drawn[4:]]
    assert sum(map(len, found)) < MOST_IMAGES
    # Of a whole conversation a page is told after each run: less of it.
    assert sources(latest_markdown(said).with_images(inert)) == found[-1:]
    largest = latest_markdown([sa.Message.user([image(MOST_IMAGE)])])
    assert len(sources(largest.with_images(inert))) == 1


@given(st.lists(st.sampled_from([*HOSTILE, *AROUND, *AROUND]), max_size=14).map("".join))
def test_what_a_model_or_a_tool_writes_becomes_no_image_beside_one_that_is(text: str) -> None:
    said = [sa.Message.user(text), sa.Message.assistant(text, [CALL])]
    said.append(sa.Message.tool([sa.ToolResult("c1", "look", [sa.TextPart(text), image()])]))
    said.append(sa.Message.assistant(text))
    assert set(sources(with_images(said))) <= {"data:image/png;base64,iVBORw0KGgo="}
    page = Page(markdown2html(with_images(said)))
    assert {found for found in page.live if found.split(" ")[0] != "img"} == set()


def test_a_transcript_is_cut_after_it_is_cleaned() -> None:
    secret = "hush-Zq81-very-secret-0042"
    call = sa.ToolCall("c", "echo", {"x": "w " * 20 + secret})
    long = "y" * 1_990 + secret
    messages = [
        sa.Message.user(f"Echo {secret}"),
        sa.Message.assistant("", [call]),
        sa.Message.tool([sa.ToolResult("c", "echo", long + "z" * 5_000)]),
        sa.Message.assistant(f"It is {secret}."),
    ]
    for told in (markdown, latest_markdown):
        assert "hush" not in told(messages, lambda text: text.replace(secret, "[key]"))
        assert "hush" in told(messages)
    assert "hush" not in title_of(messages, lambda text: text.replace(secret, "[key]"))
