"""One truth of each call: whoever shows it says the same, whatever happened to it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.calls import CallRecord, call_records
from sagents_nb.panel.publisher import Publisher
from sagents_nb.store import ConversationStore
from sagents_nb.transcript import markdown
from tests.middleware.delegating import helper, task
from tests.panel.pages import flush
from tests.session.stored import disk
from tests.talking import PATIENCE, agent_of, call, until

pd = pytest.importorskip("pandas")

CALL = sa.ToolCall("c1", "look", {"at": "sky"})


def record_of(result: sa.ToolResult | None) -> CallRecord:
    said = [sa.Message.tool([result])] if result else []
    (record,) = call_records([sa.Message.assistant("", [CALL]), *said])
    return record


def test_a_question_is_not_the_result_of_a_call() -> None:
    record = record_of(sa.ToolResult("c1", "look", "Where?", is_interrupt=True))
    assert (record.result, record.status) == (None, "interrupted")


def test_a_call_without_a_result_has_no_status_yet() -> None:
    record = record_of(None)
    assert (record.result, record.status, record.decision, record.edited) == (None,) * 4


def test_what_ran_and_what_was_asked_for_are_both_known() -> None:
    record = record_of(
        sa.ToolResult("c1", "look", "ok", metadata={"edited_arguments": {"at": "sea"}})
    )
    assert (record.call.arguments, record.arguments) == ({"at": "sky"}, {"at": "sea"})


def test_calls_of_one_id_have_their_own_results() -> None:
    def turn(text: str) -> Iterator[sa.Message]:
        yield sa.Message.assistant("", [CALL, CALL])
        yield sa.Message.tool(
            [sa.ToolResult("c1", "look", text), sa.ToolResult("c1", "look", f"{text} twin")]
        )

    texts = [r.result and r.result.text for r in call_records([*turn("a"), *turn("b")])]
    assert texts == ["a", "a twin", "b", "b twin"]


# Random conversations: each call is looked at in all places after each step.


@sa.tool
def note(text: str) -> str:
    """Note something."""
    if text == "bad":
        raise ValueError("That cannot be noted.")
    return f"noted {text}"


class Conversation:
    """A conversation in which people and pages do what they like."""

    def __init__(self, seed: int, store: ConversationStore) -> None:
        self.dice = random.Random(seed)
        self.store = store
        self.lingers = threading.Event()
        self.decided: list[tuple[str, str, str]] = []  # what people said: call, kind, by whom

        async def linger() -> str:
            self.lingers.set()
            await asyncio.sleep(PATIENCE)
            return "done"

        turns: list[Any] = []
        for _ in range(4):
            turns += [self.calls(), "Done."]
        gated = {"note": True}
        worker = helper(
            *[call("note", "n1", text="inside"), "Found."] * 8, tools=[note], interrupt_on=gated
        )
        self.agent = agent_of(
            *turns,
            *["Done."] * 8,
            tools=[note, sa.tool(linger), sa.tool(peek)],
            interrupt_on=gated,
            middleware=[sa.AskUser(), sa.SubAgents([worker])],
        )
        self.session = sa.Session(self.agent, "c1", store=store)
        self.page = Publisher(self.session)

    def calls(self) -> list[sa.ToolCall]:
        dice = self.dice
        ids = dice.sample(["c1", "c2", "c3", "c4"], dice.randint(1, 3))
        kinds = ["note", "note", "peek", "ask", "bad", dice.choice(["task", "linger"])]
        made = []
        for id, kind in zip(ids, dice.sample(kinds, len(ids)), strict=True):
            if kind == "ask":
                asked = {"question": f"Which {id}?", "response_type": "freeform"}
                made.append(call("ask_user", id, **asked))
            elif kind == "task":
                made.append(task(id))
            elif kind in ("note", "bad"):
                text = "bad" if kind == "bad" else f"{id}-{dice.random():.4f}"
                made.append(call("note", id, text=text))
            else:
                made.append(call(kind, id))
        return made

    def go(self) -> None:
        for _ in range(4):
            self.wait_for(self.session.send("go"))
            while self.session.status == "interrupted":
                self.look()
                self.do(self.dice.choice(["decide"] * 5 + ["part", "cancel", "restart", "reload"]))
            self.look()
        self.restart()
        self.look()

    def wait_for(self, run: sa.Run | None) -> None:
        """Until it has ended; what would take for ever is stopped."""
        if run is None:
            return
        until(lambda: run.done or self.lingers.is_set())
        if self.lingers.is_set():
            self.lingers.clear()
            self.session.cancel()
        run.result(PATIENCE)
        until(lambda: self.session.status != "running")

    def do(self, what: str) -> None:
        session = self.session
        interrupt = session.interrupt
        assert interrupt is not None
        waiting = list(interrupt.action_requests)
        open_ids = [r for r in waiting if r.tool_call_id not in self.taken()]
        if what == "cancel":
            session.cancel()
        elif what == "restart":
            self.restart()
        elif what == "reload":
            self.page = Publisher(session)
        else:
            some = open_ids[:1] if what == "part" else open_ids
            by = self.dice.choice(["ada", "bo"])
            said = {r.tool_call_id: self.decision(r) for r in some}
            self.decided += [(id, d.__struct_config__.tag, by) for id, d in said.items()]
            digests = {r.tool_call_id: r.digest for r in some}
            self.wait_for(session.decide(said, interrupt_id=interrupt.id, digests=digests, by=by))

    def taken(self) -> set[str]:
        return set(self.session.actor.approvals.taken)

    def decision(self, request: sa.ActionRequest) -> Any:
        dice = self.dice
        if request.tool_name == "ask_user":
            return dice.choice([sa.Respond(f"answer {dice.random():.4f}"), sa.Reject("No.")])
        edited = sa.Edit({"text": f"edited-{dice.random():.4f}"})
        return dice.choice([sa.Approve(), edited, sa.Reject("Not that.")])

    def restart(self) -> None:
        self.session.close()
        self.look_at_store()
        self.session = sa.Session.open("c1", agent=self.agent, store=self.store)
        self.page = Publisher(self.session)
        if self.session.status == "paused":
            self.wait_for(self.session.retry())

    # what is said of the calls, place by place

    def look(self) -> None:
        session = self.session
        flush(self.page)
        truth = truth_of(session)
        assert page_says(self.page.state) == truth
        again = Publisher(session)
        assert page_says(again.state) == truth
        assert frame_says(session.to_frame("tool_calls")) == without_decisions(truth)
        assert transcript_says(session.messages) == [
            (t["name"], shown(t["arguments"]), shown(t["asked"]), SHOWN[t["status"]]) for t in truth
        ]
        restored = sa.State.restore(session.export_state())
        assert call_records(restored.messages) == records_in(session)
        self.look_at_decisions(session.to_frame("decisions"))

    def look_at_decisions(self, frame: Any) -> None:
        own = [row for row in frame.to_dict("records") if "/" not in row["tool_call_id"]]
        said = Counter((row["tool_call_id"], row["decision"], row["by"]) for row in own)
        assert said == Counter(one for one in self.decided if "/" not in one[0])

    def look_at_store(self) -> None:
        truth = truth_of(self.session)
        told = without_decisions(truth)
        assert frame_says(self.store.to_frame("tool_calls")) == told
        rows = self.store.load_display_messages("c1")
        assert rows_say(rows) == [
            (t["id"], t["arguments"] if t["asked"] is None else t["asked"], ROW[t["status"]])
            for t in truth
        ]
        assert row_results(rows) == [t["result"] for t in truth if t["result"] is not None]
        self.look_at_decisions(self.store.to_frame("decisions"))


@sa.tool
def peek() -> str:
    """Look."""
    return "nothing"


SHOWN = {
    None: "waits",
    "completed": "gave",
    "failed": "failed",
    "interrupted": "waits",
    "rejected": "was rejected",
    "cancelled": "was cancelled",
    "skipped": "was skipped",
}
ROW = {s: s for s in SHOWN} | {None: "pending", "rejected": "failed", "skipped": "cancelled"}


def records_in(session: sa.Session) -> list[CallRecord]:
    return call_records(session.messages)


def of_last(session: sa.Session) -> list[CallRecord]:
    """Those whose message is the last: they have no result yet."""
    return call_records(session.messages[-1:])


def truth_of(session: sa.Session) -> list[dict[str, Any]]:
    """What is to be said of each call, also of those that were decided while others wait."""
    asked, last = session.state.interrupt, of_last(session)
    return [said_of(record, asked, record in last) for record in records_in(session)]


def said_of(record: CallRecord, interrupt: Any, is_last: bool) -> dict[str, Any]:
    """What every place has to say of a call."""
    waits = is_last and interrupt is not None and record.call.id in interrupt.tool_call_ids
    result, decision = record.result, record.decision or {}
    return {
        "id": record.call.id,
        "name": record.call.name,
        "arguments": record.arguments,
        "asked": None if record.edited is None else record.call.arguments,
        "status": "interrupted" if waits else record.status,
        "result": result.text if result else None,
        "decision": (decision.get("type"), decision.get("by")),
    }


def page_says(state: dict[str, Any]) -> list[dict[str, Any]]:
    """As ``widgets/src/tool-card.tsx`` reads it."""
    said, owners = [], {}
    entries = state["entries"]
    for place, entry in enumerate(entries):
        for part in entry["message"].get("parts", ()):
            if part["type"] == "tool_call":
                owners[part["id"]] = place
    for place, entry in enumerate(entries):
        after = entries[place + 1 : place + 2]
        found = {
            part["tool_call_id"]: part
            for other in after
            for part in other["message"].get("parts", ())
            if part["type"] == "tool_result"
        }
        for part in entry["message"].get("parts", ()):
            if part["type"] != "tool_call":
                continue
            id, result = part["id"], found.get(part["id"])
            mine = owners[id] == place
            info = state["tools"].get(id) if mine else None
            edited = ((result or {}).get("metadata") or {}).get("edited_arguments")
            asks = result is not None and result.get("is_interrupt", False)
            decided = (state["decided"].get(id) if mine else None) or (result or {}).get("decision")
            asked = {
                r["tool_call_id"] for r in (state["interrupt"] or {}).get("action_requests", ())
            }
            if (mine and id in asked) or asks:
                status = "interrupted"
            elif info:
                status = info["status"]
            elif result is not None:
                failed = "failed" if result.get("is_error") else "completed"
                status = result.get("status") or failed
            else:
                status = None
            if result is None or asks:  # who waits is not shown what one of several has said
                decided = None
            said.append(
                {
                    "id": id,
                    "name": part["name"],
                    "arguments": edited if edited is not None else part.get("arguments", {}),
                    "asked": None if edited is None else part.get("arguments", {}),
                    "status": status,
                    "result": None if result is None or asks else result["content"],
                    "decision": (decided["type"], decided["by"]) if decided else (None, None),
                }
            )
    return said


def frame_says(frame: Any) -> list[dict[str, Any]]:
    """The rows of the agent's own calls; decisions have a frame of their own."""
    own = frame[frame["sub_agent"].isna()]
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in own.to_dict("records")
    ]
    return [
        {
            "id": row["tool_call_id"],
            "name": row["name"],
            "arguments": json.loads(row["arguments"]),
            "asked": row["asked"] and json.loads(row["asked"]),
            "status": row["status"],
            "result": row["result"],
        }
        for row in rows
    ]


_LINE = re.compile(
    r"^- `(\w+)\((.*?)\)`(?: \(edited by `\w+`; the model asked for `\w+\((.*?)\)`\))? "
    r"(waits|gave|failed|was \w+)",
    re.M,
)


def transcript_says(messages: Any) -> list[tuple[Any, ...]]:
    return [
        (name, ran, asked, word) for name, ran, asked, word in _LINE.findall(markdown(messages))
    ]


def rows_say(rows: Any) -> list[tuple[Any, ...]]:
    """The rows of calls: with what the model asked for, as it was shown then."""
    return [
        (row.content["call_id"], row.content["arguments"], row.status)
        for row in rows
        if row.content_type == "tool_call"
    ]


def row_results(rows: Any) -> list[str]:
    return [
        row.content["content"]
        for row in rows
        if row.content_type == "tool_result" and not row.content.get("is_interrupt")
    ]


def without_decisions(truth: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: said for name, said in t.items() if name != "decision"} for t in truth]


def shown(arguments: dict[str, Any] | None) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in (arguments or {}).items())


def hold_to_one_truth(seed: int) -> None:
    with disk() as place:
        Conversation(seed, place.store()).go()


@pytest.mark.parametrize("seed", range(40))
def test_everybody_says_the_same_of_each_call(seed: int) -> None:
    hold_to_one_truth(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 500, 50))
def test_everybody_says_the_same_of_each_call_for_long(first: int) -> None:
    for seed in range(1000 + first, 1050 + first):
        hold_to_one_truth(seed)
