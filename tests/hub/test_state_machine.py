"""Random lives of one thread, beside what must hold of all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Hub
from sagents_nb.hub.event_log import ThreadEvent
from sagents_nb.hub.threads import NothingWaits
from sagents_nb.loop.open_calls import doubtful_calls
from sagents_nb.models.base import ModelRequest
from tests.hub.world import chat, is_dense, kept_of, listening, rest
from tests.store.conftest import new_file
from tests.talking import until

STATUSES = ("registered", "running", "paused", "completed", "error", "canceled")
SAID = st.sampled_from(["talk", "act", "ask", "both", "fail"])


class Host(sa.ChatModel):
    """Does what it is told last: the word behind a number."""

    name = "host"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        last = request.messages[-1]
        await asyncio.sleep(0)
        kind = last.text.split()[-1] if last.role == "user" else "done"
        if kind == "fail":
            raise sa.ModelError("The cable is cut.")
        names = {"act": ["act"], "ask": ["ask"], "both": ["act", "ask", "ask"]}.get(kind, [])
        calls = [sa.ToolCall(f"{last.text} {n}", name, {}) for n, name in enumerate(names)]
        yield sa.Message.assistant("" if calls else f"re: {last.text}", tool_calls=calls)


class Life(RuleBasedStateMachine):
    """A thread, to which anything is done at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.files = contextlib.ExitStack()
        self.url = self.files.enter_context(new_file())
        self.ran: Counter[str] = Counter()
        self.said: list[str] = []
        self.due: set[str] = set()  # calls that were approved, and nothing came in their way
        self.denied: set[str] = set()
        self.told: list[ThreadEvent] = []

        async def work(ctx: sa.ToolContext) -> str:
            self.ran[ctx.tool_call_id] += 1
            await asyncio.sleep(0)
            return "done"

        self.system = AgentSystem(Host())
        for name in ("act", "ask"):
            self.system.add_tool(sa.tool(work, name=name, description=name))
        gated = {"hitl": {"tools": ["ask"]}}
        self.system.add_agent(Blueprint("clerk", "Work.", config=gated))
        self.hub = Hub(self.system, self.url)
        self.agency, _ = self.hub.create_agency()
        self.thread = self.hub.create_thread(self.agency, "clerk")
        self.heard = listening(self.thread)

    @rule(kind=SAID, is_patient=st.booleans())
    def invoke(self, kind: str, is_patient: bool) -> None:
        number = len(self.said)
        self.said.append(f"{number} {kind}")
        self.thread.invoke([sa.Message.user(self.said[-1])], idempotency_key=str(number))
        if is_patient:
            self.settle()

    @rule()
    def invoke_with_a_key_of_before(self) -> None:
        if self.said:
            self.thread.invoke([sa.Message.user("twice talk")], idempotency_key="0")

    @rule()
    def invoke_without_messages(self) -> None:
        self.thread.invoke()

    @rule(approved=st.booleans())
    def answer(self, approved: bool) -> None:
        waiting = self.thread.session.interrupt
        # Of what was at work as the hub was closed it is asked whether it ran.
        doubtful = doubtful_calls(waiting)
        answers = {id: "ran" if self.ran[id] else "did not run" for id in doubtful}
        ids = [id for id in waiting.tool_call_ids if id not in doubtful] if waiting else []
        with contextlib.suppress(NothingWaits):
            self.thread.approve(approved, {id: {} for id in ids}, answers, by="test")
            (self.due if approved else self.denied).update(ids)

    @rule()
    def cancel(self) -> None:
        waiting = self.thread.session.interrupt
        self.thread.cancel()
        self.due.clear()
        if waiting is not None:
            self.denied.update(set(waiting.tool_call_ids) - doubtful_calls(waiting))

    @rule()
    def reopen(self) -> None:
        self.due.clear()
        self.hub.close()
        assert self.heard[-1] is None
        self.told += kept_of(self.heard)
        self.hub = Hub(self.system, self.url)
        self.thread = self.hub.thread(self.agency, self.thread.record.id)
        # What it told as it was opened came before anybody could listen.
        self.told += self.hub.events(self.agency, self.thread.record.id, len(self.told))
        self.heard = listening(self.thread)

    @rule()
    def settle(self) -> None:
        def rests() -> bool:
            session = self.thread.session
            return rest(self.thread) != "completed" or not session.queued

        until(rests)
        assert all(self.ran[id] == 1 for id in self.due), "an approved call did not run"
        users = [text for role, text in chat(self.thread) if role == "user"]
        assert sorted(users) == sorted(self.said), "a message is lost, or there twice"

    @invariant()
    def it_is_one_of_six(self) -> None:
        assert self.thread.status in STATUSES
        assert not self.denied & self.ran.keys(), "a call ran that was denied"
        assert all(count == 1 for count in self.ran.values()), "a call ran twice"

    def teardown(self) -> None:
        self.settle()
        kept = self.hub.events(self.agency, self.thread.record.id)
        assert is_dense(kept)
        assert self.told + kept_of(self.heard) == kept
        self.hub.close()
        self.files.close()


Life.TestCase.settings = settings(
    max_examples=40, stateful_step_count=16, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # what depends on who is faster cannot be made smaller
TestLife = Life.TestCase
