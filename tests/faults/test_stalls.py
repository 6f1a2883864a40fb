"""Nothing that a provider, a person or a model gives holds up all sessions."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any

import pytest

import sagents_nb as sa
from tests.faults.serving import STREAM, Echoing
from tests.talking import agent_of

# a08: packed bodies, and lines without an end


def sending(encoding: str, body: bytes) -> Any:
    def send(self: Echoing) -> None:
        assert self.headers["accept-encoding"] == "identity"
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-encoding", encoding)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    return send


def asked(server: Any) -> str:
    model = sa.OpenAIChatModel("m", api_key="k", base_url=f"http://127.0.0.1:{server.server_port}")
    return sa.Agent(model, replace_default_middleware=True).run("hi").text


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", STREAM),
        ("gzip", gzip.compress(STREAM)),
        ("X-GZIP", gzip.compress(STREAM)),
        ("deflate", zlib.compress(STREAM)),
    ],
)
def test_a08_what_comes_packed_all_the_same_is_read(
    encoding: str, body: bytes, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Echoing, "do_POST", sending(encoding, body))
    assert asked(server) == "ok"


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("gzip", gzip.compress(b"\0" * 2_000_000), "one event has over 1,000,000 bytes"),
        ("gzip", gzip.compress(b"data: x\n" * 200_000), "one event has over 1,000,000 bytes"),
        ("identity", b"data: " + b"x" * 2_000_000, "one event has over 1,000,000 bytes"),
        ("gzip", b"no gzip at all", "incorrect header check"),
        ("br", b"anything", "it came packed as 'br', for which nobody asked"),
    ],
)
def test_a08_a_body_that_nobody_should_read_on_is_cut(
    encoding: str, body: bytes, why: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sagents_nb.models.providers.streaming.LONGEST_EVENT", 1_000_000)
    monkeypatch.setattr(Echoing, "do_POST", sending(encoding, body))
    with pytest.raises(sa.ModelError, match=why) as cut:
        asked(server)
    assert cut.value.kind == "cut_stream"


# a12: a map of more at once than there are rows


def test_a12_there_are_no_more_workers_than_rows() -> None:
    most = 0

    def answer(request: Any) -> str:
        nonlocal most
        most = max(most, len(asyncio.all_tasks()))
        return "x"

    agent = agent_of(*[answer] * 3)
    frame = agent.map(["a", "b", "c"], concurrency=10**9, progress=False)
    assert len(frame) == 3
    assert most < 50
