"""What whoever operates a hub sees of it: figures, and a log, without what was said."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.operations import LineFormat, line
from tests.hub.web.served import TOKEN, Served, serving
from tests.talking import call

LINE = re.compile(
    r"ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=(debug|info|warning|error) event=[\w.]+"
    r'( [\w.]+=("([^"\\]|\\.)*"|[^\s"=]+))*'
)
CANARY = "canary-of-what-is-said"


def figures(served: Served) -> dict[tuple[str, ...], float]:
    """What a scrape says, by name and labels."""
    answer = served.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


@pytest.fixture
def log() -> Iterator[list[str]]:
    """The lines that are logged, as the process would write them."""
    lines: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler, ours = Keeping(), logging.getLogger(line.__module__)
    handler.setFormatter(LineFormat())
    logging.getLogger().addHandler(handler)
    ours.setLevel(logging.DEBUG)
    yield lines
    logging.getLogger().removeHandler(handler)
    ours.setLevel(logging.NOTSET)


def spoken(request: Any) -> Any:
    last = request.messages[-1]
    if last.text.startswith("fail"):
        return ValueError(f"The model says {CANARY}")
    if last.role == "user" and last.text.startswith("note"):
        return call("note", "n1", text=CANARY)
    if last.role == "user" and last.text.startswith("break"):
        return call("breaks", "b1", text=CANARY)
    used = sa.Usage(input_tokens=10, output_tokens=3, cost_usd=0.25)
    return sa.Message.assistant(f"said {CANARY}", usage=used)


def note(text: str) -> str:
    """Keep a note."""
    return f"{text} {CANARY}"


def breaks(text: str) -> str:
    """Break."""
    raise RuntimeError(CANARY)


def system_of() -> AgentSystem:
    system = AgentSystem(sa.ScriptedModel(iter(lambda: spoken, None)))
    system.add_tool(note).add_tool(breaks)
    system.add_agent(Blueprint("guide", CANARY))
    return system.add_agent(Blueprint("clerk", CANARY, config={"hitl": {"tools": ["note"]}}))


def invoke(served: Served, text: str, status: str) -> str:
    thread = served.thread("clerk")
    said = {"messages": [{"content": f"{text} {CANARY}"}]}
    assert served.client.post(served.path(thread, "/invoke"), json=said).status_code == 202
    served.wait(thread, status)
    served.hub.thread(served.agency, thread).log.wait()
    return thread


def test_a_scrape_counts_what_happened_and_says_what_is_now(tmp_path: Path) -> None:
    with serving(tmp_path / "hub.db", system_of()) as served:
        before = figures(served)
        assert before["sagents_hub_active_runs",] == 0
        assert before["sagents_hub_model_calls_total",] == 0
        invoke(served, "hello", "completed")
        invoke(served, "fail", "error")
        thread = invoke(served, "note", "paused")
        with served.socket(served.path(thread, "/ws")):
            found = figures(served)
        assert found["sagents_hub_clients",] == 1
        assert found["sagents_hub_waiting_threads",] == 1
        assert found["sagents_hub_open_threads",] == 3
        for status in ("completed", "error", "paused"):
            assert found["sagents_hub_runs_ended_total", status] == 1
        assert found["sagents_hub_model_calls_total",] == 2
        assert found["sagents_hub_tokens_total", "input"] == 10
        assert found["sagents_hub_tokens_total", "output"] == 3
        assert found["sagents_hub_cost_usd_total",] == 0.25
        path = "/agency/{agency}/agent/{thread}/invoke"
        assert found["sagents_hub_requests_total", "POST", path, "202"] == 3
        assert found["sagents_hub_events_total",] > 10
        assert found["sagents_hub_store_bytes",] > 10_000
        assert found["process_start_time_seconds",] > 1.7e9


def test_labels_are_few_and_of_no_agency_whatever_is_asked(tmp_path: Path) -> None:
    with serving(tmp_path / "hub.db", system_of()) as served:
        for number in range(5):
            served.client.get(f"/nothing/{number}")
            served.client.request(f"MADE{number}", f"/agency/{number}/agents")
            served.client.get(served.path(f"{number}" * 32, "/state"))
        text = served.client.get("/metrics").text
        assert served.agency.id not in text
        assert "MADE" not in text
        assert text.count('route="other"') <= 3
        assert text.count('/state"') == 1


def test_figures_are_for_the_hubs_token_alone(served: Served) -> None:
    with served.client_of(served.secret) as client:
        assert client.get("/metrics").status_code == 401
    with served.client_of(None) as client:
        assert client.get("/metrics").status_code == 401


def test_each_request_has_a_line_that_is_found_by_its_id_its_agency_and_its_thread(
    tmp_path: Path, log: list[str]
) -> None:
    with serving(tmp_path / "hub.db", system_of()) as served:
        thread = invoke(served, "hello", "completed")
        given = served.client.get(
            served.path(thread, "/state"), headers={"X-Request-ID": "of-mine-7"}
        )
        made = served.client.get("/agencies").headers["x-request-id"]
        served.client.get("/agencies", headers={"X-Request-ID": "two words"})
    assert given.headers["x-request-id"] == "of-mine-7"
    [found] = [each for each in log if "request=of-mine-7" in each]
    assert f"agency={served.agency.id} thread={thread}" in found
    assert "method=GET route=/agency/{agency}/agent/{thread}/state status=200" in found
    assert len([each for each in log if f"request={made}" in each]) == 1
    assert not [each for each in log if "two words" in each]
    ours = [each for each in log if f"thread={thread}" in each]
    events = [re.search(r"event=(\S+)", each)[1] for each in ours]  # type: ignore[index]
    assert [each for each in events if each != "request"] == ["run.started", "agent.completed"]


def test_no_line_and_no_figure_has_what_is_said_or_a_token(tmp_path: Path, log: list[str]) -> None:
    with serving(tmp_path / "hub.db", system_of()) as served:
        for text, status in (("note", "paused"), ("break", "completed"), ("fail", "error")):
            thread = invoke(served, text, status)
        served.client.post(served.path(rest="/vars"), json={"vars": {"key": CANARY}})
        served.client.get(f"/agency/{served.secret}/agents")
        served.client.get(f"/{CANARY}?key={TOKEN}")
        with served.client_of(CANARY) as client:
            client.get("/agencies", headers={"User-Agent": CANARY, "Referer": CANARY})
        with served.socket(served.path(thread, "/stream")) as page:
            page.send(CANARY)
        text = served.client.get("/metrics").text
    for said in (CANARY, TOKEN, served.secret):
        assert said not in text
        assert not [each for each in log if said in each]
    assert any("event=log" in each for each in log), "what others log was not looked at"
    for each in log:
        assert LINE.fullmatch(each), each


def test_an_error_says_where_it_was_and_not_what(log: list[str]) -> None:
    try:
        breaks("x")
    except RuntimeError:
        logging.getLogger("elsewhere").exception("A request failed\n%s", CANARY)
    [found] = log
    assert 'message="A request failed" error=RuntimeError at="test_operations.py:' in found
    assert "breaks" in found
