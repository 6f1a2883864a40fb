"""No secret of a call leaves it, whichever way it was given."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.frames.rows import MAKERS
from sagents_nb.models import ModelRequest
from sagents_nb.redaction import secrets_of_call
from tests.faults import serving
from tests.faults.serving import Echoing
from tests.talking import PATIENCE, run

SECRETS = {
    "key": "sk-CANARY-key-1234567890",
    "password": "pw-CANARY-1234",
    "query": "qry-CANARY-1234",
    "header": "hdr-CANARY-1234",
    "body": "bod-CANARY-1234",
    "deep": "deep-CANARY-1234",
}


def secretive(server: Any, **options: Any) -> sa.OpenAIChatModel:
    return sa.OpenAIChatModel(
        "m",
        api_key=SECRETS["key"],
        base_url=f"http://me:{SECRETS['password']}@127.0.0.1:{server.server_port}/v1",
        timeout=PATIENCE,
        extra_headers={"X-Api-Token": SECRETS["header"]},
        extra_query={"sig": SECRETS["query"]},
        extra_body={
            "access_token": SECRETS["body"],
            "gateway": {"list": [{"api_key": SECRETS["deep"]}]},
        },
        **options,
    )


def leaked(text: Any) -> list[str]:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return [name for name, secret in SECRETS.items() if secret in shown]


def sinks(server: Any, directory: Path, log: io.StringIO) -> dict[str, Any]:
    """All that is left behind by a conversation that failed, or did not."""
    model = secretive(server)
    store = sa.ConversationStore(directory / "c.db")
    asked = sa.RetryingModel(model, sleep=lambda _: asyncio.sleep(0))
    recorded = sa.RecordedModel(asked, cache=str(directory / "answers.json"), mode="record")
    session = sa.Session(
        sa.Agent(recorded, middleware=[sa.DebugLog(directory)]), id="c1", store=store
    )
    events: list[Any] = []
    session.subscribe(events.append, debug=True)
    found: dict[str, Any] = {}
    try:
        session.send("hi").result(PATIENCE)
    except sa.ModelError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        found |= {
            "error": error,
            "pickle of the error": pickle.dumps(error),
            "traceback with locals": "".join(shown.format()),
        }
    found |= {
        "session.error": session.error,
        "info": session.info(),
        "events": events,
        "export": json.dumps(session.export_state()),
        "log": log.getvalue(),
        "repr": [model, recorded, session, session.agent],
        "pickle of the model": pickle.dumps(model),
    }
    for kind in ("messages", "events", "usage", "tool_calls"):
        found[f"frame of {kind}"] = session.to_frame(kind).to_csv()
    session.close()
    store.close()
    for path in directory.rglob("*"):
        if path.is_file():
            found[path.name] = path.read_bytes()
    assert "answers.json" in found or server.status != 200
    return found


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_a10_a11_no_secret_of_a_call_is_seen_anywhere(
    status: int, server: Any, tmp_path: Path
) -> None:
    server.status = status
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        found = sinks(server, tmp_path, log)
    finally:
        logging.getLogger().removeHandler(handler)
    assert {sink: leaked(text) for sink, text in found.items() if leaked(text)} == {}


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_a10_no_secret_of_a_call_is_in_the_logs_of_its_http_client(
    level: int, server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(level)
    sa.Agent(secretive(server)).run("hi")
    assert "HTTP Request: POST" in caplog.text
    assert leaked(caplog.text) == []


QUOTING = {
    "an error": json.dumps({"error": {"message": "You sent " + SECRETS["key"]}}),
    "no JSON": "{ you sent " + SECRETS["key"],
    "no event": json.dumps({"choices": SECRETS["key"]}),
}


@pytest.mark.parametrize("quoting", QUOTING)
def test_a11_a_stream_that_quotes_the_key_leaves_it_in_no_frame_of_ours(
    quoting: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "STREAM", f"data: {QUOTING[quoting]}\n\n".encode())
    with pytest.raises(sa.ModelError) as raised:
        sa.Agent(secretive(server)).run("hi")
    shown = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    assert leaked("".join(shown.format())) == []
    assert leaked(pickle.dumps(raised.value)) == []


@pytest.mark.parametrize("status", [200, 400])
def test_a10_a_server_that_names_the_request_by_the_key_does_not_make_it_known(
    status: int, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.status = status
    end = Echoing.end_headers

    def quoting(self: Echoing) -> None:
        self.send_header("x-request-id", "req-" + SECRETS["key"])
        self.send_header("x-ratelimit-limit-requests", SECRETS["header"])
        end(self)

    monkeypatch.setattr(Echoing, "end_headers", quoting)
    if status == 200:
        told = sa.Agent(secretive(server)).run("hi").messages[-1].metadata
        said: Any = told["request_id"], told
    else:
        with pytest.raises(sa.ModelError) as raised:
            sa.Agent(secretive(server)).run("hi")
        said = raised.value.request_id, pickle.dumps(raised.value)
    assert said[0] == "req-[key]"
    assert leaked(said) == []


def test_a10_the_way_there_is_not_masked(server: Any) -> None:
    """What is hidden from people is what the provider is sent."""
    server.status = 400
    seen: list[str] = []
    do = Echoing.do_POST

    def watching(self: Echoing) -> None:
        seen.append(f"{self.path} {dict(self.headers)}")
        do(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Echoing, "do_POST", watching)
        with pytest.raises(sa.ModelError):
            sa.Agent(secretive(server)).run("hi")
    assert SECRETS["header"] in seen[0]
    assert SECRETS["query"] in seen[0]
    assert "Basic " in seen[0]  # httpx takes a name in an address for the way to log in


def test_a10_a_model_from_another_process_has_its_options_but_no_secrets(server: Any) -> None:
    model = secretive(server, temperature=0.5, options={"extra": "kept"})
    woken = pickle.loads(pickle.dumps(model))
    assert woken.options["temperature"] == 0.5
    assert woken.options["extra_body"] == {"gateway": {"list": [{}]}}
    assert woken.base_url == f"http://127.0.0.1:{server.server_port}/v1"
    assert model.options["extra_headers"] == {"X-Api-Token": SECRETS["header"]}
    assert copy.copy(model).secrets({}) == model.secrets({})


def test_a10_a_recording_is_found_by_who_has_another_secret(server: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "answers.json")
    sa.Agent(sa.RecordedModel(secretive(server), cache=path, mode="record")).run("hi")
    other = secretive(server)
    other.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    other.options["extra_query"] = {"sig": "another-1234567"}
    replayed = sa.RecordedModel(other, cache=path, mode="replay")
    assert sa.Agent(replayed).run("hi").text == "ok"


@pytest.mark.parametrize(
    "options",
    [
        {"extra_query": {"api-version": "2024-10-21-preview"}},
        {"extra_headers": {"HTTP-Referer": "https://example.org", "X-Title": "assistant"}},
        {"extra_body": {"provider": {"order": ["openai"]}, "max_tokens": 20}},
        {"user": "someone-1234567890", "metadata": {"run": "a1b2c3d4e5f6"}},
    ],
)
def test_a10_what_is_no_secret_is_not_masked(options: dict[str, Any]) -> None:
    assert secrets_of_call("https://host/v1?api-version=2024-10-21", options) == set()


@pytest.mark.parametrize("make", [sa.AnthropicModel, sa.OpenAIModel, sa.OpenAIChatModel])
def test_a11_no_frame_of_ours_shows_a_secret(make: Callable[..., Any], server: Any) -> None:
    """Whatever fails on the way, with an option that no provider takes too."""
    server.status = 400
    model = make(
        "m",
        api_key=SECRETS["key"],
        base_url=f"http://me:{SECRETS['password']}@127.0.0.1:{server.server_port}",
        extra_headers={"X-Api-Token": SECRETS["header"]},
        thinking=object(),
    )
    request = ModelRequest(
        [sa.Message.user("hi")], options={"extra_query": {"sig": SECRETS["query"]}}
    )

    async def ask() -> str:
        try:
            async for _ in model.stream(request):
                pass
        except Exception as error:
            shown = traceback.TracebackException.from_exception(error, capture_locals=True)
            return "".join(shown.format())
        return ""

    assert leaked(run(ask())) == []


# a09: where a provider sends us on


def moved(server: Any, status: int, location: str) -> Callable[[Echoing], None]:
    """The first request is sent on; others are answered."""
    do = Echoing.do_POST

    def move(self: Echoing) -> None:
        server.seen.append((self.headers["host"], self.path))
        if len(server.seen) > server.moves:
            do(self)
            return
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(status)
        self.send_header("location", location)
        self.send_header("content-length", "0")
        self.end_headers()

    return move


@pytest.mark.parametrize("provider", [sa.AnthropicModel, sa.OpenAIModel, sa.OpenAIChatModel])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a09_no_other_host_is_sent_the_conversation(
    provider: Callable[..., Any], status: int, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.seen, server.moves = [], 1
    elsewhere = f"http://me:pw@localhost:{server.server_port}/v1/chat/completions"
    monkeypatch.setattr(Echoing, "do_POST", moved(server, status, elsewhere))
    model = provider("m", api_key=SECRETS["key"], base_url=f"http://127.0.0.1:{server.server_port}")
    with pytest.raises(sa.ModelError) as refused:
        sa.Agent(model).run("private")
    assert f"redirects to localhost:{server.server_port} (HTTP {status})" in str(refused.value)
    assert "pw@" not in str(refused.value)
    assert len(server.seen) == 1


def test_a09_a_place_of_the_same_host_is_followed(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.seen, server.moves = [], 2
    monkeypatch.setattr(Echoing, "do_POST", moved(server, 307, "/v2/chat?from=v1"))
    address = f"http://127.0.0.1:{server.server_port}/v1"
    model = sa.OpenAIChatModel("m", api_key=SECRETS["key"], base_url=address)
    assert sa.Agent(model).run("hi").text == "ok"
    assert [path for _, path in server.seen] == ["/v1/chat/completions"] + ["/v2/chat?from=v1"] * 2


def test_a09_a_circle_ends(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.seen, server.moves = [], 1000
    monkeypatch.setattr(Echoing, "do_POST", moved(server, 308, "/round"))
    address = f"http://127.0.0.1:{server.server_port}/v1"
    model = sa.OpenAIChatModel("m", api_key=SECRETS["key"], base_url=address)
    with pytest.raises(sa.ModelError, match="redirects to another place"):
        sa.Agent(model).run("hi")
    assert len(server.seen) == 4


# p01: the password of a store's server

PASSWORD = "hunter2-Xyz"
NOBODY = "127.0.0.1:1"  # where no server is


def stored_files(url: str) -> None:
    """Ask for the files that are kept there."""
    sa.SQLStorage(url).list("user:1")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@{NOBODY}/agents",
        f"postgresql://me@{NOBODY}/agents?password={PASSWORD}",
        f"postgresql://me:a@{PASSWORD}@{NOBODY}/agents",
        f"postgresql://me:a/{PASSWORD}@{NOBODY}/agents",
        f"postgresql://me:a#{PASSWORD}@{NOBODY}/agents",
        f"postgresql://me:a[{PASSWORD}@{NOBODY}/agents",
        f"postgresql:/me:{PASSWORD}@{NOBODY}/agents",
        f"me:{PASSWORD}@{NOBODY}/agents",
        f"host=127.0.0.1 port=1 user=me password={PASSWORD} dbname=agents",
        f"postgresql+psycopg2://me:{PASSWORD}@{NOBODY}/agents",
        f"mysql://me:{PASSWORD}@{NOBODY}/agents",
        f"postgresql://me:{PASSWORD}@127.0.0.1:abc/agents",
        f"postgresql://me:{PASSWORD}@{NOBODY}/agents?foo=1",
        f"postgresql://me:me@{NOBODY}/agents?sslpassword={PASSWORD}",
        f"postgresql://me:{PASSWORD}@{NOBODY}/agents?options=%27",
        f"postgresql://me:{PASSWORD}@{NOBODY}/agents?sslmode=bogus",
        f"postgresql://me:{PASSWORD}@{NOBODY}/agents?service=nope",
    ],
)
@pytest.mark.parametrize("use", [sa.ConversationStore, stored_files])
def test_no_spelling_of_a_url_shows_its_password(
    use: Callable[[str], Any], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sa.SagentsError) as caught:
        use(url)
    shown: list[str] = []
    told: BaseException | None = caught.value
    while told is not None:
        shown.append(f"{told} {told!r}")
        found = traceback.TracebackException.from_exception(told, capture_locals=True)
        for frame in found.stack:
            if frame.filename != __file__:
                shown += [f"{name} = {value}" for name, value in (frame.locals or {}).items()]
        told = told.__cause__ or told.__context__
    assert [line for line in shown if PASSWORD in line] == []
    assert [path.name for path in tmp_path.rglob("*") if PASSWORD in path.name] == []


@pytest.mark.parametrize("in_query", [False, True])
def test_p23_a_session_shows_the_password_of_its_store_nowhere(
    postgres_url: str,
    postgres_connection: sql.Connection,
    caplog: pytest.LogCaptureFixture,
    in_query: bool,
) -> None:
    user = f"p23_{in_query}".lower()
    made = f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{PASSWORD}'"
    postgres_connection.exec_driver_sql(made)
    url = sql.make_url(postgres_url).set(username=user, password=None if in_query else PASSWORD)
    caplog.set_level(logging.DEBUG)
    told: list[Any] = []
    store = sa.ConversationStore(url.update_query_dict({"password": PASSWORD}) if in_query else url)

    def fail() -> None:
        """Fail."""
        raise RuntimeError("it failed")

    model = sa.ScriptedModel([sa.ToolCall("c1", "fail", {}), "That failed.", "Again."])
    session = sa.Session(sa.Agent(model, tools=[sa.tool(fail)]), store=store)
    session.subscribe(told.append, debug=True)
    session.send("go").result(PATIENCE)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
    postgres_connection.exec_driver_sql(ended, (user,))
    session.send("and again").result(PATIENCE)
    shown = {
        "info": session.info(),
        "names": (session, store, store.database, store.scoped(sa.Scope(user="me"))),
        "surroundings": session.surroundings,
        "export": session.export_state(),
        "events": told,
        "log": caplog.text,
        "url": (store.database.url, str(store.database.url)),
        "frames": [session.to_frame(kind).to_string() for kind in MAKERS],
        "rows": store.load_display_messages(session.id),
    }
    assert [name for name, value in shown.items() if PASSWORD in repr(value)] == []
    assert len(told) > 10
    session.close()
    store.close()


def test_a_path_that_looks_a_little_like_an_address_is_one(tmp_path: Path) -> None:
    for name in ("a@b.db", "a=b.db", "10:30 me.db", "user=me/store.db", "host.db"):
        sa.ConversationStore(tmp_path / name).close()
        sa.ConversationStore(f"{tmp_path}/{name}").close()
