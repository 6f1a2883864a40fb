"""What is said to the hub, and what is no way to say it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.served import (
    LISTED_ORIGIN,
    TOKEN,
    Served,
    answer_from,
    kept,
    request_of,
    serving,
)

MOST = 1_048_576
JSON = ("Content-Type", "application/json")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hub") / "hub.db"


@pytest.fixture(scope="module")
def served(store: Path) -> Iterator[Served]:
    with serving(store) as served:
        yield served


def headers(served: Served, *more: tuple[str, str]) -> list[tuple[str, str]]:
    host = ("Host", f"127.0.0.1:{served.port}")
    return [host, ("X-SECRET", TOKEN), ("Connection", "close"), *more]


def paths(served: Served) -> Iterator[tuple[str, str]]:
    """The routes that take a body, of a thread where something waits."""
    thread = served.thread("clerk")
    for route in ROUTES:
        if route.body is not None:
            there = served.places(thread=thread)
            yield route.method, route.path.format(**there)


def refused(served: Served, store: Path, raw: bytes, status: int, kind: str = JSON[1]) -> None:
    """That all routes with a body refuse these bytes and change nothing."""
    asked = list(paths(served))
    before = kept(store)
    for method, path in asked:
        more = headers(served, ("Content-Type", kind))
        answer = served.raw(request_of(method, path, *more, body=raw))
        assert answer.status == status, (path, answer)
        assert answer.error
        assert answer.error.count("\n") == 0
        assert len(answer.error) < 400
    assert kept(store) == before


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"7",
        b"{}{}",
        b"\xff\xfe{\x00}\x00",
        b'{"name": "\xff"}',
        b"\xef\xbb\xbf{}",
        b"{'name': 'x'}",
        b'{"name": NaN}',
        b'{"name": "\\ud800"}',
        b'{"\\udfff": 1}',
        b'{"name": "a\nb"}',
        b'{"unknown": 1}',
        b'{"' + b"x" * 100_000 + b'": 1}',
        b'{"__proto__": {}}',
        b'{"name": 7, "code": 7, "agentType": 7, "approved": 7, "messages": 7}',
        b'{"name": {}, "code": [], "agentType": [], "approved": "yes", "messages": {}}',
        b"[" * 100_000,
        b'{"vars":' * 100_000,
        b'{"config":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b"\x00",
        b" " * 1000,
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_what_is_no_such_body_is_refused(served: Served, store: Path, raw: bytes) -> None:
    refused(served, store, raw, 400)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"approved": false, "approved": true}',
        b'{"name": "a", "name": "b"}',
        b'{"agentType": "guide", "vars": {"a": 1, "a": 2}}',
        b'{"vars": {"b": [{"a": 1, "\\u0061": 2}]}, "agentType": "guide"}',
    ],
)
def test_a_field_that_is_there_twice_is_refused(served: Served, store: Path, raw: bytes) -> None:
    refused(served, store, raw, 400)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "json",
    ],
)
def test_what_is_not_said_to_be_json_is_refused(served: Served, store: Path, kind: str) -> None:
    refused(served, store, b'{"name": "x"}', 415, kind)


def test_json_may_be_said_with_its_characters(served: Served) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"):
        answer = served.client.post("/agencies", content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 201


def test_a_body_over_the_limit_is_refused_before_it_is_read(served: Served, store: Path) -> None:
    asked = list(paths(served))
    before = kept(store)
    for method, path in asked:
        more = headers(served, JSON, ("Content-Length", str(MOST + 1)))
        answer = served.raw(request_of(method, path, *more))  # nothing of it was sent
        assert answer.status == 413
        assert "1,048,576" in answer.error
    assert kept(store) == before


def test_a_body_that_goes_on_after_the_limit_is_refused(served: Served) -> None:
    def without_end(connection: socket.socket) -> None:
        piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
        try:
            for _ in range(40):
                connection.sendall(piece)
        except ConnectionError:
            pass  # it hung up

    for method, path in paths(served):
        more = headers(served, JSON, ("Transfer-Encoding", "chunked"))
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            connection.sendall(request_of(method, path, *more))
            without_end(connection)
            assert answer_from(connection).status in (413, 0)


def test_a_body_of_the_limit_is_read(served: Served) -> None:
    body = b'{"name": "' + b"x" * 90 + b'"' + b" " * (MOST - 102) + b"}"
    assert len(body) == MOST
    answer = served.client.post("/agencies", content=body, headers=dict([JSON]))
    assert answer.status_code == 201


@pytest.mark.parametrize(
    "more",
    [
        [("Content-Length", "-1")],
        [("Content-Length", "1e3")],
        [("Content-Length", "²")],
        [("Content-Length", "9" * 5000)],
        [("Content-Length", "2"), ("Content-Length", "3")],
        [("Content-Length", "2"), ("Transfer-Encoding", "chunked")],
        [("Transfer-Encoding", "gzip, chunked")],
        [("Transfer-Encoding", "identity")],
    ],
)
def test_a_length_that_lies_harms_nobody(
    served: Served, store: Path, more: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    before = kept(store)
    answer = served.raw(
        request_of("POST", "/agencies", *headers(served, JSON, *more)) + b'{"name":',
        more=lambda connection: connection.shutdown(socket.SHUT_WR),
    )
    assert answer.status in (0, 400, 413, 501)
    assert kept(store) == before
    assert not [record for record in caplog.records if record.name.startswith("sagents")]
    assert served.client.get("/healthz").status_code == 200


def test_who_goes_away_in_the_middle_of_a_body_is_no_error(
    served: Served, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = kept(store)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            more = headers(served, JSON, ("Content-Length", "100"))
            connection.sendall(request_of("POST", "/agencies", *more) + b'{"name":')
    assert served.client.get("/agencies").status_code == 200
    assert kept(store) == before
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


ODD: list[Any] = [
    10**30,
    -(2**63),
    2**64,
    1e308,
    5e-324,
    "\u0000",
    "\u2028\x7f\x1b[31m",
    "😀" * 100,
    {"": ""},
    {"a\u0000": [None, True]},
    [[[[]]]] * 3,
    "x" * 100_000,
]


def deep(levels: int) -> Any:
    """A list in a list …"""
    made: Any = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(
    "odd", [*ODD, deep(90), deep(300), deep(450)], ids=lambda odd: repr(odd)[:20]
)
def test_odd_values_are_kept_or_refused_and_never_a_failure(
    served: Served, odd: Any, caplog: pytest.LogCaptureFixture
) -> None:
    agents, blueprints = served.path(rest="/agents"), served.path(rest="/blueprints")
    thread = served.thread()
    text = odd if isinstance(odd, str) else "x"
    asked = [
        (agents, {"agentType": "guide", "vars": {"odd": odd}}),
        (agents, {"agentType": "guide", "input": text}),
        (agents, {"agentType": text}),
        ("/agencies", {"name": text * 2}),
        (blueprints, {"name": "odd", "prompt": "x" + text, "description": text}),
        (blueprints, {"name": "odd", "prompt": "x", "config": {"odd": odd}}),
        (blueprints, {"name": "odd", "prompt": "x", "tags": [text], "model": text}),
        (served.path(thread, "/invoke"), {"messages": [{"content": text}]}),
        (served.path(thread, "/invoke"), {"vars": {"odd": odd}, "idempotencyKey": text[:200]}),
        (served.path(thread, "/invoke"), {"files": {text: text}}),
        (served.path(thread, "/approve"), {"approved": True, "digests": {text: text}}),
        (
            served.path(thread, "/approve"),
            {"approved": True, "modifiedToolCalls": [{"id": text, "args": {"odd": odd}}]},
        ),
    ]
    for path, body in asked:
        answer = served.client.post(path, content=json.dumps(body), headers=dict([JSON]))
        assert answer.status_code in (200, 201, 202, 400, 404, 409), (path, answer.text[:300])
        if answer.status_code >= 400:
            assert list(answer.json()) == ["error"]
            assert len(answer.json()["error"]) < 600
    for path in (agents, blueprints, served.path(thread, "/state"), served.path(thread, "/events")):
        assert served.client.get(path).status_code == 200
    served.client.delete(f"{blueprints}/odd")
    assert not [record for record in caplog.records if record.name == "sagents_nb.hub.web.app"]


def test_a_listed_page_may_read_what_went_wrong(served: Served) -> None:
    answer = served.client.post(
        "/agencies", content=b"?", headers={**dict([JSON]), "Origin": LISTED_ORIGIN}
    )
    assert answer.status_code == 400
    assert answer.headers["access-control-allow-origin"] == LISTED_ORIGIN
