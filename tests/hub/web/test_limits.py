"""Each door keeps to the limits, also where all are asked at once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.limits import Limits
from tests.hub.web.served import Served, serving
from tests.talking import PATIENCE

GO = {"messages": [{"role": "user", "content": "go"}]}
SAID = [{"id": "u", "role": "user", "content": "hello"}]


def post(path: Callable[[Served], str], body: Any) -> Callable[[Served], int]:
    """A door: gives the status that it answers."""
    return lambda served: int(served.client.post(path(served), json=body).status_code)


def by_page(served: Served) -> int:
    """The same of a page: 429 is a refusal for want of room."""
    with served.socket(served.path(served.thread(), "/stream")) as page:
        page.send(json.dumps({"type": "send", "id": "s1", "text": "hello"}))
        while (said := json.loads(page.recv(PATIENCE)))["type"] not in ("reply", "error"):
            pass
    return 429 if said.get("kind") == "TooMany" else 200


DOORS: dict[str, Callable[[Served], int]] = {
    "invoke": post(lambda served: served.path(served.thread(), "/invoke"), {}),
    "a new thread": post(
        lambda served: served.path(rest="/agents"), {"agentType": "guide", "input": "go"}
    ),
    "AG-UI": post(
        lambda served: served.path(rest="/agui/guide"),
        {"threadId": "t", "runId": "r", "messages": SAID},
    ),
    "chat completions": lambda served: int(
        served.client.post(
            "/v1/chat/completions",
            json={"model": f"{served.agency.id}/guide", "messages": SAID},
        ).status_code
    ),
    "a trigger": post(lambda served: served.path(rest=f"/schedules/{served.schedule}/trigger"), {}),
    "a page": by_page,
}
OF_A_THREAD = ("invoke", "a page")
"""Those that are asked of a thread, which is there before."""


@pytest.mark.parametrize("door", DOORS)
def test_a_door_finds_what_is_about_to_begin_by_another(tmp_path: Path, door: str) -> None:
    with serving(tmp_path / "hub.db", limits=Limits(runs=1)) as served:
        with served.hub.room(served.agency, None):
            assert DOORS[door](served) == 429
            assert len(served.hub.threads(served.agency)) == (door in OF_A_THREAD)
        assert DOORS[door](served) < 300


def test_as_many_runs_begin_as_may_where_many_are_asked_for_at_once(tmp_path: Path) -> None:
    go = threading.Event()

    def hold() -> str:
        """Wait."""
        go.wait(PATIENCE)
        return "held"

    def spoken(request: Any) -> Any:
        return "done" if request.messages[-1].role == "tool" else sa.ToolCall("c1", "hold", {})

    system = AgentSystem(sa.ScriptedModel(iter(lambda: spoken, None))).add_tool(hold)
    system.add_agent(Blueprint("guide", "Be brief."))
    with serving(tmp_path / "hub.db", system, Limits(runs=3)) as served:
        threads = [served.thread() for _ in range(16)]
        together = threading.Barrier(len(threads))

        def ask(thread: str) -> int:
            together.wait(PATIENCE)
            return post(lambda served: served.path(thread, "/invoke"), GO)(served)

        try:
            with ThreadPoolExecutor(len(threads)) as pool:
                answers = Counter(pool.map(ask, threads))
            assert answers == {202: 3, 429: 13}
            assert served.hub.active_runs() == 3
        finally:
            go.set()
