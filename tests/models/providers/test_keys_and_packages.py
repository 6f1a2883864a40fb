"""Keys stay secret; a missing key or package is told with the way out."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import socket
import subprocess
import sys
import threading
import traceback
from importlib.abc import MetaPathFinder
from typing import Any

import pytest

from sagents_nb.errors import ModelError
from sagents_nb.models import AnthropicModel, OpenAIChatModel, OpenAIModel
from sagents_nb.models.providers import clients
from tests.models.loopback import (
    KEY,
    MODELS,
    Answer,
    Provider,
    ask,
    message_of,
    model_for,
    provider_of,
    recorded,
)
from tests.talking import PATIENCE

PROVIDERS = sorted(MODELS)


def everything_in(error: BaseException) -> str:
    """All that a log, a traceback, a dump of attributes or a pickle shows of an error."""
    seen: list[str] = []
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None:
            continue
        seen += [str(each), repr(each), repr(each.args), repr(vars(each))]
        seen.append(repr(pickle.dumps(each)))
        seen += traceback.TracebackException.from_exception(each, capture_locals=True).format()
        todo += [each.__cause__, each.__context__]
    return "\n".join(seen)


QUOTES = {
    "error": {
        "type": "authentication_error",
        "message": f"Incorrect API key provided: {KEY}. You also sent {KEY[:12]}****.",
    }
}
FAULTS = {
    "401": Answer(json.dumps(QUOTES).encode(), 401, framing="length"),
    "400": Answer(json.dumps(QUOTES).encode(), 400, framing="length"),
    "500": Answer(f"proxy saw Authorization: Bearer {KEY}".encode(), 500, framing="length"),
    "cut": Answer(recorded("openai_chat_text")[:300]),
    "reset": Answer(b"", framing="chunked", end="reset"),
    "stall": Answer(b"", framing="chunked", end="stall"),
    "silence": Answer(hold=PATIENCE),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_no_error_shows_the_key(provider: Provider, name: str, fault: str) -> None:
    provider.answer = FAULTS[fault]
    hangs = fault in ("stall", "silence")
    heard = ask(model_for(name, provider.url, timeout=0.3 if hangs else PATIENCE))
    assert isinstance(heard.error, ModelError)
    assert heard.error.__cause__ is None
    assert heard.error.__context__ is None
    shown = everything_in(heard.error)
    assert KEY not in shown
    assert KEY[:8] not in shown.replace("sk-canary-…", "")
    if not hangs:  # it may have given up before it was asked
        assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "stream", ["anthropic_tool_use", "openai_chat_text", "openai_responses_text"]
)
def test_no_message_keeps_the_key_that_a_server_echoes(provider: Provider, stream: str) -> None:
    body = recorded(stream)
    provider.answer = Answer(body)
    model = model_for(provider_of(stream), provider.url)
    told = message_of(ask(model)).metadata
    for echoed in (told["model"], told["response_id"], "stop"):
        body = body.replace(f'"{echoed}"'.encode(), f'"Bearer {KEY}"'.encode())
    provider.answer = Answer(body, headers={"x-request-id": KEY})
    message = message_of(ask(model))
    assert message.metadata["model"] == message.metadata["response_id"] == "Bearer [key]"
    assert KEY.encode() not in pickle.dumps(message)


def test_no_call_has_the_key_that_a_server_echoes_for_its_name(provider: Provider) -> None:
    body = recorded("openai_chat_tool_call")
    provider.answer = Answer(body)
    model = model_for("openai-chat", provider.url)
    (called,) = message_of(ask(model)).tool_calls
    for echoed in (called.id, called.name):
        body = body.replace(f'"{echoed}"'.encode(), f'"x{KEY}"'.encode())
    provider.answer = Answer(body)
    (called,) = message_of(ask(model)).tool_calls
    assert (called.id, called.name) == ("x[key]", "x[key]")


@pytest.mark.parametrize("name", PROVIDERS)
def test_no_log_shows_the_key_that_a_broken_server_echoes(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def echo() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(f"Bearer {KEY} is no status line\r\n\r\n".encode())

        threading.Thread(target=echo, daemon=True).start()
        heard = ask(model_for(name, f"http://127.0.0.1:{server.getsockname()[1]}"))
    assert isinstance(heard.error, ModelError)
    assert "RemoteProtocolError" in caplog.text
    assert KEY[:20] not in caplog.text


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_unreachable_server_does_not_show_the_key(name: str) -> None:
    heard = ask(model_for(name, "http://127.0.0.1:9"))
    assert isinstance(heard.error, ModelError)
    assert heard.error.__cause__ is None
    assert heard.error.__context__ is None
    assert KEY not in everything_in(heard.error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_address_that_is_none_does_not_show_the_key(name: str) -> None:
    for address in ("http://[bad", "http://127.0.0.1:99999999", "nonsense"):
        heard = ask(MODELS[name]("m", api_key=KEY, base_url=address))
        assert isinstance(heard.error, ModelError), heard.error
        assert heard.error.__context__ is None
        assert KEY not in everything_in(heard.error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_key_that_was_pasted_with_its_line_end_works(provider: Provider, name: str) -> None:
    provider.answer = Answer(b"{}", 500, framing="length")
    base = provider.url if name == "anthropic" else provider.url + "/v1"
    ask(MODELS[name]("m", api_key=f" {KEY}\n", base_url=base))
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_key_that_no_header_can_carry_is_not_shown(provider: Provider, name: str) -> None:
    base = provider.url if name == "anthropic" else provider.url + "/v1"
    for odd in (f"{KEY}\nX-Evil: 1", f"{KEY}…"):
        heard = ask(MODELS[name]("m", api_key=odd, base_url=base))
        assert isinstance(heard.error, ModelError)
        assert KEY not in everything_in(heard.error)


@pytest.mark.parametrize(
    "given", [{}, {"api_key": f"{KEY}é"}, {"api_key": "k", "headers": {"X-É": KEY}}]
)
def test_a_key_with_a_character_of_no_header_names_its_variable(
    given: dict[str, Any], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}“")
    heard = ask(OpenAIChatModel("m", base_url=provider.url + "/v1", **given))
    assert isinstance(heard.error, ModelError)
    assert "check OPENAI_API_KEY, api_key=… and headers=…" in str(heard.error)
    assert heard.error.kind == "invalid_request"
    assert KEY not in everything_in(heard.error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_model_does_not_show_its_key(name: str) -> None:
    model = model_for(name, "http://127.0.0.1:9")
    assert KEY not in repr(model)
    assert KEY not in repr(vars(model))
    assert KEY.encode() not in pickle.dumps(model)


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        (AnthropicModel("m"), "ANTHROPIC_API_KEY"),
        (OpenAIModel("m"), "OPENAI_API_KEY"),
        (OpenAIChatModel("m"), "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_names_the_variable_and_the_demo(model: Any, variable: str) -> None:
    heard = ask(model)
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "missing_key"
    assert variable in str(heard.error)
    assert "api_key=" in str(heard.error)
    assert "'demo'" in str(heard.error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_server_of_ones_own_needs_no_key(provider: Provider, name: str) -> None:
    provider.answer = Answer(b"{}", 500, framing="length")
    base = provider.url if name == "anthropic" else provider.url + "/v1"
    heard = ask(MODELS[name]("m", base_url=base))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "server"
    assert len(provider.requests) == 1


def test_the_key_may_come_from_the_environment(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.answer = Answer(recorded("openai_chat_text"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-env")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url + "/v1")
    assert ask(OpenAIChatModel("m")).error is None
    assert provider.requests[0].headers["authorization"] == "Bearer sk-from-env"


class Absent(MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in ("anthropic", "openai"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_missing_package_is_told_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = "anthropic" if name == "anthropic" else "openai"
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    heard = ask(model_for(name, "http://127.0.0.1:9"))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "missing_package"
    assert f"pip install 'sagents-nb[{package}]'" in str(heard.error)
    assert heard.error.__context__ is None


def test_importing_and_making_models_loads_no_sdk() -> None:
    code = (
        "import sys; from sagents_nb.models import AnthropicModel, OpenAIModel, OpenAIChatModel, "
        "resolve_model; AnthropicModel('a'); OpenAIModel('b'); resolve_model('openai-chat:c');"
        "print(sorted({'anthropic', 'openai', 'httpx2', 'httpx', 'pydantic'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_preload_imports_the_sdk_in_the_background() -> None:
    code = (
        "import sys, time; from sagents_nb.models import OpenAIModel; OpenAIModel('m').preload()\n"
        "while 'openai' not in sys.modules: time.sleep(0.01)\n"
        "print('openai' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "True"


def test_models_with_the_same_key_and_address_share_one_client() -> None:
    async def main() -> list[Any]:
        made = []
        for model in (
            OpenAIModel("a", api_key="k", base_url="http://127.0.0.1:9"),
            OpenAIChatModel("b", api_key="k", base_url="http://127.0.0.1:9"),
            OpenAIModel("a", api_key="other", base_url="http://127.0.0.1:9"),
        ):
            made.append(await clients.client(model.sdk, model.key, clients.Secret(model.base_url)))
        await clients.close_clients()
        return made

    first, second, other = asyncio.run(main())
    assert first is second
    assert first is not other
