"""What goes wrong becomes one ModelError that says what to do."""

from __future__ import annotations

import email.utils
import json
import socket

import pytest

from sagents_nb.errors import ModelError
from sagents_nb.models.providers.errors import retry_after
from sagents_nb.redaction import redacted
from tests.models.loopback import MODELS, Answer, Provider, ask, model_for
from tests.talking import PATIENCE

PROVIDERS = sorted(MODELS)


def error_of(
    provider: Provider, name: str, status: int, error: object, headers: dict[str, str] | None = None
) -> ModelError:
    body = json.dumps({"type": "error", "error": error}).encode()
    provider.answer = Answer(
        body, status, {"content-type": "application/json"} | (headers or {}), framing="length"
    )
    heard = ask(model_for(name, provider.url))
    assert isinstance(heard.error, ModelError)
    assert heard.message is None
    return heard.error


TABLE = [
    (400, {"type": "invalid_request_error", "message": "max_tokens: too big"}, "invalid_request"),
    (400, {"message": "prompt is too long: 215000 tokens > 200000 maximum"}, "context_window"),
    (400, {"code": "context_length_exceeded", "message": "too much"}, "context_window"),
    (400, {"type": "exceed_context_size_error", "message": "too much"}, "context_window"),
    (400, {"message": "This model's maximum context length is 4096 tokens."}, "context_window"),
    (401, {"type": "authentication_error", "message": "invalid x-api-key"}, "authentication"),
    (402, {"type": "billing_error", "message": "pay"}, "authentication"),
    (403, {"type": "permission_error", "message": "not yours"}, "authentication"),
    (404, {"type": "not_found_error", "message": "model: some-model"}, "invalid_request"),
    (408, {"message": "slow"}, "timeout"),
    (409, {"message": "conflict"}, "server"),
    (413, {"type": "request_too_large", "message": "big"}, "context_window"),
    (422, {"message": "unprocessable"}, "invalid_request"),
    (429, {"type": "rate_limit_error", "message": "slow down"}, "rate_limit"),
    (429, {"type": "insufficient_quota", "message": "quota"}, "authentication"),
    (500, {"type": "api_error", "message": "boom"}, "server"),
    (502, {"message": "bad gateway"}, "server"),
    (503, {"message": "unavailable"}, "overloaded"),
    (504, {"message": "gateway"}, "timeout"),
    (529, {"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
]


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(("status", "error", "kind"), TABLE)
def test_each_status_has_its_kind_and_one_sentence(
    provider: Provider, name: str, status: int, error: dict[str, str], kind: str
) -> None:
    raised = error_of(provider, name, status, error)
    assert raised.kind == kind
    assert raised.status == status
    assert str(status) in str(raised)
    assert "\n" not in str(raised)
    assert str(raised).endswith(".")
    assert len(provider.requests) == 1  # the SDKs' own retries are off


def test_a_server_of_ones_own_is_not_called_by_the_name_of_a_company(provider: Provider) -> None:
    raised = error_of(provider, "openai-chat", 500, {"message": "boom"})
    assert str(raised).startswith(f"The server at 127.0.0.1:{provider.port} failed")


def test_a_missing_model_is_named(provider: Provider) -> None:
    raised = error_of(provider, "openai", 404, {"message": "no"})
    assert "'some-model'" in str(raised)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_rate_limit_says_how_long_to_wait_and_does_not_wait(
    provider: Provider, name: str
) -> None:
    raised = error_of(provider, name, 429, {"message": "slow"}, {"retry-after": "3600"})
    assert raised.retry_after == 3600
    assert "3600 s" in str(raised)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1"}, 1),
        ({"retry-after": "60"}, 60),
        ({"retry-after": "3600"}, 3600),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_retry_after_is_read_or_ignored(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("asked", "said"), [("0", "; try again, or"), ("0.2", "again in 1 s,"), ("60", "in 60 s,")]
)
def test_when_to_try_again_is_never_in_no_time(provider: Provider, asked: str, said: str) -> None:
    raised = error_of(provider, "openai", 429, {"message": "slow"}, {"retry-after": asked})
    assert said in str(raised)


def test_retry_after_may_be_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sagents_nb.models.providers.errors.time.time", lambda: 1_700_000_000.0)
    date = email.utils.formatdate(1_700_000_100, usegmt=True)
    assert retry_after({"retry-after": date}) == 100


OVERLOADED = {
    "anthropic": 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'
    '"message":"Overloaded"}}\n\n',
    "openai": 'event: response.failed\ndata: {"type":"response.failed","response":{"status":'
    '"failed","error":{"code":"server_is_overloaded","message":"Overloaded"}}}\n\n',
    "openai-chat": 'data: {"error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_overload_inside_a_stream_of_status_200_is_an_overload(
    provider: Provider, name: str
) -> None:
    provider.answer = Answer(OVERLOADED[name].encode(), framing="chunked")
    heard = ask(model_for(name, provider.url))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "overloaded"
    assert heard.message is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "rate_limit_exceeded", "message": "slow"}, "rate_limit"),
        ({"code": "server_error", "message": "boom"}, "server"),
        ({"code": "invalid_prompt", "message": "no"}, "invalid_request"),
        ({"code": "context_length_exceeded", "message": "long"}, "context_window"),
        ({"code": "something_new", "message": "hm"}, "unknown"),
    ],
)
def test_a_failed_response_has_its_kind(
    provider: Provider, error: dict[str, str], kind: str
) -> None:
    event = {"type": "response.failed", "response": {"status": "failed", "error": error}}
    provider.answer = Answer(f"data: {json.dumps(event)}\n\n".encode())
    heard = ask(model_for("openai", provider.url))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == kind


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_server_that_is_not_there_is_a_connection_error(name: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    heard = ask(model_for(name, f"http://127.0.0.1:{port}"))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "connection"
    assert f"127.0.0.1:{port}" in str(heard.error)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_server_that_says_nothing_is_a_timeout(provider: Provider, name: str) -> None:
    provider.answer = Answer(hold=PATIENCE)
    heard = ask(model_for(name, provider.url, timeout=0.2))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "timeout"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_web_page_instead_of_a_stream_points_to_base_url(provider: Provider, name: str) -> None:
    provider.answer = Answer(b"<html>Log in</html>", headers={"content-type": "text/html"})
    heard = ask(model_for(name, provider.url))
    assert isinstance(heard.error, ModelError)
    assert heard.error.kind == "server"
    assert "text/html" in str(heard.error)
    assert "base_url" in str(heard.error)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-****abcd.",
        "Bearer sk-canary-8d1f6c3b is wrong",
        "key 8d1f6c3b5a7e9024 and its start 8d1f6c3b… are wrong",
        "wrong: 8d1f************",
    ],
)
def test_what_looks_like_a_key_is_not_quoted(text: str) -> None:
    said = redacted(text, ("8d1f6c3b5a7e9024",))
    assert "8d1f6c3b" not in said
    assert "8d1f" not in said
    assert "abcd" not in said
    assert "wrong" in said or "Incorrect" in said
