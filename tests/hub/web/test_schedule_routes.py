"""What a page asks of schedules: when one would begin, and what became of each."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.hub.web.served import Served

OFTEN = {"type": "interval", "intervalMs": 90_000}


@pytest.fixture
def path(served: Served) -> str:
    return served.path(rest="/schedules")


@pytest.fixture
def preview(served: Served) -> str:
    return served.path(rest="/schedule_preview")


def test_a_preview_tells_the_next_three_times_and_keeps_nothing(
    served: Served, path: str, preview: str
) -> None:
    before = served.client.get(path).json()
    daily = {"type": "cron", "cron": "0 7 * * 1-5", "timezone": "Europe/Oslo"}
    told = served.client.post(preview, json=daily).json()
    assert told["words"] == "At 07:00 on Monday through Friday, Europe/Oslo"
    times = [datetime.fromisoformat(each) for each in told["times"]]
    assert len(times) == 3
    assert times == sorted(set(times))
    often = served.client.post(preview, json=OFTEN).json()["times"]
    for one, next in pairwise(map(datetime.fromisoformat, often)):
        assert (next - one).total_seconds() == 90
    once = {"type": "once", "runAt": "2099-01-01T09:00:00+01:00"}
    assert served.client.post(preview, json=once).json()["times"] == [once["runAt"]]
    assert served.client.get(path).json() == before


@pytest.mark.parametrize(
    ("when", "sentence"),
    [
        ({"type": "cron", "cron": "every day"}, "'every day' is no cron expression; write five"),
        ({"type": "cron", "cron": "* * * * *", "timezone": "Mars/X"}, "There is no time zone"),
        ({"type": "once", "runAt": "2020-01-01T00:00:00Z"}, "run_at has passed; choose a moment"),
        ({"cron": "* * * * *"}, "A schedule needs a type."),
    ],
)
def test_a_preview_of_what_makes_no_sense_is_refused_as_the_schedule_would_be(
    served: Served, path: str, preview: str, when: dict[str, Any], sentence: str
) -> None:
    named = {"name": "News", "agentType": "guide", **when}
    for answer in (
        served.client.post(preview, json=when),
        served.client.post(path, json=named),
    ):
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(sentence)


def test_a_preview_is_of_an_agency_that_is_there(served: Served) -> None:
    assert served.client.post("/agency/nobody/schedule_preview", json=OFTEN).status_code == 404


def test_the_list_tells_of_each_what_became_of_its_last_time(served: Served, path: str) -> None:
    fields = {"name": "Often", "agentType": "guide", "input": "Go.", **OFTEN}
    made = served.client.post(path, json=fields).json()
    assert (made["words"], made["lastRun"]) == ("Every 90 seconds", None)
    begun = served.client.post(f"{path}/{made['id']}/trigger").json()
    served.wait(begun["agentId"])
    [listed] = [
        each for each in served.client.get(path).json()["schedules"] if each["id"] == made["id"]
    ]
    assert listed["lastRun"]["id"] == begun["id"]
    assert listed["lastRun"]["agentId"] == begun["agentId"]
    one = served.client.get(f"{path}/{made['id']}").json()
    assert one["lastRun"]["id"] == begun["id"]
    assert served.client.delete(f"{path}/{made['id']}").json() == {"ok": True}
