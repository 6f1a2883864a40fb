"""The client of MCP's own SDK talks with a hub, as of 2026-07-28 and as clients before did."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitRequestFormParams, ElicitResult

import sagents_nb as sa
from sagents_nb.hub import AgentSystem, Blueprint
from sagents_nb.hub.limits import Limits
from tests.hub.web.served import TOKEN, Served, serving
from tests.talking import PATIENCE, call, run, until

ERAS = ("auto", "legacy")
GATED = {"hitl": {"tools": ["send"]}}
Answering = Callable[[ElicitRequestFormParams], Any]


class Office:
    """An agency of a hub, and its ``desk``."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.agency, self.secret = served.hub.create_agency()

    @property
    def sent(self) -> list[str]:
        """The letters that were."""
        return DESKS[-1].sent

    @property
    def holds(self) -> threading.Event:
        """Set while a tool waits for ``go_on``."""
        return DESKS[-1].holds

    @property
    def go_on(self) -> threading.Event:
        """Has that tool go on."""
        return DESKS[-1].go_on

    def thread(self) -> Any:
        """Its only one."""
        (record,) = self.served.hub.threads(self.agency)
        return self.served.hub.thread(self.agency, record.id)

    @contextlib.asynccontextmanager
    async def client(
        self,
        mode: str = "auto",
        answering: Answering | None = None,
        token: str | None = None,
        path: str = "/mcp",
    ) -> AsyncIterator[Client]:
        """A client with the agency's secret; it can be asked what ``answering`` answers."""

        async def elicit(context: Any, asked: Any) -> ElicitResult:
            answer = answering(asked)  # type: ignore[misc]
            answer = await answer if isinstance(answer, Awaitable) else answer
            content = answer if isinstance(answer, dict) else None
            action = "accept" if content is not None else answer
            return ElicitResult(action=action, content=content)

        shown = {"Authorization": f"Bearer {token or self.secret}"}
        async with httpx2.AsyncClient(headers=shown, timeout=PATIENCE) as http:
            over = streamable_http_client(f"{self.served.url}{path}", http_client=http)
            callback = None if answering is None else elicit
            async with Client(over, mode=mode, elicitation_callback=callback) as client:
                yield client


class Desk:
    """What the tools of the file's hub do it on: another one for each test.

    ``sent`` are letters; ``holds`` is set while the tool "hold" waits for ``go_on``.
    """

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.holds, self.go_on = threading.Event(), threading.Event()


DESKS: list[Desk] = []
"""The last is that of the test that runs."""


def send(to: str, text: str = "Hello.") -> str:
    """Send a letter."""
    DESKS[-1].sent.append(f"{to}: {text}")
    return f"Sent to {to}."


def hold() -> str:
    """Wait."""
    desk = DESKS[-1]
    desk.holds.set()
    assert desk.go_on.wait(PATIENCE)
    return "held"


def spoken(request: Any) -> Any:
    """Does what it is told to, and else says what it heard, and how much before it."""
    last = request.messages[-1]
    if last.role == "tool":
        return " ".join(f"It says: {result.text}" for result in last.tool_results)
    match last.text.split():
        case ["Write", "to", *names]:
            return [call("send", f"c{n}", to=name) for n, name in enumerate(names)]
        case ["Hold"]:
            return call("hold")
        case ["Ask", kind]:
            options = [{"label": each.title(), "value": each} for each in ("red", "blue")]
            chosen = {} if kind == "freeform" else {"options": options}
            return call("ask_user", question="Which colour?", response_type=kind, **chosen)
        case ["Fail"]:
            return sa.ModelError("It is down.")
    said = sum(message.role == "user" for message in request.messages)
    return f"Message {said} was: {last.text}"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A hub with a clerk, who asks before a letter is sent, and a guide."""
    model = sa.ScriptedModel(iter(lambda: spoken, None), chunk=4)
    system = AgentSystem(model).add_tool(send).add_tool(hold).use(sa.AskUser, "default")
    system.add_agent(Blueprint("clerk", "Write.", description="Writes letters.", config=GATED))
    system.add_agent(Blueprint("guide", "Be brief."))
    with serving(tmp_path_factory.mktemp("hub") / "hub.db", system) as served:
        yield served


@pytest.fixture
def office(hub: Served) -> Iterator[Office]:
    """An agency of its own in that hub."""
    DESKS.append(Desk())
    yield Office(hub)
    DESKS[-1].go_on.set()


def text_of(result: Any) -> str:
    """What the agent said."""
    assert json.loads(result.content[-1].text) == {
        name: result.structured_content[name] for name in ("thread_id", "status")
    }
    return str(result.structured_content["answer"])


def status_of(result: Any) -> str:
    return str(result.structured_content["status"])


@pytest.mark.parametrize("mode", ERAS)
def test_each_kind_of_agent_is_a_tool(office: Office, mode: str) -> None:
    async def look() -> Any:
        async with office.client(mode) as client:
            return await client.list_tools()

    clerk, guide = run(look()).tools
    assert (clerk.name, guide.name) == ("clerk", "guide")
    assert clerk.description.startswith("Writes letters.\n")
    assert set(clerk.input_schema["properties"]) == {"message", "thread_id"}


@pytest.mark.parametrize("mode", ERAS)
def test_a_thread_goes_on_by_its_id(office: Office, mode: str) -> None:
    async def talk() -> None:
        async with office.client(mode) as client:
            first = await client.call_tool("guide", {"message": "Hello"})
            assert (text_of(first), status_of(first)) == ("Message 1 was: Hello", "completed")
            assert first.content[0].text == "Message 1 was: Hello"
            thread_id = first.structured_content["thread_id"]
            again = {"message": "And you?", "thread_id": thread_id}
            assert text_of(await client.call_tool("guide", again)) == "Message 2 was: And you?"
            # Who only asks is told, and nothing is said.
            asked = await client.call_tool("guide", {"thread_id": thread_id})
            assert (text_of(asked), status_of(asked)) == ("Message 2 was: And you?", "completed")

    run(talk())
    assert len(office.thread().session.messages) == 4


@pytest.mark.parametrize("mode", ERAS)
def test_a_call_runs_as_it_was_shown_once_it_is_approved(office: Office, mode: str) -> None:
    shown: list[Any] = []

    def approve(asked: Any) -> Any:
        shown.append(asked)
        assert office.sent == []
        return {"approved": True}

    async def talk() -> Any:
        async with office.client(mode, approve) as client:
            return await client.call_tool("clerk", {"message": "Write to Ada"})

    result = run(talk())
    assert (text_of(result), status_of(result)) == ("It says: Sent to Ada.", "completed")
    assert office.sent == ["Ada: Hello."]
    (asked,) = shown
    assert asked.message.startswith('Run send?\n{\n  "to": "Ada"\n}')
    assert '"text": "Hello."' in asked.message
    assert asked.requested_schema["required"] == ["approved"]
    (result,) = office.thread().session.messages[2].tool_results
    assert result.metadata["decision"]["by"] == "mcp"


@pytest.mark.parametrize(
    ("answer", "sent", "said"),
    [
        ({"approved": False, "reason": "She has moved."}, [], "She has moved."),
        ({"approved": False}, [], "Rejected."),
        ("decline", [], "Declined."),
        ({"approved": True, "arguments": '{"to": "Grace"}'}, ["Grace: Hello."], "Sent to Grace."),
        ({"approved": True, "reason": "", "arguments": " "}, ["Ada: Hello."], "Sent to Ada."),
    ],
)
def test_people_reject_and_change_what_would_run(
    office: Office, answer: Any, sent: list[str], said: str
) -> None:
    async def talk() -> Any:
        async with office.client(answering=lambda asked: answer) as client:
            return await client.call_tool("clerk", {"message": "Write to Ada"})

    result = run(talk())
    assert status_of(result) == "completed"
    assert said in text_of(result)
    assert office.sent == sent


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("cancel", "This waits for people"),
        ({"approved": True, "arguments": "Grace"}, "are no JSON object"),
    ],
)
def test_what_is_no_answer_leaves_it_waiting(
    office: Office, mode: str, answer: Any, why: str
) -> None:
    async def talk() -> Any:
        async with office.client(mode, lambda asked: answer) as client:
            return await client.call_tool("clerk", {"message": "Write to Ada"})

    result = run(talk())
    assert (status_of(result), result.is_error) == ("paused", False)
    assert why in text_of(result)
    assert office.thread().status == "paused"
    assert office.sent == []


@pytest.mark.parametrize("mode", ERAS)
def test_who_cannot_be_asked_is_told_where_it_is_answered(office: Office, mode: str) -> None:
    async def talk() -> None:
        async with office.client(mode) as client:
            result = await client.call_tool("clerk", {"message": "Write to Ada"})
            assert status_of(result) == "paused"
            assert 'Run send?\n{\n  "to": "Ada"\n}' in text_of(result)
            thread_id = result.structured_content["thread_id"]
            where = f"/agency/{office.agency.id}/agent/{thread_id}/approve"
            assert f"POST {where}" in text_of(result)
            answer = await asyncio.to_thread(
                office.served.client.post, where, json={"approved": True}
            )
            assert answer.status_code == 200
            done = await client.call_tool("clerk", {"thread_id": thread_id})
            assert (text_of(done), status_of(done)) == ("It says: Sent to Ada.", "completed")

    run(talk())


@pytest.mark.parametrize("mode", ERAS)
def test_each_of_several_calls_is_asked_about(office: Office, mode: str) -> None:
    def answer(asked: Any) -> Any:
        return {"approved": '"Ada"' in asked.message}

    async def talk() -> Any:
        async with office.client(mode, answer) as client:
            return await client.call_tool("clerk", {"message": "Write to Ada Grace"})

    assert status_of(run(talk())) == "completed"
    assert office.sent == ["Ada: Hello."]


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("single_select", {"answer": "red"}, "The user chose: Red"),
        ("multi_select", {"answer": ["red", "blue"]}, "The user chose: Red"),
        ("freeform", {"answer": "Teal."}, "in their own words: Teal."),
        ("single_select", "decline", "does not want to answer"),
    ],
)
def test_a_question_is_a_form(office: Office, kind: str, answer: Any, said: str) -> None:
    shown: list[Any] = []

    def fill_in(asked: Any) -> Any:
        shown.append(asked)
        return answer

    async def talk() -> Any:
        async with office.client(answering=fill_in) as client:
            return await client.call_tool("clerk", {"message": f"Ask {kind}"})

    result = run(talk())
    assert said in text_of(result)
    assert shown[0].message.startswith("Which colour?")


@pytest.mark.parametrize("mode", ERAS)
def test_what_others_answer_meanwhile_is_what_counts(office: Office, mode: str) -> None:
    async def approve_late(asked: Any) -> Any:
        thread = office.thread()
        await asyncio.to_thread(thread.approve, False, by="test")
        await asyncio.to_thread(until, lambda: thread.status == "completed")
        return {"approved": True}

    async def talk() -> Any:
        async with office.client(mode, approve_late) as client:
            return await client.call_tool("clerk", {"message": "Write to Ada"})

    result = run(talk())
    assert status_of(result) == "completed"
    assert office.sent == []
    if mode == "auto":
        assert "Somebody had answered that before" in result.content[1].text


def test_answers_are_good_for_the_call_that_they_were_asked_for(office: Office) -> None:
    async def talk() -> None:
        async with office.client(answering=lambda asked: "cancel") as client:
            asked = await client.session.call_tool(
                "clerk", {"message": "Write to Ada"}, allow_input_required=True
            )
            filled = {
                id: ElicitResult(action="accept", content={"approved": True})
                for id in asked.input_requests
            }
            for name, said, state in (
                ("guide", "Write to Ada", asked.request_state),
                ("clerk", "Write to Grace", asked.request_state),
                ("clerk", "Write to Ada", asked.request_state[:-2] + "AA"),
                ("clerk", "Write to Ada", json.dumps({"thread_id": office.thread().record.id})),
            ):
                with pytest.raises(MCPError, match="Invalid or expired requestState"):
                    await client.session.call_tool(
                        name, {"message": said}, input_responses=filled, request_state=state
                    )
            assert office.sent == []
            # One that is left out is asked again.
            again = await client.session.call_tool(
                "clerk",
                {"message": "Write to Ada"},
                request_state=asked.request_state,
                allow_input_required=True,
            )
            assert again.input_requests == asked.input_requests
            done = await client.session.call_tool(
                "clerk",
                {"message": "Write to Ada"},
                input_responses=filled,
                request_state=again.request_state,
            )
            assert status_of(done) == "completed"

    run(talk())
    assert office.sent == ["Ada: Hello."]


def test_an_old_answer_approves_nothing_that_waits_now(office: Office) -> None:
    said = {"message": "Write to Ada"}

    def instead() -> None:
        thread = office.thread()
        thread.approve(False, by="test")
        thread.wait(PATIENCE)
        thread.invoke([sa.Message.user("Write to Grace")])
        thread.wait(PATIENCE)

    async def talk() -> None:
        async with office.client(answering=lambda asked: "cancel") as client:
            ask = client.session.call_tool
            asked: Any = await ask("clerk", said, allow_input_required=True)
            await asyncio.to_thread(instead)
            yes = ElicitResult(action="accept", content={"approved": True})
            again: Any = await ask(
                "clerk",
                said,
                input_responses=dict.fromkeys(asked.input_requests, yes),
                request_state=asked.request_state,
                allow_input_required=True,
            )
            assert again.input_requests.keys().isdisjoint(asked.input_requests)
            (form,) = again.input_requests.values()
            assert '"to": "Grace"' in form.params.message

    run(talk())
    assert office.sent == []


@pytest.mark.parametrize("mode", ERAS)
def test_progress_is_told_to_who_asks_for_it(office: Office, mode: str) -> None:
    told: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))
        if message == "Runs hold.":
            office.go_on.set()

    async def talk() -> Any:
        async with office.client(mode) as client:
            result = await client.call_tool("clerk", {"message": "Hold"}, progress_callback=hear)
            assert text_of(result) == "It says: held"
            return result

    result = run(talk())
    messages = [message for _, message in told]
    assert messages == [f"Thread {result.structured_content['thread_id']}.", "Runs hold."]
    assert [progress for progress, _ in told] == [1, 2]


@pytest.mark.parametrize("mode", ERAS)
def test_a_call_that_is_cancelled_stops_its_run(office: Office, mode: str) -> None:
    async def talk() -> None:
        async with office.client(mode) as client:
            calling = asyncio.create_task(client.call_tool("clerk", {"message": "Hold"}))
            await asyncio.to_thread(office.holds.wait, PATIENCE)
            calling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await calling
            await asyncio.to_thread(until, lambda: office.thread().status == "canceled")
            thread_id = office.thread().record.id
            office.go_on.set()
            # The thread is there, and goes on when somebody says something.
            seen = await client.call_tool("clerk", {"thread_id": thread_id})
            assert (status_of(seen), seen.is_error) == ("canceled", True)
            more = await client.call_tool("clerk", {"message": "Hi", "thread_id": thread_id})
            assert status_of(more) == "completed"

    run(talk())


@contextlib.asynccontextmanager
async def session_of(office: Office, token: str | None = None) -> AsyncIterator[Any]:
    """What an older client's session can be asked, by hand: ``asked(method, **parameters)``."""
    shown = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token or office.secret}",
    }
    async with httpx2.AsyncClient(
        base_url=office.served.url, headers=shown, timeout=PATIENCE
    ) as http:

        def asked(method: str, id: int | None = 1, **parameters: Any) -> dict[str, Any]:
            known = {} if id is None else {"id": id}
            return {"jsonrpc": "2.0", "method": method, **known, "params": parameters}

        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        hello["clientInfo"] = {"name": "test", "version": "1"}  # type: ignore[assignment]
        answer = await http.post("/mcp", json=asked("initialize", **hello))
        http.headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        await http.post("/mcp", json=asked("notifications/initialized", None))
        yield http, asked


def test_a_run_outlives_the_connection_of_an_older_client(office: Office) -> None:
    async def talk() -> None:
        async with session_of(office) as (http, asked):
            said = asked("tools/call", name="clerk", arguments={"message": "Hold"})
            async with http.stream("POST", "/mcp", json=said):
                await asyncio.to_thread(office.holds.wait, PATIENCE)
        office.go_on.set()

    run(talk())
    until(lambda: office.thread().status == "completed")


def test_a_session_is_no_other_agencys_and_ends_when_it_is_told_to(office: Office) -> None:
    secret = office.served.hub.create_agency()[1]

    async def talk() -> None:
        async with session_of(office) as (http, asked):
            theirs = {"Authorization": f"Bearer {secret}"}
            lists = asked("tools/list", 2)
            assert (await http.post("/mcp", json=lists)).status_code == 200
            assert (await http.post("/mcp", json=lists, headers=theirs)).status_code == 404
            assert (await http.delete("/mcp", headers=theirs)).status_code == 404
            assert (await http.delete("/mcp")).status_code == 200
            assert (await http.post("/mcp", json=lists)).status_code == 404
            del http.headers["Mcp-Session-Id"]
            assert (await http.delete("/mcp")).status_code == 400

    run(talk())


@pytest.mark.parametrize("mode", ERAS)
def test_a_thread_that_is_not_there_and_one_of_others_are_the_same_error(
    office: Office, mode: str
) -> None:
    other = office.served.hub.create_agency()[0]
    foreign = office.served.hub.create_thread(other, "guide").record.id
    mine = office.served.hub.create_thread(office.agency, "clerk").record.id

    async def talk() -> None:
        async with office.client(mode) as client:

            async def sentence(**arguments: str) -> str:
                result = await client.call_tool("guide", arguments)
                assert result.is_error
                return str(result.content[0].text)

            for id in (foreign, "0" * 32, "", "\0", "../x"):
                said = await sentence(message="Hello", thread_id=id)
                assert said == f"This agency has no thread {id!r}; its list of agents names them."
            said = await sentence(message="Hello", thread_id=mine)
            assert "is of the agent 'clerk'" in said
            assert "give a message" in await sentence()
            assert "do not fit" in await sentence(message="Hello", more="x")
            with pytest.raises(MCPError, match="no agent 'nobody'"):
                await client.call_tool("nobody", {"message": "Hello"})

    run(talk())


def test_the_token_says_whose_agents_they_are(office: Office) -> None:
    served = office.served
    other, secret = served.hub.create_agency()
    served.hub.save_blueprint(other, {"name": "theirs", "prompt": "Be kind."})

    async def tools(token: str, path: str) -> list[str]:
        async with office.client(token=token, path=path) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert run(tools(secret, "/mcp")) == ["clerk", "guide", "theirs"]
    assert run(tools(office.secret, "/mcp")) == ["clerk", "guide"]
    assert run(tools(TOKEN, f"/agency/{other.id}/mcp")) == ["clerk", "guide", "theirs"]
    for token, path in ((TOKEN, "/mcp"), (office.secret, f"/agency/{other.id}/mcp")):
        with pytest.raises((MCPError, ExceptionGroup)) as raised:
            run(tools(token, path))
        said = "is of no agency" if path == "/mcp" else "There is no agency"
        assert raised.group_contains(MCPError, match=said) or said in str(raised.value)


@pytest.mark.parametrize("mode", ERAS)
def test_a_run_that_fails_is_told_as_an_error(office: Office, mode: str) -> None:
    async def talk() -> Any:
        async with office.client(mode) as client:
            return await client.call_tool("guide", {"message": "Fail"})

    result = run(talk())
    assert (result.is_error, status_of(result)) == (True, "error")
    assert "It is down." in text_of(result)


@pytest.mark.parametrize("mode", ERAS)
def test_a_call_is_among_the_runs_that_a_hub_takes(tmp_path: Path, mode: str) -> None:
    system = AgentSystem(sa.ScriptedModel([])).add_agent(Blueprint("guide", "Be brief."))
    with serving(tmp_path / "hub.db", system, limits=Limits(runs=1)) as served:
        office = Office(served)

        async def talk() -> Any:
            async with office.client(mode) as client:
                return await client.call_tool("guide", {"message": "Hello"})

        with served.hub.room(office.agency, None):  # another is about to begin
            result = run(talk())
        assert result.is_error
        assert "1 runs are active" in result.content[0].text
        assert served.hub.threads(office.agency) == []


@pytest.mark.parametrize("mode", ERAS)
def test_a_thread_that_another_process_has_is_asked_there(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "hub.db"
    with serving(path) as right, serving(path) as wrong:
        for served in (right, wrong):
            served.hub.doors.open(served.url)
        office = Office(wrong)
        thread_id = right.hub.create_thread(office.agency, "clerk").record.id

        async def talk() -> Any:
            async with office.client(mode, lambda asked: {"approved": True}) as client:
                said = {"message": "note this", "thread_id": thread_id}
                return await client.call_tool("clerk", said)

        assert text_of(run(talk())) == "done"
        said = right.hub.thread(office.agency, thread_id).session.messages
        assert [message.text for message in said][::3] == ["note this", "done"]


def test_a_hub_without_the_extra_says_how_to_get_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "sagents_nb.hub.web.mcp_tools", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    answer = office.served.client_of(office.secret).post("/mcp", json={})
    assert answer.status_code == 501
    assert "pip install 'sagents-nb[mcp]'" in answer.json()["error"]["message"]


def test_a_hub_loads_the_sdk_when_its_first_client_comes(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from tests.hub.web.served import serving
with serving(Path(sys.argv[1])) as served:
    assert "mcp" not in sys.modules and "pydantic" not in sys.modules
    assert served.client_of(served.secret).post("/mcp", json={}).status_code == 400
    assert "mcp" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "hub.db")], check=True)
