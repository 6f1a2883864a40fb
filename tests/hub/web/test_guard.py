"""What stands before every request: tokens, origins, names, and what is told to nobody."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sagents_nb.hub.web.routes import ROUTES
from tests.hub.web.served import (
    LISTED_HOST,
    LISTED_ORIGIN,
    TOKEN,
    Answer,
    Served,
    protocol_of,
    request_of,
)


def get(served: Served, *headers: tuple[str, str], path: str = "/agencies") -> Answer:
    """With these headers and no others but the host."""
    host = ("Host", f"localhost:{served.port}")
    given = headers if "Host" in dict(headers) else (host, *headers)
    return served.raw(request_of("GET", path, *given))


SECRET = ("X-SECRET", TOKEN)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Authorization", f"Bearer {TOKEN}")], 200),
        ([("Authorization", f"bearer  {TOKEN} ")], 200),
        ([("authorization", f"BEARER {TOKEN}")], 200),
        ([SECRET], 200),
        ([("X-Secret", f" {TOKEN} ")], 200),
        ([], 401),
        ([("Authorization", TOKEN)], 401),
        ([("Authorization", "Bearer")], 401),
        ([("Authorization", "Bearer ")], 401),
        ([("Authorization", "Basic " + base64.b64encode(f"a:{TOKEN}".encode()).decode())], 401),
        ([("X-SECRET", f"Bearer {TOKEN}")], 401),
        ([("X-SECRET", "")], 401),
        ([("X-SECRET", TOKEN[:-1])], 401),
        ([("X-SECRET", TOKEN + "x")], 401),
        ([("X-SECRET", TOKEN.upper())], 401),
        ([("X-SECRET", "\xe9" * 40)], 401),
        ([("X-SECRET", "x" * 10_000)], 401),
        ([SECRET, SECRET], 401),
        ([SECRET, ("Authorization", f"Bearer {TOKEN}")], 401),
        ([("Cookie", f"token={TOKEN}"), ("Origin", "http://localhost")], 403),
        ([("Sec-WebSocket-Protocol", protocol_of(TOKEN))], 401),
    ],
)
def test_a_token_is_shown_in_one_of_two_headers(
    served: Served, headers: list[tuple[str, str]], status: int
) -> None:
    answer = get(served, *headers)
    assert answer.status == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_in_an_address_opens_nothing(served: Served) -> None:
    for name in ("key", "token", "secret", "access_token", "X-SECRET"):
        assert get(served, path=f"/agencies?{name}={TOKEN}").status == 401
    assert get(served, path=f"/agencies#{TOKEN}").status in (400, 401)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LocalHost:1", 200),
        ("127.0.0.1:65535", 200),
        ("[::1]:80", 200),
        (LISTED_HOST, 200),
        (LISTED_HOST.upper(), 200),
        (f"{LISTED_HOST}:8765", 403),
        (f"{LISTED_HOST}.", 403),
        (f"{LISTED_HOST}.evil.example", 403),
        (f"evil.{LISTED_HOST}", 403),
        ("localhost.evil.example", 403),
        ("localhost@evil.example", 403),
        ("localhost:80:80", 403),
        ("localhost:", 403),
        ("127.0.0.2", 403),
        ("0.0.0.0", 403),
        ("2130706433", 403),
        ("::1", 403),
        ("[::ffff:127.0.0.1]", 403),
        ("localhost, evil.example", 403),
        ("", 403),
    ],
)
def test_a_hub_goes_by_the_names_of_this_machine_and_those_that_are_listed(
    served: Served, host: str, status: int
) -> None:
    assert get(served, ("Host", host), SECRET).status in {status, 400 if status == 403 else 200}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Origin", "http://localhost:{port}")], 200),
        ([("Origin", LISTED_ORIGIN)], 200),
        ([("Origin", LISTED_ORIGIN + ":443")], 403),
        ([("Origin", LISTED_ORIGIN + "/")], 403),
        ([("Origin", LISTED_ORIGIN.replace("https", "http"))], 403),
        ([("Origin", "https://localhost:{port}")], 403),
        ([("Origin", "http://localhost:1")], 403),
        ([("Origin", "http://127.0.0.1:{port}")], 403),
        ([("Origin", "")], 403),
        ([("Origin", "null")], 403),
        ([("Origin", "http://localhost:{port}")] * 2, 403),
        ([("Origin", LISTED_ORIGIN), ("Origin", "https://evil.example")], 403),
        ([("Cookie", "a=b")], 403),
        ([("Cookie", "a=b"), ("Origin", "http://localhost:{port}")], 200),
        ([("Sec-Fetch-Site", "same-origin")], 200),
        ([("Sec-Fetch-Site", "none")], 200),
        ([("Sec-Fetch-Site", "same-site")], 403),
        ([("Sec-Fetch-Site", "cross-site")], 403),
        ([("Sec-Fetch-Site", "cross-site"), ("Origin", "http://localhost:{port}")], 403),
        ([("Sec-Fetch-Site", "cross-site"), ("Origin", LISTED_ORIGIN)], 200),
        ([("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")], 403),
    ],
)
def test_a_page_of_another_origin_may_not_ask(
    served: Served, headers: list[tuple[str, str]], status: int
) -> None:
    given = [(name, value.format(port=served.port)) for name, value in headers]
    assert get(served, SECRET, *given).status == status


def test_a_listed_page_is_told_that_it_may_and_no_other_is(served: Served) -> None:
    asks = {"Access-Control-Request-Method": "DELETE", "Sec-Fetch-Site": "cross-site"}
    with served.client_of(None) as client:
        allowed = client.options("/agencies", headers={**asks, "Origin": LISTED_ORIGIN})
        refused = client.options("/agencies", headers={**asks, "Origin": "https://evil.example"})
        own = client.options("/agencies", headers={"Origin": served.url})
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == LISTED_ORIGIN
    assert "access-control-allow-credentials" not in allowed.headers
    for name in ("Authorization", "X-SECRET", "Content-Type", "Last-Event-ID"):
        assert name in allowed.headers["access-control-allow-headers"]
    for answer, status in ((refused, 403), (own, 401)):
        assert answer.status_code == status
        assert "access-control-allow-origin" not in answer.headers
    shared = served.client.get("/agencies", headers={"Origin": LISTED_ORIGIN})
    assert shared.headers["access-control-allow-origin"] == LISTED_ORIGIN
    assert shared.headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in served.client.get("/agencies").headers


def test_the_page_needs_no_token_has_none_and_can_run_nothing_of_others(served: Served) -> None:
    with served.client_of(None) as client:
        page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert TOKEN not in page.text
    policy = page.headers["content-security-policy"]
    for part in ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy
    assert "unsafe" not in policy


def test_the_cookies_of_other_servers_of_this_machine_keep_nobody_out(served: Served) -> None:
    """A browser sends Jupyter's to all ports, and reads of its own page say no origin."""
    jupyters = {"Cookie": "_xsrf=2|dead", "Sec-Fetch-Site": "same-origin"}
    for path in ("/", "/agencies", served.path(rest="/agents")):
        assert served.client.get(path, headers=jupyters).status_code == 200
    assert served.client.get("/", headers={**jupyters, "Sec-Fetch-Site": "none"}).status_code == 200
    for refused in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert served.client.get("/agencies", headers={**jupyters, **refused}).status_code == 403
    old = served.client.get("/agencies", headers={"Cookie": "_xsrf=2|dead"})
    assert (old.status_code, "origin" in old.json()["error"]) == (403, True)


def test_each_answer_says_that_it_is_for_nobody_else(served: Served) -> None:
    for path in ("/", "/healthz", "/agencies", "/nothing", "/openapi.json"):
        for client in (served.client, served.client_of(None)):
            answer = client.get(path)
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "server" not in answer.headers
            assert "set-cookie" not in answer.headers


def test_a_code_is_exchanged_for_the_token_once_and_within_a_minute(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, late = served.codes.new(), served.codes.new()
    with served.client_of(None) as client:
        assert client.post("/auth/exchange", json={"code": code}).json() == {"token": TOKEN}
        for wrong in (code, "", "x", TOKEN):
            answer = client.post("/auth/exchange", json={"code": wrong})
            assert answer.status_code == 401
            assert list(answer.json()) == ["error"]
        monkeypatch.setattr("sagents_nb.hub.web.codes.time", _InAnHour())
        assert client.post("/auth/exchange", json={"code": late}).status_code == 401


class _InAnHour:
    def monotonic(self) -> float:
        import time

        return time.monotonic() + 3_600


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO):
        yield caplog


def test_a_token_is_in_no_answer_no_log_and_no_file(
    served: Served, everything_logged: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    answers: list[str] = []
    there = served.places(thread=served.thread())
    for route in ROUTES:
        path = route.path.format(**there)
        if route.method == "DELETE" or route.path.endswith("/secret"):
            continue
        for headers in (
            {"Authorization": f"Bearer {TOKEN}"},
            {"X-SECRET": served.secret},
            {"X-SECRET": TOKEN, "Origin": "https://evil.example"},
            {"Authorization": TOKEN},
        ):
            sent: dict[str, Any] = {"headers": headers}
            if route.method == "POST":
                sent["content"] = f'{{"canary": "{TOKEN} {served.secret}"}}'
                sent["headers"] = {**headers, "Content-Type": "application/json"}
            with served.client_of(None) as client:
                answer = client.request(route.method, path, **sent)
            answers.append(f"{answer.headers} {answer.text}")
    with served.socket(served.path(there["thread"], "/ws")) as live:
        assert live.response is not None
        answers.append(str(live.response.headers))
        answers.append(repr(served.hub) + repr(served.agency))
    said = [*answers, *(record.getMessage() for record in everything_logged.records)]
    assert len(answers) > 60
    for token in (TOKEN, served.secret, protocol_of(TOKEN)):
        assert not [text for text in said if token in text]
    store = Path(str(served.hub.store.database.url.database))
    for file in store.parent.iterdir():
        for token in (TOKEN, served.secret):
            assert token.encode() not in file.read_bytes(), file
