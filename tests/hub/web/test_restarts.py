"""A hub that ends and begins again under load, and who listens all the while: nothing is lost."""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection

from tests.hub.web.processes import HubProcess, a_hub_process, patiently
from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


class Client:
    """Says one thing after the other to a thread of its own; again, where it hears no answer."""

    def __init__(self, hub: HubProcess, agency: str, name: str) -> None:
        self.hub = hub
        self.name = name
        self.said: list[str] = []
        self.over = threading.Event()
        self.failures: list[Exception] = []
        self.again = 0
        with hub.client() as client:
            at = f"/agency/{agency}"
            made = client.post(f"{at}/agents", json={"agentType": "clerk"}).json()
        self.path = f"{at}/agent/{made['id']}"
        self._thread = threading.Thread(target=self._guarded)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            with self.hub.client() as client:
                while not self.over.is_set():
                    self.talk(client)
        except Exception as error:
            self.failures.append(error)

    def talk(self, client: httpx2.Client) -> None:
        """One message, and wait for its end."""
        what = f"{self.name}.{len(self.said)}"
        said = {"messages": [{"content": f"work {what}"}], "idempotencyKey": what}
        tries = itertools.count()

        def ask() -> httpx2.Response:
            self.again += bool(next(tries))
            return client.post(f"{self.path}/invoke", json=said)

        answer = patiently(ask)
        assert answer.status_code == 202, answer.text
        self.said.append(what)
        self.wait(client)

    def wait(self, client: httpx2.Client) -> dict[str, Any]:
        """Until its run is over; its state."""
        end = time.monotonic() + PATIENCE
        while True:
            state: dict[str, Any] = patiently(lambda: client.get(f"{self.path}/state")).json()
            if state["run"]["status"] == "completed":
                return state
            assert time.monotonic() < end, state["run"]
            time.sleep(0.01)

    def end(self) -> None:
        """Say no more."""
        self.over.set()
        self._thread.join(2 * PATIENCE)
        assert not self.failures, self.failures

    def check(self) -> None:
        """All that was acknowledged is there once, and its events are."""
        with self.hub.client() as client:
            messages = self.wait(client)["state"]["messages"]
            users = [m["content"] for m in messages if m["role"] == "user"]
            assert users == [f"work {what}" for what in self.said]
            numbers: list[int] = []
            while more := client.get(f"{self.path}/events", params={"since": len(numbers)}).json()[
                "events"
            ]:
                numbers += [event["seq"] for event in more]
            assert numbers == list(range(1, len(numbers) + 1))


def restart_under_load(folder: Path, times: int, clients: int) -> str:
    """What was seen of a hub that is told to end so often while clients talk to it."""
    took = []
    with a_hub_process(f"sqlite:///{folder}/hub.db", folder) as hub:
        with hub.client() as client:
            agency = client.post("/agencies").json()["id"]
        talking = [Client(hub, agency, f"c{n}") for n in range(clients)]
        try:
            for _ in range(times):
                before = sum(len(each.said) for each in talking)
                end = time.monotonic() + PATIENCE
                while sum(len(each.said) for each in talking) < before + clients:
                    assert not any(each.failures for each in talking)
                    assert time.monotonic() < end, "nothing is acknowledged any more"
                    time.sleep(0.005)
                took.append(hub.end())
                hub.begin()
        finally:
            for each in talking:
                each.end()
        for each in talking:
            each.check()
        said = [what for each in talking for what in each.said]
        done = Counter(hub.done())
        assert done == Counter(said), "a call is lost, or ran twice"
    again = sum(each.again for each in talking)
    return (
        f"{times} restarts, {len(said)} messages acknowledged, {again} asked again; "
        f"an end took {max(took):.2f} s at most, {sum(took) / len(took):.2f} s on average"
    )


def test_a_hub_that_begins_again_under_load_loses_nothing(tmp_path: Path) -> None:
    restart_under_load(tmp_path, 2, 3)


@pytest.mark.soak
def test_a_hub_that_begins_again_a_hundred_times_under_load_loses_nothing(tmp_path: Path) -> None:
    print(restart_under_load(tmp_path, 100, 4))


class Listener:
    """Hears a thread ``way``: comes and goes, and each time goes on after what it has heard."""

    def __init__(self, hub: HubProcess, path: str, way: str, seed: int) -> None:
        self.hub = hub
        self.path = path
        self.way = way
        self.chance = random.Random(seed)
        self.heard: list[dict[str, Any]] = []
        self.points = self.over_a_restart = 0
        self.lives = 0  # that the hub had when it was connected last
        self.last = threading.Event()
        # One that never hears the last word is left behind when the test has failed.
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.failures: list[BaseException] = []

    def _listen(self) -> None:
        try:
            while not (self.last.is_set() and self.heard[-1:] and self.is_over()):
                with suppress(OSError, WebSocketException, httpx2.TransportError, EOFError):
                    for event in self.some():
                        if event["type"] != "model.delta":
                            self.heard.append(event)
                        if self.last.is_set() and self.is_over():
                            break
        except BaseException as error:
            self.failures.append(error)

    def is_over(self) -> bool:
        """Whether it has heard the last word."""
        return self.heard[-1]["data"].get("result", {}).get("content") == "It is done: last."

    def some(self) -> Iterator[dict[str, Any]]:
        """A few events after those it has, or as many as come until it is cut off."""
        since = self.heard[-1]["seq"] if self.heard else 0
        count = 100_000 if self.last.is_set() else self.chance.randrange(1, 14)
        if self.way == "ws":
            with self.hub.socket(f"{self.path}/ws?since={since}") as live:
                self.connected()
                for frame in itertools.islice(live, count):
                    yield json.loads(frame)
        else:
            shown = {"Accept": "text/event-stream", "Last-Event-ID": str(since)}
            with (
                self.hub.client() as client,
                client.stream("GET", f"{self.path}/events", headers=shown) as live,
            ):
                if live.status_code == 503:
                    return
                assert live.status_code == 200, live.read()
                self.connected()
                data = (line[6:] for line in live.iter_lines() if line.startswith("data: "))
                for line in itertools.islice(data, count):
                    yield json.loads(line)

    def connected(self) -> None:
        """Count that it has come back."""
        self.points += 1
        self.over_a_restart += self.lives not in (0, self.hub.lives)
        self.lives = self.hub.lives


def come_and_go(folder: Path, points: int, restarts: int, seed: int) -> str:
    """What those heard of a thread at work who left and came again, also to another process."""
    chance = random.Random(seed)
    with a_hub_process(f"sqlite:///{folder}/hub.db", folder) as hub, hub.client() as client:
        agency = client.post("/agencies").json()["id"]
        made = client.post(f"/agency/{agency}/agents", json={"agentType": "clerk"}).json()
        path = f"/agency/{agency}/agent/{made['id']}"
        listeners = [Listener(hub, path, way, seed) for way in ("ws", "sse")]
        for each in listeners:
            each.thread.start()

        def over() -> bool:
            assert not any(each.failures for each in listeners), listeners[0].failures
            come = sum(each.points for each in listeners)
            return come >= points and sum(each.over_a_restart for each in listeners) >= restarts

        said = [f"look {number}" for number in range(100_000)]
        count = 0
        next_restart = points // restarts
        while not over():
            say(client, path, said[count])
            count += 1
            if sum(each.points for each in listeners) >= next_restart:
                next_restart += points // restarts
                how: Callable[[], Any] = chance.choice([hub.kill, hub.end])
                how()
                hub.begin()
        for each in listeners:
            each.last.set()
        say(client, path, "look last")
        for each in listeners:
            each.thread.join(2 * PATIENCE)
            assert not each.failures, each.failures
            assert not each.thread.is_alive(), "it has not heard the end"
        kept: list[dict[str, Any]] = []
        while more := client.get(f"{path}/events", params={"since": len(kept)}).json()["events"]:
            kept += more
        messages = client.get(f"{path}/state").json()["state"]["messages"]
    assert [event["seq"] for event in kept] == list(range(1, len(kept) + 1))
    for each in listeners:
        assert each.heard == kept, f"something is lost, or doubled, over {each.way}"
    users = [m["content"] for m in messages if m["role"] == "user"]
    assert users == [*said[:count], "look last"]
    come = {each.way: (each.points, each.over_a_restart) for each in listeners}
    return f"seed {seed}: came again, and of that to another process: {come}; {len(kept)} events"


def say(client: httpx2.Client, path: str, text: str) -> None:
    """Have the thread work on it, however often it has to be asked."""
    said = {"messages": [{"content": text}], "idempotencyKey": text}
    answer = patiently(lambda: client.post(f"{path}/invoke", json=said))
    assert answer.status_code == 202, answer.text
    end = time.monotonic() + PATIENCE
    while True:
        run = patiently(lambda: client.get(f"{path}/state")).json()["run"]
        if run["status"] == "completed":
            return
        assert time.monotonic() < end, run
        time.sleep(0.005)


def test_who_comes_back_to_a_hub_that_began_again_misses_nothing(tmp_path: Path) -> None:
    come_and_go(tmp_path, 20, 2, seed=3)


@pytest.mark.soak
def test_who_comes_back_at_five_hundred_moments_misses_nothing(tmp_path: Path) -> None:
    print(come_and_go(tmp_path, 500, 50, seed=int(time.time())))


class Page:
    """Says things over the panel's protocol, and says them again where it heard no answer."""

    def __init__(self, hub: HubProcess, path: str, seed: int) -> None:
        self.hub = hub
        self.path = path
        self.chance = random.Random(seed)
        self.again = 0

    def say(self, text: str) -> dict[str, Any]:
        """The reply; it leaves at any moment, and asks with the same id."""
        asked = {"type": "send", "id": f"page-{text}", "text": text}
        end = time.monotonic() + PATIENCE
        for attempt in itertools.count():
            assert time.monotonic() < end, "nobody replies"
            self.again += bool(attempt)
            with (
                suppress(OSError, WebSocketException, TimeoutError),
                self.hub.socket(f"{self.path}/stream") as page,
            ):
                page.send(json.dumps({"type": "hello", "have": 0}))
                page.send(json.dumps(asked))
                leaves = attempt == 0 and self.chance.random() < 0.5
                if leaves:
                    continue  # before it hears anything
                return self._replied(page, asked)
        raise AssertionError

    def _replied(self, page: ClientConnection, asked: dict[str, Any]) -> dict[str, Any]:
        """The reply to it, for which it asks again now and then, as pages do."""
        while True:
            try:
                said: dict[str, Any] = json.loads(page.recv(1.0))
            except TimeoutError:
                page.send(json.dumps(asked))
                continue
            if said.get("id") == asked["id"]:
                return said


def resend(folder: Path, messages: int, every: int, seed: int) -> str:
    """What becomes of what a page says twice, also to another process."""
    with a_hub_process(f"sqlite:///{folder}/hub.db", folder) as hub, hub.client() as client:
        agency = client.post("/agencies").json()["id"]
        made = client.post(f"/agency/{agency}/agents", json={"agentType": "clerk"}).json()
        path = f"/agency/{agency}/agent/{made['id']}"
        page, chance = Page(hub, path, seed), random.Random(seed)
        kills = 0
        for number in range(messages):
            due = number % every == every - 1
            killer = threading.Timer(chance.random() * 0.05, hub.kill)
            if due:
                kills += 1
                killer.start()
                reviver = threading.Thread(target=lambda k=killer: (k.join(), hub.begin()))
                reviver.start()
            reply = page.say(f"look {number}")
            assert reply["type"] == "reply", reply
            if due:
                reviver.join(PATIENCE)
        end = time.monotonic() + PATIENCE
        while True:
            state = patiently(lambda: client.get(f"{path}/state")).json()
            if state["run"]["status"] == "completed":
                break
            assert time.monotonic() < end, state["run"]
            time.sleep(0.01)
    users = [m["content"] for m in state["state"]["messages"] if m["role"] == "user"]
    assert Counter(users) == Counter(f"look {n}" for n in range(messages)), "lost, or said twice"
    return f"seed {seed}: {messages} messages, {page.again} said again, {kills} kills"


def test_what_a_page_says_again_to_a_hub_that_began_again_is_said_once(tmp_path: Path) -> None:
    resend(tmp_path, 12, 3, seed=5)


@pytest.mark.soak
def test_what_a_page_says_again_is_said_once_over_fifty_kills(tmp_path: Path) -> None:
    print(resend(tmp_path, 250, 5, seed=int(time.time())))
