"""The widget and its session: a panel shows it, and does not keep it."""

from __future__ import annotations

import gc
import html
import json
import re
import weakref
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.notebook.widget import Panel, frozen_bundle, live_bundle, panel_of, show
from sagents_nb.runtime.thread import runtime
from sagents_nb.transcript import MOST
from tests.panel.pages import session_of
from tests.talking import until


def hello(panel: Panel) -> None:
    """A page says hello."""
    data = {"method": "custom", "content": {"type": "hello", "have": 0}}
    panel.comm.handle_msg({"content": {"data": data}, "buffers": []})
    runtime.call(lambda: None)  # it has been handled


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The types of the messages that panels send, but for those of other tests' sessions."""
    gc.collect()
    runtime.call(lambda: None)
    types: list[str] = []
    monkeypatch.setattr(
        Panel, "send", lambda _, message, buffers=None: types.append(message["type"])
    )
    return types


def test_what_shows_a_session_does_not_keep_it_alive(sent: list[str]) -> None:
    session = session_of("One.")
    view, panel = sa.ChatView(session), panel_of(session)
    hello(panel)
    show(session, "display", live_bundle(session), frozen_bundle)
    session.send("Go").result()
    assert session.viewers == [f"panel-{panel.model_id}"]
    reference, name = weakref.ref(session), repr(view)
    del session
    until(lambda: gc.collect() >= 0 and reference() is None)
    until(lambda: sent[-1] == "closed")  # which the page is told at once
    assert repr(view) == name
    assert view.mimebundle("x")[0]["text/plain"] == name
    hello(panel)
    assert sent[-2:] == ["snapshot", "closed"]


def test_a_page_that_is_loaded_again_is_shown_the_last_of_a_session_that_nobody_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gc.collect()
    runtime.call(lambda: None)
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(Panel, "send", lambda _, message, buffers=None: sent.append(message))
    write = sa.ToolCall("w1", "write_file", {"file_path": "/a.md", "content": "A"})
    session = session_of(["I plan.", write], gate=True)
    panel = panel_of(session)
    session.send("Go").result()
    reference = weakref.ref(session)
    del session
    until(lambda: gc.collect() >= 0 and reference() is None)
    until(lambda: sent)
    assert [message["type"] for message in sent] == ["closed"]
    hello(panel)
    state = sent[1]["state"]
    assert sent[2] == {"type": "closed"}
    assert state["status"] == "closed"
    assert state["interrupt"] is None, "nobody could answer it"
    parts = [part for entry in state["entries"] for part in entry["message"]["parts"]]
    assert [part["text"] for part in parts if part["type"] == "text"] == ["Go", "I plan."]


@pytest.mark.parametrize(("name", "has"), [("math", b"mathml"), ("colours", b"colour")])
def test_what_sets_formulas_and_colours_code_is_sent_when_a_page_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, name: str, has: bytes
) -> None:
    sent: list[tuple[dict[str, str], list[bytes]]] = []
    monkeypatch.setattr(Panel, "send", lambda _, message, buffers: sent.append((message, buffers)))
    panel = sa.ChatView(session_of("One."))
    data = {"method": "custom", "content": {"type": name}}
    panel.comm.handle_msg({"content": {"data": data}, "buffers": []})
    runtime.call(lambda: None)
    [(message, [script])] = sent
    assert message == {"type": name}
    assert re.search(rb"export\{[^}]*\b" + has + rb"\b", script)


@pytest.mark.parametrize("questions", [5_000, 1])
def test_of_10_000_messages_the_notebook_keeps_the_latest_and_a_word_on_the_others(
    questions: int,
) -> None:
    answer = sa.Message.assistant("word " * 100)
    said = [m for n in range(5_000) for m in (sa.Message.user(f"{n}?"), answer)]
    if questions == 1:
        said = [said[0], *[answer] * 9_999]
    session = sa.Session(sa.Agent(sa.ScriptedModel([])), state=sa.State(messages=said))
    for data, _ in (live_bundle(session), panel_of(session)._repr_mimebundle_()):
        text = data.get("text/markdown") or html.unescape(data["text/html"])
        assert "earlier messages are not shown here; to_frame('messages') has them." in text
        assert text.rstrip().removesuffix("</pre></details>").endswith("word")
        assert len(json.dumps(data)) < 2.2 * MOST
    everything = frozen_bundle(session)[0]["text/markdown"]
    assert "> 0?" in everything, "who freezes it wants all"
    assert everything.count("word") == sum(100 for m in said if m.role == "assistant")
    assert len(session.to_frame("messages")) == 10_000


def test_a_session_has_one_panel_that_a_page_still_finds_when_it_is_closed(
    sent: list[str],
) -> None:
    session = session_of("One.")
    panel = panel_of(session)
    session.send("Go").result()
    session.close()
    gc.collect()
    assert panel_of(session) is panel
    hello(panel)
    assert sent == ["snapshot", "closed"]


def test_a_page_changes_no_trait() -> None:
    panel = panel_of(session_of("One."))
    before = panel.get_state()
    state = {"session_id": "other", "_esm": "export default {}", "source": "anywidget:x"}
    data = {"method": "update", "state": state, "buffer_paths": []}
    panel.comm.handle_msg({"content": {"data": data}, "buffers": []})
    assert panel.get_state() == before


def test_a_panel_that_a_page_has_closed_is_made_anew_when_it_is_shown_again() -> None:
    session = session_of("One.")
    panel = panel_of(session)
    hello(panel)
    panel.comm.handle_close({})
    until(lambda: session.viewers == [])
    again = panel_of(session)
    assert again is not panel
    hello(again)
    assert session.viewers == [f"panel-{again.model_id}"]
