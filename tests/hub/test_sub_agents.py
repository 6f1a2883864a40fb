"""Sub-agents that are threads: their parent waits for their reports, whatever happens meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

import sagents_nb as sa
from sagents_nb.hub import Hub
from sagents_nb.hub.threads import NothingWaits
from tests.hub.houses import a_hub, still, task, told
from tests.talking import until


def go(thread: Any) -> None:
    thread.invoke([sa.Message.user("Go.")])


def contents(thread: Any) -> list[str]:
    return [m["content"] for m in thread.state()["state"]["messages"] if "content" in m]


@pytest.mark.spec("H3.3.2", "H3.3.3", "H3.5.3")
def test_a_parent_goes_on_once_all_have_reported_each_to_its_own_call(path: Path | str) -> None:
    calls = [task("c1", "one"), task("c2", "two", "other")]
    models = {"boss": [calls, "Done."], "worker": ["first"], "other": ["second"]}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        results = {
            m["toolCallId"]: m["content"]
            for m in boss.state()["state"]["messages"]
            if m["role"] == "tool"
        }
        assert results == {"c1": "first", "c2": "second"}
        types = [t for t in told(hub, agency, boss) if t.startswith(("run.", "subagent."))]
        assert types.count("subagent.spawned") == types.count("subagent.completed") == 2
        assert types.count("run.resumed") == 1
        assert types.index("run.paused") < types.index("run.resumed")
        links = boss.state()["state"]["subagents"]
        assert [link["status"] for link in links] == ["completed"] * 2
        assert [link["toolCallId"] for link in links] == ["c1", "c2"]


@pytest.mark.spec("H3.3.2")
def test_a_kind_that_is_not_there_is_an_error_and_the_run_goes_on(path: Path | str) -> None:
    with a_hub(path, {"boss": [task("c1", "one", "nobody"), "I see."]}) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        [error] = [c for c in contents(boss) if c.startswith("Error:")]
        assert "nobody" in error
        assert "subagents" not in boss.state()["state"]
        assert "run.paused" not in told(hub, agency, boss)


def test_a_task_that_says_nothing_is_an_error_and_makes_no_child(path: Path | str) -> None:
    models = {"boss": [task("c1", " "), "I see."], "worker": ["never"]}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        assert "Error: Nothing is said there; say what it is to do." in contents(boss)
        assert not boss.children
        assert len(hub.threads(agency)) == 1


def test_a_child_that_is_deleted_is_told_to_be_gone_and_its_parent_goes_on(
    path: Path | str,
) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    models = {"boss": [task("c1", "one"), "Too bad."], "worker": slow}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
        [child] = boss.children
        hub.delete_thread(agency, child)
        assert still(boss, "completed")
        assert "Too bad." in contents(boss)
        assert any(c.startswith("Error: The sub-agent") for c in contents(boss))


@pytest.mark.spec("H3.3.2")
def test_one_that_takes_too_long_is_given_up(path: Path | str) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    models = {"boss": [task("c1", "one", timeoutMs=50), "Too bad."], "worker": slow}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        assert any("longer than it was given" in c for c in contents(boss))
        [link] = boss.state()["state"]["subagents"]
        assert link["status"] == "canceled"
        assert still(hub.thread(agency, link["childThreadId"])) == "canceled"


@pytest.mark.spec("H3.3.4")
def test_a_report_with_another_token_or_of_another_child_changes_nothing(path: Path | str) -> None:
    slow = sa.ScriptedModel(["never" * 99, "late"], delay=3600)
    with a_hub(path, {"boss": [task("c1", "one"), "Fine."], "worker": slow}) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
        [child] = [r for r in hub.threads(agency) if r.parent]
        token = child.parent["token"]  # type: ignore[index]
        for child_id, shown in [(child.id, "guessed"), ("b" * 32, token)]:
            with pytest.raises(NothingWaits):
                boss.report(child_id, "Mine.", shown)
        assert boss.status == "paused"
        boss.report(child.id, "Its report.", token)
        assert still(boss, "completed")
        assert "Its report." in contents(boss)
        with pytest.raises(NothingWaits):
            boss.report(child.id, "Once more.", token)


def test_people_answer_what_they_are_asked_while_a_child_is_still_at_work(path: Path | str) -> None:
    def bill() -> sa.Interrupt:
        """Ask for money."""
        return sa.Interrupt("payment", message="Pay?")

    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    turns = [[task("c1", "one"), sa.ToolCall("b1", "bill", {})], "Fine."]
    with a_hub(path, {"boss": turns, "worker": slow}) as hub:
        hub.system.add_tool(bill)
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
        with pytest.raises(sa.InvalidDecision, match="No call 'c1' waits"):
            boss.approve(True, answers={"b1": "paid", "c1": "Mine."}, by="test")
        boss.approve(True, answers={"b1": "paid"}, by="test")
        until(lambda: boss.run.get("reason") == "subagent")
        [child] = [r for r in hub.threads(agency) if r.parent]
        boss.report(child.id, "Its report.", child.parent["token"])  # type: ignore[index]
        assert still(boss, "completed")
        assert {"paid", "Its report."} <= set(contents(boss))


@pytest.mark.spec("H3.3.5")
def test_a_child_that_fails_reports_that_it_did(path: Path | str) -> None:
    models = {"boss": [task("c1", "one"), "I see."], "worker": [sa.ModelError("It is down.")]}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        [report] = [c for c in contents(boss) if c.startswith("Error:")]
        assert "It is down." in report
        assert [link["status"] for link in boss.state()["state"]["subagents"]] == ["canceled"]


@pytest.mark.spec("H3.3.5")
def test_a_child_that_is_cancelled_reports_that_it_was(path: Path | str) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    with a_hub(path, {"boss": [task("c1", "one"), "I see."], "worker": slow}) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
        [child] = [r for r in hub.threads(agency) if r.parent]
        hub.cancel(agency, hub.thread(agency, child.id))
        assert still(boss, "completed")
        assert "Error: The sub-agent was cancelled." in contents(boss)


@pytest.mark.spec("H3.3.1")
def test_cancelling_a_parent_cancels_the_children_that_it_waits_for(path: Path | str) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    with a_hub(path, {"boss": [task("c1", "one"), "never"], "worker": slow}) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
        hub.cancel(agency, boss)
        hub.cancel(agency, boss)
        assert still(boss) == "canceled"
        [link] = boss.state()["state"]["subagents"]
        assert link["status"] == "canceled"
        assert still(hub.thread(agency, link["childThreadId"])) == "canceled"
        until(lambda: "run.canceled" in told(hub, agency, boss))
        assert told(hub, agency, boss).count("run.canceled") == 1


@pytest.mark.spec("H3.3.6", "H3.3.7")
def test_a_child_is_a_thread_of_the_agency_and_may_have_children(path: Path | str) -> None:
    models = {
        "boss": [task("c1", "lead it", "lead"), "Done."],
        "lead": [task("c2", "do it"), "It is done."],
        "worker": ["I did it."],
    }
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss", request={"ip": "10.0.0.1"})
        go(boss)
        assert still(boss, "completed")
        records = {record.type: record for record in hub.threads(agency)}
        assert records["boss"].parent is None
        assert records["lead"].parent["threadId"] == records["boss"].id  # type: ignore[index]
        assert records["worker"].parent["threadId"] == records["lead"].id  # type: ignore[index]
        assert records["worker"].request == {"ip": "10.0.0.1"}
        assert "It is done." in contents(boss)
        state = hub.thread(agency, records["worker"].id).state()["state"]
        assert state["parent"] == records["worker"].parent
        assert "parent" not in boss.state()["state"]


@pytest.mark.spec("H3.5.2")
def test_more_may_be_said_to_one_by_its_number_or_its_id(path: Path | str) -> None:
    more = sa.ToolCall("c2", "message_agent", {"agentId": "1", "message": "And?"})
    wrong = sa.ToolCall("c3", "message_agent", {"agentId": "2", "message": "And?"})
    models = {"boss": [task("c1", "one"), more, wrong, "Done."], "worker": ["first", "second"]}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        said = [m for m in boss.state()["state"]["messages"] if m["role"] == "tool"]
        assert [m["content"] for m in said[:2]] == ["first", "second"]
        assert said[2]["content"].startswith("Error: There is no sub-agent '2'")
        [child] = [r for r in hub.threads(agency) if r.parent]
        messages = hub.thread(agency, child.id).state()["state"]["messages"]
        assert [m["content"] for m in messages] == ["one", "first", "And?", "second"]


def test_the_kinds_that_a_blueprint_names_are_all_that_there_are(path: Path | str) -> None:
    models = {"boss": [[task("c1", "one"), task("c2", "two", "own")], "Done."], "worker": ["no"]}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        own = {"name": "own", "prompt": "Own.", "tags": ["planning"]}
        config = {"subagents": {"subagents": [own]}}
        hub.save_blueprint(agency, {"name": "boss", "config": config})
        hub.system.models["own"] = sa.ScriptedModel(["mine"])  # type: ignore[attr-defined]
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        said = [m["content"] for m in boss.state()["state"]["messages"] if m["role"] == "tool"]
        assert said == ["Error: There is no sub-agent 'worker'; there is own.", "mine"]


def test_a_hub_that_ended_goes_on_with_the_child_and_gives_its_report(path: Path | str) -> None:
    models: dict[str, Any] = {"boss": [task("c1", "one"), "Done."]}
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    with a_hub(path, {**models, "worker": slow}) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
    with a_hub(path, {"boss": ["Done."], "worker": ["I did it."]}) as hub:
        assert hub.recover() == 1
        boss = hub.thread(agency, boss.record.id)
        assert still(boss, "completed")
        assert "I did it." in contents(boss)
        seqs = [event.seq for event in hub.events(agency, boss.record.id)]
        assert seqs == list(range(1, len(seqs) + 1))


def test_a_report_that_no_process_lived_to_give_is_given_by_the_next(path: Path | str) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    with a_hub(path, {"boss": [task("c1", "one"), "x"], "worker": slow}) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
        [child] = [r for r in hub.threads(agency) if r.parent]
    with a_hub(path, {"worker": ["I did it."]}) as hub:  # where nobody knows its parent's kind
        hub.thread(agency, child.id).go_on()
        assert still(hub.thread(agency, child.id), "completed")
        hub.thread(agency, child.id).close("before its report came")
    with a_hub(path, {"boss": ["Done."], "worker": []}) as hub:
        hub.recover()
        boss = hub.thread(agency, boss.record.id)
        assert still(boss, "completed")
        assert "I did it." in contents(boss)


def untell(hub: Hub, type: str) -> None:
    """Of what was told the last of that type is lost: a kill came before it was kept."""
    t = hub.store.database.tables.hub_events
    last = sql.select(sql.func.max(t.c.seq)).where(t.c.type == type).scalar_subquery()
    after = t.delete().where(t.c.seq >= last, t.c.conversation_id == _of(t, type))
    hub.store.database.run(lambda connection: connection.execute(after))


def _of(t: sql.Table, type: str) -> sql.ScalarSelect[str]:
    return sql.select(t.c.conversation_id).where(t.c.type == type).limit(1).scalar_subquery()


@pytest.mark.parametrize("lost", ["subagent.completed", "run.resumed"])
def test_a_report_that_no_process_lived_to_tell_of_is_told_by_the_next(
    path: Path, lost: str
) -> None:
    models: dict[str, Any] = {"boss": [task("c1", "one"), "Done."], "worker": ["I did it."]}
    with a_hub(path, models) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        assert still(boss, "completed")
        boss.log.wait()
        untell(hub, lost)
    with a_hub(path, models) as hub:
        hub.recover()
        boss = hub.thread(agency, boss.record.id)
        [link] = boss.state()["state"]["subagents"]
        assert (link["status"], link["report"]) == ("completed", "I did it.")
        assert told(hub, agency, boss).count("subagent.completed") == 1


def test_one_of_two_reports_that_was_not_told_of_is_told_with_the_result(path: Path) -> None:
    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    calls = [task("c1", "one"), task("c2", "two", "other")]
    with a_hub(path, {"boss": [calls, "x"], "worker": ["first"], "other": slow}) as hub:
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: "subagent.completed" in told(hub, agency, boss))
        untell(hub, "subagent.completed")
    with a_hub(path, {"boss": ["Done."], "worker": [], "other": ["second"]}) as hub:
        hub.recover()
        boss = hub.thread(agency, boss.record.id)
        assert still(boss, "completed")
        links = boss.state()["state"]["subagents"]
        assert [link["report"] for link in links] == ["first", "second"]
        assert told(hub, agency, boss).count("subagent.completed") == 2


def test_what_waits_is_what_nobody_has_answered_yet(path: Path | str) -> None:
    def pay(amount: int) -> sa.Interrupt:
        """Pay an amount."""
        return sa.Interrupt("payment", message=f"Pay {amount}?")

    slow = sa.ScriptedModel(["never" * 99], delay=3600)
    calls = [task("c1", "one"), sa.ToolCall("c2", "pay", {"amount": 5})]
    with a_hub(path, {"boss": [calls, "Done."], "worker": slow}) as hub:
        hub.system.add_tool(pay)
        agency, _ = hub.create_agency()
        boss = hub.create_thread(agency, "boss")
        go(boss)
        until(lambda: boss.status == "paused")
        assert boss.run["reason"] == "hitl"
        waiting = boss.session.interrupt
        assert waiting is not None
        digests = {r.tool_call_id: r.digest for r in waiting.action_requests}
        answer = {"c2": sa.Respond("It is paid.")}
        boss.session.decide(answer, interrupt_id=waiting.id, digests=digests, by="Ada")
        assert boss.run["reason"] == "subagent"
        shown = boss.state()["state"]["interrupt"]
        assert [r["tool_call_id"] for r in shown["action_requests"]] == ["c1"]
        [link] = boss.state()["state"]["subagents"]
        boss.report(link["childThreadId"], "Here.")
        assert still(boss, "completed")
        assert {"Here.", "It is paid."} <= set(contents(boss))
