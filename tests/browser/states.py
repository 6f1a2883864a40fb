"""The states that the panel can be in, all below the cells of one notebook.

A test has :func:`opened` make a notebook of them, and looks at the panel of each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Locator, Page, expect

import sagents_nb as sa
from tests.browser.lab import Lab, NotebookPage
from tests.talking import PATIENCE, call

REPORT = r"""# Penguins

Three species, **344** birds, from the [data set](https://example.org/penguins). Heaviest: *Gentoo*.

| Species | Birds | Mass (g) |
|---|--:|--:|
| Adelie | 152 | 3,701 |
| Chinstrap | 68 | 3,733 |
| Gentoo | 124 | 5,076 |

## Method

1. Read `penguins.csv`
2. Group by species, with $\bar{x} = \frac{1}{n}\sum x_i$

```python
@cache  # of each species
def means(frame: pd.DataFrame, digits=1) -> dict:
    found = frame.groupby("species")["body_mass_g"].mean().round(digits)
    return dict(found) if len(found) > 2 else {}
```

> Two rows had no sex; they are kept.
"""
SPECIES = "Compare the penguin species."
SETUP = f"SPECIES, REPORT = {SPECIES!r}, {REPORT!r}"
SETUP += r'''
%load_ext sagents_nb
import asyncio
import sagents_nb as sa
from sagents_nb import Message, ScriptedModel, ThinkingDelta, ToolCall
from sagents_nb.notebook import NotebookTools
from sagents_nb.notebook.widget import run_view

class Writing(sa.ChatModel):
    "Has begun an answer, and never ends it."
    name = "writing"
    async def stream(self, request):
        yield ThinkingDelta("The masses differ by species, so I group by it.")
        yield REPORT[:REPORT.index("## Method")]
        await asyncio.Event().wait()

CSV = "species,birds,mass\nAdelie,152,3701\nChinstrap,68,3733\nGentoo,124,5076\n"
CODE = """import pandas as pd

# Mean body mass of each species
frame = pd.read_csv("penguins.csv")
frame.groupby("species")["body_mass_g"].mean().round(0)"""
PLAN = [("Look at the data", "completed"), ("Compare the species", "in_progress"),
        ("Write the report", "pending"), ("Ask for a second opinion", "cancelled")]

@sa.tool
def count_rows(by: str) -> str:
    "Count."
    if by == "colour":
        raise ValueError("There is no column 'colour'; there are species, island and sex.")
    return f"152, 68 and 124 by {by}"

@sa.tool
def pay(to: str, amount: float, note: str = "") -> str:
    "Pay."
    return "paid"

@sa.tool
async def hold() -> str:
    "Wait."
    await asyncio.Event().wait()

def todos(items):
    listed = [dict(id=i, content=c, status=s) for i, (c, s) in enumerate(items, 1)]
    return ToolCall("t1", "write_todos", dict(merge=False, todos=listed))

def write(path, content, id="w1", **more):
    return ToolCall(id, "write_file", dict(file_path=path, content=content, **more))

def session(*turns, ask=(), files={}, **options):
    agent = sa.Agent(ScriptedModel(turns, chunk=1000), tools=[count_rows, pay, hold],
                     interrupt_on={name: True for name in ask}, **options)
    made = sa.Session(agent)
    for path, text in files.items():
        made.files.write(path, text)
    return made

def said(session, *prompts):
    "The session, after these were answered."
    for prompt in prompts:
        session.send(prompt).result(30)
    return session

def saying(session, prompt):
    "The session, which is about to answer."
    session.send(prompt)
    return session

RENT = ToolCall("p1", "pay", dict(to="landlord", amount=900.0, note="rent"))
ODD = ToolCall("p2", "pay", dict(to="l\u0430ndlord", amount=1e20, note="rent\u200b"))
MENDED = ToolCall("e1", "edit_file",
                  dict(file_path="/plan.md", old_string="two", new_string="three"))
COUNT = [["I count them.", ToolCall("c1", "count_rows", {"by": "island"})], "There are **three**."]
'''


@dataclass(frozen=True)
class State:
    """A cell whose output is a panel, and how the panel gets from there into the state."""

    source: str
    reach: Callable[[Locator], None]


def shown(*selectors: str) -> Callable[[Locator], None]:
    """Nothing is to be done but to wait until these are seen."""

    def reach(panel: Locator) -> None:
        for selector in selectors:
            expect(panel.locator(selector).first).to_be_visible()

    return reach


def pressed(*selectors: str) -> Callable[[Locator], None]:
    """All of these but the last are clicked, one after the other; the last is then seen."""

    def reach(panel: Locator) -> None:
        for selector in selectors[:-1]:
            panel.locator(selector).first.click()
        expect(panel.locator(selectors[-1]).first).to_be_visible()

    return reach


def asked(*texts: str, then: Callable[[Locator], None]) -> Callable[[Locator], None]:
    """These are written to the agent, and then something else."""

    def reach(panel: Locator) -> None:
        composer = panel.get_by_test_id("composer")
        for text in texts:
            composer.fill(text)
            composer.press("Enter")
            expect(composer).to_have_value("")
        then(panel)

    return reach


def unfolded(panel: Locator) -> None:
    """All calls are open."""
    folds = panel.locator("details:not([open]) > summary")
    expect(folds.first).to_be_visible()
    while folds.count():
        folds.first.click()


def scrolled_to_the_top(panel: Locator) -> None:
    """The reader has gone from the newest to the oldest message that is here."""
    expect(panel.get_by_text("Answer 149.")).to_be_in_viewport()
    earlier = panel.get_by_test_id("earlier")
    panel.get_by_role("log").hover()
    panel.page.mouse.wheel(0, -100_000)
    expect(earlier).to_be_in_viewport()


def of(name: str) -> str:
    """The selector of a test id."""
    return f"[data-testid={name}]"


STATES: Mapping[str, State] = {
    "empty": State("session()", shown(of("composer"), ".sagents-empty")),
    "streaming": State(
        "saying(sa.Session(sa.Agent(Writing())), SPECIES)",
        shown(f"{of('partial')} table", of("stop")),
    ),
    "stopped": State(
        "saying(sa.Session(sa.Agent(Writing())), SPECIES)",
        pressed(f"{of('partial')} table", of("stop"), of("retry")),
    ),
    "conversation": State(
        """said(session(["I look at the data.", ToolCall("c1", "count_rows", {"by": "species"}),
    ToolCall("c2", "count_rows", {"by": "colour"})], REPORT), SPECIES)""",
        shown("math", ".hljs-comment", "[data-status=failed]"),
    ),
    "approval-diff": State(
        """mended = write("/report.md", REPORT.replace("344", "342"), overwrite=True)
said(session(["I mend it.", mended], ask=["write_file"], files={"/report.md": REPORT}),
    "Two birds are not penguins.")""",
        shown(of("approve"), ".sagents-diff-added"),
    ),
    "approval-code": State(
        """said(session(["I compute.", ToolCall("p1", "run_python", {"code": CODE})],
    middleware=[NotebookTools()], ask=["run_python"]), "What are the means?")""",
        shown(of("approve"), ".hljs-string"),
    ),
    "approval-form": State(
        'said(session([RENT, ODD], ask=["pay"]), "Pay the rent.")',
        shown(of("approve-all"), ".sagents-hidden-character"),
    ),
    "approval-edited": State(
        'said(session(RENT, ask=["pay"]), "Pay the rent.")', pressed(of("edit"), of("edit-save"))
    ),
    "approval-rejected": State(
        'said(session(RENT, ask=["pay"]), "Pay the rent.")',
        pressed(of("reject"), of("reject-message")),
    ),
    "decided": State(
        """s = said(session([write(f"/{name}.md", "# A", name) for name in "abc"], "So be it.",
    ask=["write_file"]), "Write three files.")
better = sa.Edit({"file_path": "/b.md", "content": "# B"})
s.resume([sa.Approve(), better, sa.Reject("Not on a Sunday.")]).result(30)
s""",
        unfolded,
    ),
    "question": State(
        """said(session(ToolCall("q1", "ask_user", dict(question="Which shall I compare?",
    response_type="multi_select", allow_other=True, context="There are three species.",
    options=[dict(label=name, value=name) for name in ("Adelie", "Chinstrap", "Gentoo")])),
    middleware=[sa.AskUser()]), SPECIES)""",
        pressed(f"{of('answer-option')} >> nth=1", of("answer-send")),
    ),
    "error": State(
        'saying(session(sa.ModelError("The key was refused; set ANTHROPIC_API_KEY.")), SPECIES)',
        shown(of("retry"), ".sagents-error-text, .sagents-banner-error"),
    ),
    "to-dos": State(
        'saying(session(["I plan.", todos(PLAN)], ToolCall("h1", "hold", {})), SPECIES)',
        shown(f"{of('todo')}[data-status=cancelled]", "[data-tool=hold]"),
    ),
    "sub-agents": State(
        """helpers = [sa.CompiledSubAgent(name, "Counts.", sa.Agent(ScriptedModel(COUNT),
    tools=[count_rows])) for name in ("helper", "other")]
tasks = [ToolCall(agent.name, "task", {"instructions": "Count the penguins by island.",
    "subagent_type": agent.name}) for agent in helpers]
said(session(tasks, "Both count three islands.", subagent_options={"subagents": helpers}),
    "Have them counted twice.")""",
        pressed("[data-tool=task] summary", f"{of('agent-stream')} [data-tool=count_rows]"),
    ),
    "files": State(
        """session([write("/notes/new.md", "# New"), MENDED,
    ToolCall("d1", "delete_file", dict(file_path="/old.md"))], "Done.",
    files={"/old.md": "old", "/plan.md": "one\\ntwo\\n", "/data/penguins.csv": CSV})""",
        asked("Tidy up.", then=shown("[data-kind=deleted]", "[data-kind=new]")),
    ),
    "file": State(
        'said(session(write("/report.md", REPORT), "The report is written."), "Write a report.")',
        pressed("[data-path='/report.md']", f"{of('file-viewer')} table"),
    ),
    "file-changes": State(
        'session(MENDED, "Done.", files={"/plan.md": "one\\ntwo\\n"})',
        asked(
            "Mend the plan.",
            then=pressed(
                "[data-path='/plan.md']:has([data-kind])", of("file-compare"), of("file-changes")
            ),
        ),
    ),
    "table": State(
        'said(session("It is there.", files={"/penguins.csv": CSV}), "Where is the data?")',
        pressed("[data-path='/penguins.csv']", f"{of('file-viewer')} td"),
    ),
    "branches": State(
        """s = said(session("The heaviest are Gentoo.", "On Biscoe.", "By median, Gentoo too."),
    "Which species is the heaviest?", "Where do they live?")
s.send("Which species is the heaviest, by median?", instead_of=0).result(30)
s""",
        shown(of("branches")),
    ),
    "editing": State(
        'said(session("The heaviest are Gentoo."), "Which species is the heaviest?")',
        pressed(of("edit"), of("editing")),
    ),
    "queue": State(
        'session(ToolCall("h1", "hold", {}))',
        asked(SPECIES, "And by island.", "In grams.", then=shown(f"{of('queued')} >> nth=1")),
    ),
    "earlier": State(
        """asked = [m for n in range(150) for m in (Message.user(f"Question {n}"),
    Message.assistant(f"Answer {n}."))]
sa.Session(sa.Agent(ScriptedModel([])), state=sa.State(messages=asked))""",
        scrolled_to_the_top,
    ),
    "models": State("session()", pressed(of("model"), of("model-choice"))),
    "run": State(
        # A view keeps no session alive, and another state may have the name "s".
        """planned = said(session(["I plan.", todos(PLAN)],
    ["I write.", write("/report.md", REPORT)],
    ask=["write_file"], files={"/plan.md": "one"}), SPECIES)
run_view(planned, planned.current_run.id)""",
        shown(of("approve"), of("todo")),
    ),
    "closed": State(
        's = said(session("Good bye."), "That is all.")\ns.close()\ns',
        shown("[data-status=closed]"),
    ),
}


def opened(lab: Lab, names: Iterable[str]) -> dict[str, Locator]:
    """A notebook with a panel in each of these states, and the panels."""
    names = list(names)
    notebook = lab.open([SETUP, *(STATES[name].source for name in names)])
    notebook.run_all()
    notebook.wait_for_cell(len(names))
    panels = {}
    for place, name in enumerate(names, start=1):
        panels[name] = notebook.cell(place).get_by_test_id("sagents-panel")
        panels[name].scroll_into_view_if_needed()
        STATES[name].reach(panels[name])
    return panels


def exported() -> str:
    """The page of a conversation in which all happened that a page tells of."""

    @sa.tool
    def count_rows(by: str) -> str:
        "Count."
        if by == "colour":
            raise ValueError("There is no column 'colour'; there are species, island and sex.")
        return f"152, 68 and 124 by {by}"

    counts = [["I count them.", call("count_rows", by="island")], "There are **three** islands."]
    helper = sa.CompiledSubAgent(
        "helper", "Counts.", sa.Agent(sa.ScriptedModel(counts), tools=[count_rows])
    )
    plan = [("Compare", "completed"), ("Write", "in_progress"), ("Ask again", "cancelled")]
    todos = [{"id": n, "content": what, "status": how} for n, (what, how) in enumerate(plan, 1)]
    task = {"instructions": "Count by island.", "subagent_type": "helper"}
    thought = sa.ThinkingPart("The masses differ by species, so I group by it.")
    turns = [
        sa.Message.assistant([thought], [call("write_todos", merge=False, todos=todos)]),
        ["I look.", call("count_rows", by="species"), call("count_rows", "c2", by="colour")],
        ["Two files.", call("task", "t1", **task)],
        [
            call("write_file", "w1", file_path="/report.md", content=REPORT),
            call("write_file", "w2", file_path="/other.txt", content="No."),
        ],
        REPORT,
        sa.ModelError("The key was refused; set ANTHROPIC_API_KEY."),
    ]
    agent = sa.Agent(
        sa.ScriptedModel(turns),
        tools=[count_rows],
        interrupt_on={"write_file": True},
        subagent_options={"subagents": [helper]},
    )
    session = sa.Session(agent, id="penguins")
    session.send(SPECIES).result(PATIENCE)
    session.resume([sa.Approve(), sa.Reject("Not on a Sunday.")]).result(PATIENCE)
    with contextlib.suppress(sa.ModelError):
        session.send("And by island?").result(PATIENCE)
    return session.to_html() or ""


@contextlib.contextmanager
def exported_page(
    browser: Browser, folder: Path, theme: Literal["light", "dark"]
) -> Iterator[Page]:
    """That page, open in a window of its own."""
    path = folder / "penguins.html"
    path.write_text(exported(), encoding="utf-8")
    # The page's own policy would keep out what a test adds to look at it.
    context = browser.new_context(color_scheme=theme, bypass_csp=True)
    page = context.new_page()
    page.goto(path.as_uri())
    yield page
    context.close()


@contextlib.contextmanager
def themes(notebook: NotebookPage) -> Iterator[None]:
    """Whatever is done to the theme, the next test finds it light: it is the server's."""
    try:
        yield
    finally:
        notebook.set_theme("light")
