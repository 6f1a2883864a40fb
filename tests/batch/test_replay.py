"""A study that asked a real server once, replayed in another process without a socket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sagents_nb as sa
from tests.models.loopback import Answer, Provider, Recorded

pytest.importorskip("pandas")
pytest.importorskip("diskcache")
pytest.importorskip("openai")

MODELS = ("small", "large")
PROMPTS = [f"Is {n} a prime number?" for n in range(25)]

REPLAY = """
import json, sys
from tests.batch.test_replay import PROMPTS, study

opened = []
TOLD = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}
sys.addaudithook(lambda event, _: opened.append(event) if event in TOLD else None)
texts = [list(frame.text) for frame in study(*sys.argv[1:], "replay")]
print(json.dumps({"opened": opened, "texts": texts}))
"""


def study(url: str, recordings: str, rows: str, mode: Any) -> list[Any]:
    """A row for each prompt, for each of two models."""
    frames = []
    for name in MODELS:
        model = sa.OpenAIChatModel(name, api_key="none", base_url=url)
        agent = sa.Agent(sa.RecordedModel(model, recordings, mode))
        frames.append(agent.map(PROMPTS, cache=rows or None, progress=False, concurrency=20))
        assert (frames[-1].status == "completed").all(), frames[-1].error[0]
    return frames


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    provider.answer = answered
    yield provider
    provider.close()


def answered(request: Recorded) -> Answer:
    """The question, after the name of the model."""
    text = f"{request.body['model']}: {request.body['messages'][-1]['content']}"
    return Answer(_streamed(text), headers={"content-type": "text/event-stream"})


def _streamed(text: str) -> bytes:
    start = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks: list[object] = [
        {**start, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]},
        {**start, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def test_a_study_that_was_recorded_once_is_replayed_without_a_socket(
    provider: Provider, tmp_path: Path
) -> None:
    where = [provider.url, str(tmp_path / "cache")]
    rows = str(tmp_path / "rows.jsonl")
    recorded: list[Any] = study(*where, rows, "record")
    assert len(provider.requests) == 50
    provider.close()
    for kept in ("", rows):  # from the answers of the models, and from whole rows
        told = replayed(*where, kept)
        assert told["opened"] == []
        assert told["texts"] == [list(frame.text) for frame in recorded]
        assert told["texts"][1][24] == "large: Is 24 a prime number?"


def replayed(*where: str) -> Any:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, *where],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
