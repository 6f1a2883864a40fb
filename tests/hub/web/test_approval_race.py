"""Two pages, HTTP, AG-UI and Python answer one question at the same moment: one of them does."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint, Thread
from sagents_nb.hub.threads import NothingWaits
from tests.hub.houses import still
from tests.hub.web.served import Served, serving
from tests.talking import PATIENCE, call, in_threads

ROUNDS_OF_A_THREAD = 50


class Race:
    """One thread that asks again and again, and five who answer, each with other words."""

    def __init__(self, served: Served, number: int, stack: contextlib.ExitStack) -> None:
        self.served = served
        name = f"tab-{number}"
        self.thread: Thread = served.hub.named_thread(served.agency, "clerk", name)
        self.path = served.path(self.thread.record.id)
        self.agui = {"threadId": name, "runId": "run", "messages": []}
        self.clients = [stack.enter_context(served.client_of(served.secret)) for _ in range(2)]
        self.pages = []
        self.numbers = itertools.count()
        for _ in range(2):
            page = stack.enter_context(served.socket(f"{self.path}/stream"))
            page.send(json.dumps({"type": "hello", "have": 0}))
            self.pages.append(page)

    @property
    def waiting(self) -> dict[str, Any]:
        """What is asked, as everybody sees it."""
        state = self.clients[0].get(f"{self.path}/state").json()["state"]
        waiting: dict[str, Any] = state["interrupt"]
        return waiting

    def by_page(self, place: int, waiting: dict[str, Any], call_id: str, digest: str) -> bool:
        page, id = self.pages[place], f"d{next(self.numbers)}"
        edit = {"type": "edit", "digest": digest, "arguments": {"text": f"page{place}"}}
        decisions = {call_id: edit}
        asked = {"type": "decide", "id": id, "interrupt_id": waiting["id"], "decisions": decisions}
        page.send(json.dumps(asked))
        while (said := json.loads(page.recv(PATIENCE))).get("id") != id:
            pass
        if said["type"] == "error":
            assert said["kind"] in ("StaleApproval", "NotRunning"), said
        return bool(said["type"] == "reply")

    def by_http(self, waiting: dict[str, Any], call_id: str, digest: str) -> bool:
        answer = {
            "approved": True,
            "interruptId": waiting["id"],
            "digests": {call_id: digest},
            "modifiedToolCalls": [{"id": call_id, "args": {"text": "http"}}],
        }
        said = self.clients[0].post(f"{self.path}/approve", json=answer)
        assert said.status_code in (200, 400, 409), said.text
        return bool(said.status_code == 200)

    def by_agui(self, waiting: dict[str, Any], call_id: str, digest: str) -> bool:
        payload = {"approved": True, "editedArgs": {"text": "agui"}}
        entry = {
            "interruptId": f"{waiting['id']}.{digest}",
            "status": "resolved",
            "payload": payload,
        }
        path = self.served.path(rest="/agui/clerk")
        said = self.clients[1].post(path, json={**self.agui, "resume": [entry]})
        assert said.status_code in (200, 409), said.text
        if said.status_code == 200:
            assert "RUN_FINISHED" in said.text, said.text
        return bool(said.status_code == 200)

    def by_python(self, waiting: dict[str, Any], call_id: str, digest: str) -> bool:
        try:
            self.thread.approve(
                True,
                {call_id: {"text": "python"}},
                interrupt_id=waiting["id"],
                digests={call_id: digest},
                by="python",
            )
        except (NothingWaits, sa.StaleApproval):
            return False
        return True

    def run(self, chance: random.Random) -> str:
        """Who won, of those who answered one question."""
        text = f"note {next(self.numbers)}"
        self.thread.invoke([sa.Message.user(text)])
        assert still(self.thread, "paused")
        waiting = self.waiting
        (request,) = waiting["action_requests"]
        seen = waiting, request["tool_call_id"], request["digest"]
        ways: dict[str, Callable[[], bool]] = {
            "page0": lambda: self.by_page(0, *seen),
            "page1": lambda: self.by_page(1, *seen),
            "http": lambda: self.by_http(*seen),
            "agui": lambda: self.by_agui(*seen),
            "python": lambda: self.by_python(*seen),
        }
        names = list(ways)
        pauses = {name: chance.random() * 0.03 for name in names}
        pauses[chance.choice(names)] = 0  # else who has the shortest way would always win

        def answered(place: int) -> bool:
            time.sleep(pauses[names[place]])
            return ways[names[place]]()

        outcomes = in_threads(len(names), answered)
        assert all(isinstance(each, bool) for each in outcomes), outcomes
        won = [name for name, outcome in zip(names, outcomes, strict=True) if outcome]
        assert len(won) == 1, won
        assert still(self.thread, "completed")
        return won[0]


def race(folder: Path, rounds: int, seed: int) -> Counter[str]:
    """Who won how often; each time what the winner had changed is what ran, once."""
    ran: list[str] = []

    def note(text: str) -> str:
        """Keep a note."""
        ran.append(text)
        return text

    def spoken(request: Any) -> Any:
        last = request.messages[-1]
        return "done" if last.role == "tool" else call("note", last.text[5:], text="as asked")

    system = AgentSystem(sa.ScriptedModel(iter(lambda: spoken, None))).add_tool(note)
    system.add_agent(Blueprint("guide", "Be brief."))
    system.add_agent(Blueprint("clerk", "Take notes.", config={"hitl": {"tools": ["note"]}}))
    chance, won = random.Random(seed), list[str]()
    with serving(folder / "hub.db", system) as served:
        for number in range(0, rounds, ROUNDS_OF_A_THREAD):
            with contextlib.ExitStack() as clients:
                one = Race(served, number, clients)
                for _ in range(min(ROUNDS_OF_A_THREAD, rounds - number)):
                    won.append(one.run(chance))
    assert ran == won
    return Counter(won)


def test_of_five_who_answer_one_question_at_once_one_does(tmp_path: Path) -> None:
    race(tmp_path, 12, seed=2)


@pytest.mark.soak
def test_of_five_who_answer_one_question_at_once_one_does_a_thousand_times(tmp_path: Path) -> None:
    seed = int(time.time())
    print(f"seed {seed}: won {dict(race(tmp_path, 1_000, seed))}")
