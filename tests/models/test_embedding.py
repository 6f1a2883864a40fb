"""Vectors of texts from a server, through the real SDK: in order, once each, and recorded."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import sagents_nb as sa
from sagents_nb.models.embedding import MOST_CHARACTERS
from tests.models.loopback import KEY, Answer, Provider, Recorded, model_for

JSON = {"content-type": "application/json"}


def base64_of(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def vector_of(text: str) -> list[float]:
    return [float(len(text)), float(ord(text[0])), 0.5]


Shape = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def answering(shape: Shape = lambda data: data, encode: Any = base64_of) -> Any:
    def answer(request: Recorded) -> Answer:
        texts = request.body["input"]
        data = [{"index": n, "embedding": encode(vector_of(text))} for n, text in enumerate(texts)]
        body = {"object": "list", "data": shape(data), "usage": {"prompt_tokens": 3}}
        return Answer(json.dumps(body).encode(), headers=JSON, framing="length")

    return answer


@pytest.fixture
def server(provider: Provider) -> Provider:
    provider.answer = answering()
    return provider


def inputs(provider: Provider) -> list[list[str]]:
    return [request.body["input"] for request in provider.requests]


@pytest.mark.parametrize("name", ["openai", "openai-chat"])
def test_each_text_has_its_vector_in_order(server: Provider, name: str) -> None:
    vectors = model_for(name, server.url).embed(["a", "bcd"])
    assert [list(vector) for vector in vectors] == [vector_of("a"), vector_of("bcd")]
    assert numpy.asarray(vectors).shape == (2, 3)
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "some-model",
        "input": ["a", "bcd"],
        "encoding_format": "base64",
    }


@pytest.mark.parametrize(
    ("shape", "encode"),
    [
        (lambda data: data[::-1], base64_of),
        (lambda data: data, list),
        (lambda data: [{"embedding": each["embedding"]} for each in data], list),
    ],
    ids=["another order", "lists of numbers", "no index"],
)
def test_servers_that_are_only_nearly_alike_are_read(
    server: Provider, shape: Shape, encode: Any
) -> None:
    server.answer = answering(shape, encode)
    vectors = model_for("openai-chat", server.url).embed(["a", "bcd"])
    assert [list(vector) for vector in vectors] == [vector_of("a"), vector_of("bcd")]


@pytest.mark.parametrize(
    "shape",
    [
        lambda data: data[:-1],
        lambda data: [{**each, "index": 0} for each in data],
        lambda data: [{**each, "embedding": "no base64!"} for each in data],
        lambda data: [{**each, "embedding": base64_of([float("nan")])} for each in data],
        lambda data: [*data[:-1], {**data[-1], "embedding": base64_of([1.0])}],
        lambda data: [{**each, "embedding": ""} for each in data],
        lambda data: [{"other": 1}],
    ],
    ids=["too few", "one index", "no base64", "no number", "two lengths", "empty", "no vectors"],
)
def test_what_is_no_vector_for_each_is_one_clear_error(server: Provider, shape: Shape) -> None:
    server.answer = answering(shape)
    with pytest.raises(sa.ModelError, match="gave no vector for each of 2 texts; check that"):
        model_for("openai-chat", server.url, retries=0).embed(["a", "bcd"])


def test_the_same_text_is_sent_once_and_many_in_portions(server: Provider) -> None:
    model = model_for("openai", server.url)
    texts = [f"text {n % 300}" for n in range(600)]
    vectors = model.embed(texts)
    assert [len(some) for some in inputs(server)] == [256, 44]
    assert vectors[5] == vectors[305]
    server.requests.clear()
    half = "x" * (MOST_CHARACTERS // 2)
    model.embed([f"{half}1", f"{half}2", "short"])
    assert [len(some) for some in inputs(server)] == [1, 2]


def test_no_texts_ask_nobody(server: Provider) -> None:
    assert model_for("openai", server.url).embed([]) == []
    assert server.requests == []


def test_dimensions_and_what_the_model_was_given_for_its_server_go_along(server: Provider) -> None:
    extra = {"extra_body": {"input_type": "query"}, "extra_headers": {"x-team": "blue"}}
    model = model_for("openai", server.url, max_tokens=5, **extra)
    model.embed(["a"], dimensions=3)
    (request,) = server.requests
    assert (request.body["dimensions"], request.body["input_type"]) == (3, "query")
    assert request.headers["x-team"] == "blue"
    assert "max_tokens" not in request.body


def test_it_can_be_awaited_on_any_loop(server: Provider) -> None:
    (vector,) = asyncio.run(model_for("openai", server.url).aembed(["a"]))
    assert list(vector) == vector_of("a")


def test_a_server_that_is_busy_is_asked_again(server: Provider) -> None:
    answers = [Answer(b"{}", 503, {**JSON, "retry-after": "0"}, "length")]

    def first_busy(request: Recorded) -> Answer:
        return answers.pop() if answers else answering()(request)

    server.answer = first_busy

    async def at_once(seconds: float) -> None:
        pass

    model = sa.RetryingModel(model_for("openai", server.url), sleep=at_once)
    assert list(model.embed(["a"])[0]) == vector_of("a")
    assert len(server.requests) == 2


def test_a_limit_is_of_embeddings_too(server: Provider) -> None:
    waited: list[float] = []

    async def at_once(seconds: float) -> None:
        waited.append(seconds)

    limited = sa.Limited(model_for("openai", server.url), per_minute=1, sleep=at_once)
    limited.embed(["a"])
    limited.embed(["b"])
    assert len(waited) == 1


def test_a_fallback_is_not_asked_since_its_vectors_are_others(server: Provider) -> None:
    both = sa.FallbackModel([sa.ScriptedModel([]), model_for("openai", server.url)])
    with pytest.raises(sa.ConfigurationError, match="gives no embeddings"):
        both.embed(["a"])
    assert server.requests == []


@pytest.mark.parametrize("model", [sa.ScriptedModel([]), sa.AnthropicModel("claude-sonnet-5-5")])
def test_a_model_that_gives_none_says_which_do(model: sa.ChatModel) -> None:
    with pytest.raises(sa.ConfigurationError, match="such as 'openai:text-embedding-3-small'"):
        model.embed(["a"])


@pytest.mark.parametrize("wrong", ["a text", [1], None])
def test_what_is_no_list_of_texts_is_refused(wrong: Any) -> None:
    with pytest.raises(sa.ConfigurationError, match="a list of texts"):
        sa.OpenAIModel("e").embed(wrong)


def test_no_key_is_in_an_error(server: Provider) -> None:
    said = json.dumps({"error": {"message": f"no model for {KEY}"}}).encode()
    server.answer = Answer(said, 400, JSON, "length")
    with pytest.raises(sa.ModelError, match="no model for") as caught:
        model_for("openai", server.url).embed(["a"])
    error = caught.value
    assert KEY not in f"{error!r} {error.__context__!r} {error.__cause__!r}"


def test_tools_are_found_by_an_embedding_model(server: Provider) -> None:
    def tides(port: str = "") -> str:
        """When the sea is high."""
        return "At 6."

    model = sa.ScriptedModel(["At 6."])
    search = sa.ToolSearch(embedder=model_for("openai", server.url).embed)
    sa.Agent(model, tools=[tides], middleware=[search], defaults=False).run("xyzzy")
    assert [tool.name for tool in model.requests[0].tools] == ["search_tools", "tides"]


# recordings


@pytest.mark.parametrize("cache", ["vectors.json", "vectors"])
def test_vectors_are_recorded_each_and_only_new_texts_are_asked_for(
    server: Provider, tmp_path: Path, cache: str
) -> None:
    path = tmp_path / cache
    model = sa.RecordedModel(model_for("openai", server.url), path)
    first = model.embed(["a", "bcd"])
    assert model.embed(["bcd", "new", "a"])[0] == first[1]
    assert inputs(server) == [["a", "bcd"], ["new"]]
    replayed = sa.RecordedModel(model_for("openai", server.url), path, "replay")
    assert replayed.embed(["a", "bcd"]) == first
    assert len(server.requests) == 2


def test_a_replay_says_which_text_was_never_recorded(server: Provider, tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    sa.RecordedModel(model_for("openai", server.url), path).embed(["abc"])
    replayed = sa.RecordedModel(model_for("openai", server.url), path, "replay")
    with pytest.raises(sa.ReplayMiss, match="abd"):
        replayed.embed(["abc", "abd"])
    with pytest.raises(sa.ReplayMiss, match="dimensions"):
        replayed.embed(["abc"], dimensions=2)


def test_recorded_anew_each_text_is_asked_for_once(server: Provider, tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    sa.RecordedModel(model_for("openai", server.url), path).embed(["a"])
    again = sa.RecordedModel(model_for("openai", server.url), path, "record")
    again.embed(["a"])
    again.embed(["a"])
    assert inputs(server) == [["a"], ["a"]]


def test_a_chat_with_the_same_text_is_another_recording(server: Provider, tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    sa.RecordedModel(model_for("openai", server.url), path).embed(["a"])
    with pytest.raises(sa.ReplayMiss):
        sa.RecordedModel(model_for("openai", server.url), path, "replay").complete("a")
