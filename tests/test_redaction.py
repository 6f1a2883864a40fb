"""No key is ever written down."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sagents_nb as sa
from sagents_nb.models import ModelRequest
from sagents_nb.redaction import (
    PlaceRedaction,
    is_secret,
    masked,
    redacted,
    redacted_json,
    secrets_of_names,
)
from sagents_nb.text import logger_of
from tests.models.cache.asking import CANARY, answered
from tests.talking import agent_of

KEYS = [
    CANARY,
    "sk-ant-api03-AbCdEfGhIjKlMnOp",
    "sk-proj-0123456789abcdefghij",
    "Bearer abcdefghijklmnop1234",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "hf_abcdefghijklmnopqrstuvwxyzabcdefgh",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "xoxb-0123456789-abcdefghij",
]


@pytest.mark.parametrize(
    "text", ["{'password': 'hunter2-x'}", "api_key: hunter2-x", "token=hunter2-x, pwd = pw-1-y"]
)
def test_what_is_masked_is_masked_once(text: str) -> None:
    once = masked(text, ["hunter2-x"])
    assert "hunter2-x" not in once
    assert "[key]]" not in once
    assert masked(once, ["hunter2-x"]) == once


def test_where_a_shell_is_and_was_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/home/me/project-of-mine")
    monkeypatch.setenv("OLDPWD", "/home/me/elsewhere-today")
    monkeypatch.setenv("DB_PWD", "correct-horse-battery")
    found = secrets_of_names({})
    assert "/home/me/project-of-mine" not in found
    assert "/home/me/elsewhere-today" not in found
    assert "correct-horse-battery" in found


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "around",
    ["{}", "a {} b", "line\n{}", "\t{}", "key={}", '"{}"', "({})", "of_{}", "Bearer%20{}"],
)
def test_what_looks_like_a_key_is_not_written(key: str, around: str) -> None:
    text = redacted_json(json.dumps(around.format(key)).encode())
    assert key.encode() not in text
    assert json.loads(text) == around.format("[redacted]")


@pytest.mark.parametrize(
    "text",
    [
        *("a task-force", "risk-averse-people-of-the-north", "sk-", "Bearer of news", "***"),
        *("Basic internationalization", "the bearer notwithstanding-that", "github_pat_", "AKIA"),
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redacted_json(json.dumps(text).encode()) == json.dumps(text).encode()


def test_a_key_in_use_is_found_whatever_it_looks_like() -> None:
    key = 'p"ass\\wörd-of-mine-1'
    text = json.dumps({"a": f"x{key}y", "b": key[:12]}).encode()
    assert json.loads(redacted_json(text, (key,))) == {"a": "x[redacted]y", "b": "[redacted]"}


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_key_in_use_is_found_however_json_is_written(ascii_only: bool) -> None:
    key = "wörd-of-mine-and-yours"
    text = json.dumps([f"x{key}y", key[:9]], ensure_ascii=ascii_only).encode()
    assert json.loads(redacted_json(text, (key,))) == ["x[redacted]y", "[redacted]"]


@pytest.mark.parametrize("key", KEYS)
def test_what_looks_like_a_key_is_in_no_text_for_people(key: str) -> None:
    hidden = PlaceRedaction("s3://bucket", {})
    assert key not in redacted(f"it said {key} is wrong")
    assert key not in hidden(f"it said {key} is wrong")


@given(st.text(), st.text(min_size=16, alphabet='abc"\\\n é'))
def test_what_is_left_is_still_json(text: str, key: str) -> None:
    left = redacted_json(json.dumps([text, key]).encode(), (key,))
    assert isinstance(json.loads(left), list)


def test_names_of_secrets() -> None:
    secret = "Authorization authorization x-api-key api_key Cookie Set-Cookie X-Auth-Token"
    assert all(is_secret(name) for name in secret.split())
    plain = "max_tokens anthropic-beta temperature keyboard tool_choice token_count"
    assert not any(is_secret(name) for name in plain.split())


class Quoting(sa.ChatModel):
    """Says the key it was given, and more."""

    name = "quoting"

    async def stream(self, request: Any) -> Any:
        yield f"Your key is {CANARY}."
        yield sa.Message.assistant(f"Your key is {CANARY}.", usage=sa.Usage(1, 1))


@pytest.mark.parametrize("place", ["cache", "tape.json"])
@pytest.mark.parametrize("where", ["environment", "request", "model"])
def test_the_canary_is_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, where: str
) -> None:
    if where == "environment":
        monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    inner = Quoting()
    if where == "model":
        inner.key = sa.AnthropicModel("x", api_key=CANARY).key  # type: ignore[attr-defined]
    printed = f"KEY={CANARY}\nAuthorization: Bearer {CANARY}"
    history = [
        sa.Message.user(f"Use {CANARY}, please, or {CANARY[:12]}."),
        sa.Message.assistant("", [sa.ToolCall("c1", "env", {"names": [CANARY]})]),
        sa.Message.tool([sa.ToolResult("c1", "env", printed)]),
    ]
    request = ModelRequest(
        history,
        f"The key is {CANARY}.",
        options={"extra_headers": {"authorization": f"Bearer {CANARY}", "x-note": CANARY}},
        api_key=CANARY if where == "request" else None,
    )
    answered(sa.RecordedModel(inner, tmp_path / place), request)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    for path in written:
        assert CANARY[:10].encode() not in path.read_bytes(), path


def test_a_recording_that_quotes_a_key_replays_where_the_key_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "correct horse battery staple"

    @sa.tool
    def environment() -> str:
        """Print the environment."""
        return f"KEY={secret}" if live else "KEY=[redacted]"

    turns = [sa.ToolCall("c1", "environment", {}), "I have seen it."]
    live = True
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    tape = tmp_path / "tape.json"
    sa.Agent(sa.RecordedModel(sa.ScriptedModel(turns), tape), tools=[environment]).run("go")
    assert secret not in tape.read_text()
    live = False
    monkeypatch.delenv("OPENAI_API_KEY")
    replay = sa.RecordedModel(sa.ScriptedModel([]), tape, "replay")
    assert sa.Agent(replay, tools=[environment]).run("go").text == "I have seen it."


@pytest.mark.parametrize("secrets", [[], ["k" * 20]])
@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "*",
        "* ",
        "sk-",
        "sk-a ",
        "Bearer ",
        "Bearer  a",
        "Basic a",
        "a*",
        "k",
        "k" * 8,
        " ",
        "(",
    ],
)
def test_a_text_of_a_megabyte_is_looked_at_once(unit: str, secrets: list[str]) -> None:
    """A provider's error may be a word of any length; at the square of it this takes hours."""
    text = (unit * 1_000_000)[:1_000_000]
    for whole in (text, f"*** {text}", f"{text}***", f"Bearer{text}", f"Bearer {text}"):
        redacted(whole, secrets)
    redacted_json(text.encode(), secrets)


class Watching(sa.Middleware):
    def on_event(self, event: Any, ctx: Any) -> None:
        raise ValueError(f"no {CANARY}")


def misplaced(folder: Path) -> dict[str, Callable[[], Any]]:
    """What logs a path or an id that has a key in it."""
    out_of_reach = folder / "file" / CANARY  # below what is no folder
    (folder / "file").write_text("")

    nowhere = f"/proc/none/{CANARY}"  # where nothing can be made
    return {
        "a map": lambda: agent_of("x").map(["?"], cache=nowhere, progress=False),
        "a cache": lambda: sa.ResponseCache(out_of_reach).get("k"),
        "a cassette": lambda: sa.Agent(
            sa.RecordedModel(sa.ScriptedModel(["x"]), cache=out_of_reach / "x.json")
        ).run("?"),
        "a debug log": lambda: agent_of("x", middleware=[sa.DebugLog(out_of_reach)]).run("?"),
        "a hook": lambda: agent_of("x", middleware=[Watching()]).run("?"),
    }


@pytest.mark.parametrize("what", ["a map", "a cache", "a cassette", "a debug log", "a hook"])
def test_no_log_has_a_key_in_a_path_or_an_error(
    what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "sagents_nb"):
        misplaced(tmp_path)[what]()
    told = [record for record in caplog.records if record.name.startswith("sagents_nb")]
    assert told
    assert CANARY not in caplog.text
    assert not any(CANARY in repr(record.exc_info) for record in told)


def test_what_cannot_be_written_is_the_affair_of_who_shows_logs() -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("odd")

    record = logging.LogRecord("sagents_nb.x", 30, "", 0, "no %s", (Mute(),), None)
    assert logger_of("sagents_nb.x").filter(record)
    assert isinstance(record.args[0], Mute)  # type: ignore[index]


@pytest.mark.spec("R4.4.8")
def test_everything_here_logs_so() -> None:
    folder = Path(sa.__file__).parent
    by_itself = [
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if re.search(r"getLogger\((__name__|[\"'])", path.read_text())
    ]
    assert by_itself == []


class OfKey(sa.ChatModel):
    name = CANARY


@pytest.mark.parametrize(
    "make",
    [
        lambda: sa.Agent(sa.ScriptedModel([]), name=CANARY),
        lambda: sa.Agent(OfKey()),
        lambda: sa.RetryingModel(OfKey()),
        lambda: sa.Session(agent_of("x"), id=CANARY),
        lambda: sa.Session(agent_of("x"), id=CANARY).send("?"),
        lambda: agent_of("x").as_tool(CANARY, "Answers."),
        lambda: sa.Mount(CANARY, sa.DiskStorage(CANARY)),
        lambda: sa.DiskStorage(CANARY),
        lambda: sa.open_filesystem((CANARY, 1)),
        lambda: sa.ResponseCache(CANARY),
        lambda: ModelRequest([], model=CANARY),
        lambda: sa.ChatView(sa.Session(agent_of("x"), id=CANARY)),
    ],
)
def test_no_repr_has_a_key_that_is_a_name_a_path_or_an_id(
    make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert CANARY not in repr(make())


@pytest.mark.parametrize(
    "fail",
    [
        lambda: sa.Session(agent_of("x"), headless=CANARY),
        lambda: sa.sessions.get(CANARY),
        lambda: sa.ConversationStore("sqlite://").get_conversation(CANARY),
        lambda: sa.ConversationStore(f"sqlite:////dev/null/{CANARY}.db"),
        lambda: sa.open_filesystem(("redaction", 1)).read(f"/{CANARY}"),
        lambda: closed(sa.Session(agent_of("x"), id=CANARY)).send("?"),
    ],
)
def test_no_error_has_a_key_in_a_wrong_place(fail: Callable[[], Any]) -> None:
    with pytest.raises(sa.SagentsError) as raised:
        fail()
    assert CANARY not in str(raised.value)


def closed(session: sa.Session) -> sa.Session:
    session.close()
    return session
