"""A tool runs exactly if its last word was approve or edit, once, with the arguments shown.

Random histories, each from its own seed: turns with gated and free calls, decisions one by one, for
the rest, by position and by name, repeated and stale ones, edits, messages instead of answers,
forks, reopenings, and another process that takes the conversation over.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from tests.talking import PATIENCE

Ran = list[tuple[str, str, int]]
"""What was run: the session, the call's own key, and its argument."""


class Caller(sa.ChatModel):
    """Calls what a message says, as "act:k1:5 free:k2:6", and is done after the results."""

    name = "caller"

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        last = request.messages[-1]
        if last.role == "tool" or ":" not in last.text:
            yield sa.Message.assistant("done")
            return
        calls = []
        for word in last.text.split():
            name, key, n = word.split(":")
            calls.append(sa.ToolCall(f"call-{key}", name, {"key": key, "n": int(n)}))
        yield sa.Message.assistant("", calls)


class Words:
    """What is known of one session: the calls of its turn that waits, and what was said of each."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[str, str, int]] = {}  # id → tool, key, n
        self.said: dict[str, sa.Decision] = {}

    def open(self) -> list[str]:
        return [i for i, (tool, *_) in self.calls.items() if tool == "act" and i not in self.said]

    def copy(self) -> Words:
        other = Words()
        other.calls = dict(self.calls)
        return other


class History:
    """One random history, and what must have run by now."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.url = f"sqlite:///{folder / 'c.db'}"
        self.stores = [sa.ConversationStore(self.url)]
        self.keys = itertools.count()
        self.ran: Ran = []
        self.expected: Ran = []
        self.agent = sa.Agent(
            Caller(),
            tools=[self.tool("act"), self.tool("free")],
            interrupt_on={"act": True},
            replace_default_middleware=True,
        )
        first = sa.Session(self.agent, id="s0", store=self.stores[0])
        self.sessions: list[tuple[sa.Session, Words]] = [(first, Words())]
        self.shown: dict[tuple[str, str], sa.Interrupt] = {}

    def tool(self, name: str) -> sa.Tool:
        def act(ctx: sa.ToolContext, key: str, n: int) -> str:
            self.ran.append((ctx.session_id, key, n))
            return f"{key} {n}"

        return sa.tool(name=name)(act)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            session, words = self.random.choice(self.sessions)
            if session.status == "interrupted":
                self.note(session)
                often = [self.decide, self.decide, self.decide, self.rest, self.rest, self.seen]
                other = [self.repeat, self.outdated, self.fork, self.reopen, self.take_over]
                step = self.random.choice([*often, *other, self.drop])
            else:
                step = self.random.choice([self.send, self.send, self.send, self.reopen])
            step(session, words)
            assert sorted(self.ran) == sorted(self.expected), step.__name__

    def close(self) -> None:
        for session, _ in self.sessions:
            session.close()
        for store in self.stores:
            store.close()

    def note(self, session: sa.Session) -> None:
        """Remember the question: somebody may still have it on a screen later."""
        assert session.interrupt is not None
        self.shown.setdefault((session.id, session.interrupt.id), session.interrupt)

    # steps

    def send(self, session: sa.Session, words: Words) -> None:
        calls = {}
        for _ in range(self.random.randint(1, 4)):
            key = f"k{next(self.keys)}"
            tool = self.random.choice(["act", "act", "free"])
            calls[f"call-{key}"] = (tool, key, self.random.randint(0, 9))
        text = " ".join(f"{tool}:{key}:{n}" for tool, key, n in calls.values())
        result = session.send(text).result(PATIENCE)
        words.calls, words.said = calls, {}
        if words.open():
            assert result.status == "interrupted"
        else:
            self.happen(session, words)

    def decision(self, words: Words, id: str) -> sa.Decision:
        kind = self.random.choice(["approve", "approve", "reject", "edit"])
        if kind == "edit":
            _, key, n = words.calls[id]
            return sa.Edit({"key": key, "n": n + 100})
        return sa.Approve() if kind == "approve" else sa.Reject("no")

    def take(self, session: sa.Session, words: Words, given: dict[str, Any], running: Any) -> None:
        words.said.update(given)
        if words.open():
            assert running is None
            return
        assert running is not None
        running.result(PATIENCE)
        self.happen(session, words)

    def happen(self, session: sa.Session, words: Words) -> None:
        """All is decided: what was approved or edited has run, and what needs no approval."""
        for id, (tool, key, n) in words.calls.items():
            said = words.said.get(id)
            if tool == "free" or isinstance(said, sa.Approve):
                self.expected.append((session.id, key, n))
            elif isinstance(said, sa.Edit):
                self.expected.append((session.id, key, said.arguments["n"]))
        words.calls, words.said = {}, {}

    def decide(self, session: sa.Session, words: Words) -> None:
        id = self.random.choice(words.open())
        decision = self.random.choice([sa.Approve(), sa.Reject("no")])
        approved = isinstance(decision, sa.Approve)
        running = session.approve(id) if approved else session.reject(id)
        self.take(session, words, {id: decision}, running)

    def rest(self, session: sa.Session, words: Words) -> None:
        ids = words.open()
        given: dict[str, Any] = {id: self.decision(words, id) for id in ids}
        way = self.random.choice(["one", "list", "dict"])
        if way == "one":
            given = dict.fromkeys(ids, self.random.choice([sa.Approve(), sa.Reject("no")]))
            running = session.resume(given[ids[0]])
        else:
            running = session.resume(list(given.values()) if way == "list" else given)
        self.take(session, words, given, running)

    def seen(self, session: sa.Session, words: Words) -> None:
        """As the panel answers: what was shown, with its digest."""
        assert session.interrupt is not None
        digests = {r.tool_call_id: r.digest for r in session.interrupt.action_requests}
        ids = self.random.sample(words.open(), self.random.randint(1, len(words.open())))
        given: dict[str, Any] = {id: self.decision(words, id) for id in ids}
        running = session.decide(
            given, interrupt_id=session.interrupt.id, digests=digests, by="ann"
        )
        self.take(session, words, given, running)

    def repeat(self, session: sa.Session, words: Words) -> None:
        if not words.said:
            return
        id = self.random.choice(list(words.said))
        with pytest.raises(sa.StaleApproval):
            session.approve(id)
        with pytest.raises(sa.StaleApproval):
            session.resume(dict.fromkeys([id, *words.open()], sa.Approve()))

    def outdated(self, session: sa.Session, words: Words) -> None:
        """An answer to a question that was shown before, or in another session."""
        assert session.interrupt is not None
        now = (session.id, session.interrupt.id)
        old = [interrupt for place, interrupt in self.shown.items() if place != now]
        if not old:
            return
        shown = self.random.choice(old)
        digests = {r.tool_call_id: r.digest for r in shown.action_requests}
        given = dict.fromkeys(digests, sa.Approve())
        with pytest.raises(sa.StaleApproval):
            session.decide(given, interrupt_id=shown.id, digests=digests, by="bob")
        mine = session.interrupt
        common = given.keys() & set(mine.tool_call_ids)
        if common:
            with pytest.raises(sa.StaleApproval):
                session.decide(
                    dict.fromkeys(common, sa.Approve()),
                    interrupt_id=mine.id,
                    digests=digests,
                    by="bob",
                )

    def fork(self, session: sa.Session, words: Words) -> None:
        id = f"s{len(self.sessions)}"
        store = self.random.choice([None, self.stores[-1]])
        if store is None:
            made = sa.Session.restore(session.export_state(), agent=self.agent, id=id)
        else:
            made = sa.Session(self.agent, id=id, state=session.state, store=store)
        self.sessions.append((made, words.copy()))

    def reopen(self, session: sa.Session, words: Words) -> None:
        store = session.options.store
        if store is None:
            return
        session.close()
        self.replace(session, sa.Session.open(session.id, agent=self.agent, store=store))

    def take_over(self, session: sa.Session, words: Words) -> None:
        if session.options.store is None:
            return
        store = sa.ConversationStore(self.url)  # as another process has
        self.stores.append(store)
        made = sa.Session.open(session.id, agent=self.agent, store=store, take_over=True)
        self.replace(session, made)
        open_ids = words.open()
        with pytest.raises((sa.StoreError, sa.NotRunning)):  # who had it cannot decide any more
            session.approve(self.random.choice(open_ids))

    def replace(self, old: sa.Session, new: sa.Session) -> None:
        self.sessions = [(new if s is old else s, words) for s, words in self.sessions]

    def drop(self, session: sa.Session, words: Words) -> None:
        """No answer: the calls are cancelled, whatever was said of some of them."""
        words.calls, words.said = {}, {}
        if self.random.random() < 0.5:
            session.cancel()
        else:
            session.send("never mind").result(PATIENCE)


@pytest.mark.spec("P4")
@pytest.mark.parametrize("seed", range(20))
def test_what_ran_is_what_was_decided(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    history.run(20)
    history.close()


@pytest.mark.soak
@pytest.mark.parametrize("block", range(40))
def test_what_ran_is_what_was_decided_in_2000_histories(block: int, tmp_path: Path) -> None:
    for seed in range(1000 + block * 50, 1050 + block * 50):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = History(seed, folder)
        history.run(20)
        history.close()
