"""A forked process has none of its parent's conversations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.talking import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

SCRIPT = """
import os, sys
import sagents_nb as sa

def agent():
    return sa.Agent(sa.ScriptedModel(["hello", "again"]), replace_default_middleware=True)

path = sys.argv[1]
store = sa.ConversationStore(path)
session = sa.Session(agent(), id="c1", store=store)
session.send("x").result(300)

def tried(do):
    try:
        print(do().result(300).text, flush=True)
    except sa.SagentsError as error:
        print(type(error).__name__, error, flush=True)

if (child := os.fork()) == 0:
    own = sa.ConversationStore(path)
    tried(lambda: sa.Session.open("c1", agent=agent(), store=own).send("y"))
    tried(lambda: session.send("y"))
    tried(lambda: sa.Session(agent(), id="c2", store=own).send("y"))
    os._exit(0)
os.waitpid(child, 0)
tried(lambda: session.send("y"))
"""


def test_a_child_is_told_whose_a_conversation_is_and_has_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "c.db"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    owned, forked, new, parent = done.stdout.splitlines()
    assert owned.startswith("Owned Conversation 'c1' has been open in process")
    assert "was opened before this process was forked; open it again in this one" in forked
    assert (new, parent) == ("hello", "again")
    assert "was open in this process" not in done.stderr


WHILE_IT_WRITES = """
import os, sys, threading
import sagents_nb as sa

agent = sa.Agent(sa.ScriptedModel(["done"] * 1000), replace_default_middleware=True)
session = sa.Session(agent, id="c1", store=sa.ConversationStore(sys.argv[1]))
ended = threading.Event()

def send():
    while not ended.is_set():
        session.send("m").result(300)

sender = threading.Thread(target=send)
sender.start()
for _ in range(8):
    if (child := os.fork()) == 0:
        try:
            session.send("child")
        except sa.StoreError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(1)
    print(os.waitpid(child, 0)[1], flush=True)
ended.set()
sender.join()
print([m.text for m in session.messages].count("child"))
"""


def test_a_child_of_one_that_is_writing_is_refused_and_waits_for_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WHILE_IT_WRITES, tmp_path / "c.db"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.split() == ["0"] * 9
