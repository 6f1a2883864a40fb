"""What is open ends with what opened it: secrets, clients, agencies and processes."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import openai
import pytest

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.limits import Limits
from tests.hub.houses import a_hub, still
from tests.hub.web.served import Served, frames_of, serving
from tests.talking import call, until


class Endless(sa.ScriptedModel):
    """Says something again and again, and tells when it was stopped."""

    def __init__(self) -> None:
        super().__init__([])
        self.said, self.stopped = threading.Event(), threading.Event()

    async def stream(self, request: Any, **more: Any) -> Any:
        """Until nobody wants it any more."""
        model = sa.ScriptedModel(["word " * 10_000], delay=0.01)
        try:
            async for piece in model.stream(request, **more):
                self.said.set()
                yield piece
        finally:
            self.stopped.set()


def guided(model: Any) -> AgentSystem:
    return AgentSystem(model).add_agent(Blueprint("guide", "Be brief."))


def client_of(served: Served, secret: str | None = None) -> openai.OpenAI:
    return openai.OpenAI(api_key=secret or served.secret, base_url=f"{served.url}/v1")


ASKED: Any = {"model": "guide", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize("rest", ["/ws", "/stream"])
def test_a_socket_ends_when_its_secret_opens_nothing_any_more(
    served: Served, monkeypatch: pytest.MonkeyPatch, rest: str
) -> None:
    monkeypatch.setattr("sagents_nb.hub.web.secret_watch.RECHECKED_AFTER", 0.05)
    path = served.path(served.thread())
    with (
        served.socket(f"{path}{rest}", token=served.secret) as old,
        served.socket(f"{path}{rest}") as kept,
    ):
        served.secret = served.hub.new_secret(served.agency)
        frames_of(old)
        assert old.close_code == 1008
        kept.send(json.dumps({"type": "hello", "have": 0}))
        assert kept.close_code is None


def test_an_event_stream_ends_with_its_secret_too(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.hub.web.secret_watch.RECHECKED_AFTER", 0.05)
    path = served.path(served.thread(), "/events")
    accept = {"Accept": "text/event-stream"}
    with (
        served.client_of(served.secret) as client,
        client.stream("GET", path, headers=accept) as stream,
    ):
        served.secret = served.hub.new_secret(served.agency)
        with contextlib.suppress(Exception):  # it is cut off, or has an end
            list(stream.iter_lines())


@pytest.mark.parametrize("streamed", [True, False])
def test_a_completion_ends_when_its_client_leaves(tmp_path: Path, streamed: bool) -> None:
    model = Endless()
    with serving(tmp_path / "hub.db", guided(model)) as served:
        said = {**ASKED, "model": f"{served.agency.id}/guide", "stream": streamed}
        with contextlib.suppress(Exception):
            if streamed:
                with served.client.stream("POST", "/v1/chat/completions", json=said) as stream:
                    next(line for line in stream.iter_lines() if "word" in line)
            else:
                served.client.post("/v1/chat/completions", json=said, timeout=0.5)
        assert model.said.wait(40)
        assert model.stopped.wait(40)
        until(lambda: served.hub.active_runs() == 0)


def test_a_completion_ends_with_its_agency(tmp_path: Path) -> None:
    model = Endless()
    with serving(tmp_path / "hub.db", guided(model)) as served:
        said = {**ASKED, "model": f"{served.agency.id}/guide", "stream": True}
        with served.client.stream("POST", "/v1/chat/completions", json=said) as stream:
            lines = stream.iter_lines()
            next(lines)
            served.hub.delete_agency(served.agency)
            assert model.stopped.wait(40)
            list(lines)
    assert served.hub.active_runs() == 0


def test_a_completion_that_fails_is_not_asked_again_by_its_client(tmp_path: Path) -> None:
    ran: list[int] = []

    def order() -> str:
        """Order something."""
        ran.append(1)
        return "It is ordered."

    model = sa.ScriptedModel([call("order"), sa.ModelError("It is down.")] * 3)
    with serving(tmp_path / "hub.db", guided(model).add_tool(order)) as served:
        with pytest.raises(openai.UnprocessableEntityError, match="It is down"):
            client_of(served).chat.completions.create(**ASKED)
        assert ran == [1]


def test_completions_are_among_the_runs_that_a_hub_takes(tmp_path: Path) -> None:
    model = Endless()
    with serving(tmp_path / "hub.db", guided(model), limits=Limits(runs=1)) as served:
        said = {**ASKED, "model": f"{served.agency.id}/guide", "stream": True}
        with served.client.stream("POST", "/v1/chat/completions", json=said) as stream:
            lines = stream.iter_lines()  # who lets go of it leaves
            next(lines)
            client = client_of(served).with_options(max_retries=0)
            with pytest.raises(openai.RateLimitError, match="1 runs are active"):
                client.chat.completions.create(**ASKED)
            assert next(line for line in lines if "word" in line)


def test_a_thread_that_a_dead_process_had_goes_on_where_somebody_asks_for_it(
    tmp_path: Path,
) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    with a_hub(tmp_path / "hub.db", {"guide": slow}) as dead:
        agency, _ = dead.create_agency()
        with a_hub(tmp_path / "hub.db", {"guide": ["Here."]}) as hub:
            hub.recover()
            thread = dead.create_thread(agency, "guide")
            thread.invoke([sa.Message.user("Go.")])
            dead.close()
            there = hub.thread(agency, thread.record.id)
            assert still(there, "completed")


def test_a_hub_has_no_more_threads_open_than_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.hub.open_threads.MOST_OPEN", 3)
    monkeypatch.setattr("sagents_nb.hub.open_threads.RESTS_AFTER", 0.05)
    with a_hub(tmp_path / "hub.db", {"guide": ["one"] * 20}) as hub:
        agency, _ = hub.create_agency()
        first = hub.create_thread(agency, "guide")
        until(lambda: first.session.resting is not None)
        for _ in range(4):
            hub.create_thread(agency, "guide")
        until(lambda: first.is_gone)
        assert hub.thread(agency, first.record.id).status == "registered"
