"""What a notebook's variables hold of secrets is handed to no model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell

import sagents_nb as sa
from sagents_nb.redaction import KEY, masked, secrets_of_names
from tests.notebook.test_interpolate import interpolate
from tests.talking import agent_of, call

CANARY = "CANARY-0123456789"
NAMES = [
    "password", "db_password", "DB_PASSWORD", "passwd", "MYSQL_PASSWD", "pwd", "user_pwd", "pw",
    "db_pw", "passphrase", "secret", "client_secret", "SECRET", "app_secret_2", "api_key",
    "API_KEY", "apikey", "OPENAI_API_KEY", "private_key", "access_key", "AWS_SECRET_ACCESS_KEY",
    "credentials", "gh_credential", "bearer", "my_bearer", "gh_pat", "token", "access_token",
    "GITHUB_TOKEN", "hf_token", "auth", "auth_header", "key", "signing_key", "session_cookie",
    "sentry_dsn", "connection_string",
]  # fmt: skip
FORMS = [
    "sk-proj-abcdefghij0123456789", "sk-ant-api03-abcdefghij0123456789", "ghp_" + "a1" * 18,
    "Bearer abcdefghij0123456789", "Basic dXNlcjpwYXNzd29yZDEyMzQ=", "github_pat_" + "a1" * 20,
    "hf_" + "Ab1" * 12,
    "xoxb-123456789012-abcdefghij12", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE",
    "AIzaSyA-0123456789abcdefghijklmnopqrstu", "glpat-abcdefghij0123456789", "npm_" + "aB1" * 12,
    "sk_live_abcdefghij0123456789", "rk_test_abcdefghij0123456789", "ya29.a0AfH6SMBabcdefghij0123",
    "SG.abcdefghij0123456789.abcdefghij0123456789", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abc_-123",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc123\n-----END RSA PRIVATE KEY-----",
]  # fmt: skip
WRITTEN = [
    f"Config(password='{CANARY}')", f'{{"api_key": "{CANARY}"}}', f"secret = {CANARY}",
    f"token: {CANARY}", f"postgresql://me:{CANARY}@host/db", f"pwd={CANARY};host=x",
    f"PASSPHRASE='{CANARY}'",
]  # fmt: skip


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    before = dict(shell.user_ns)
    yield shell
    shell.user_ns.clear()
    shell.user_ns.update(before)


def handed_out(shell: InteractiveShell, *calls: sa.ToolCall) -> str:
    """All that a model is told by these calls."""
    agent = agent_of(
        [*calls], "done", middleware=[sa.NotebookTools(shell)], interrupt_on={"run_python": False}
    )
    agent.run("go")
    asked = agent.model.requests[-1]  # type: ignore[attr-defined]
    return "\n".join(r.text for m in asked.messages for r in m.tool_results)


@pytest.mark.parametrize("name", NAMES)
def test_a17_what_is_under_the_name_of_a_secret_is_masked(
    name: str, shell: InteractiveShell
) -> None:
    shell.user_ns |= {name: CANARY, "elsewhere": f"it is {CANARY}!", "deep": {"password": CANARY}}
    calls = [
        call("inspect_variables", "a"),
        call("inspect_variables", "b", names=[name, "elsewhere", "deep"]),
        call("run_python", "c", code=f"print({name}); elsewhere"),
        call("run_python", "d", code=f"raise ValueError({name})"),
    ]
    told = handed_out(shell, *calls)
    assert "elsewhere: it is [key]!" in told
    assert CANARY not in told + interpolate(f"Use {{{name}}} and {{elsewhere}}.", shell.user_ns)


@pytest.mark.parametrize("text", [*FORMS, *WRITTEN])
def test_a17_what_looks_like_a_secret_is_masked(text: str, shell: InteractiveShell) -> None:
    shell.user_ns["note"] = f"Look: {text} it was."
    told = handed_out(shell, call("inspect_variables", "a", names=["note"]))
    shown = interpolate("{note}", shell.user_ns)
    for seen in (told, shown):
        assert KEY in seen
        assert "Look: " in seen
        assert text not in seen
        assert CANARY not in seen
        assert "abcdefghij0123456789" not in seen


@pytest.mark.parametrize(
    "name", ["In", "_ih", "_i", "Out", "_oh", "_", "__", "get_ipython", "exit"]
)
def test_a17_the_history_of_the_notebook_is_no_variable(name: str, shell: InteractiveShell) -> None:
    shell.run_cell(f"typed = '{CANARY}'", store_history=True)
    told = handed_out(shell, call("inspect_variables", "a", names=[name]))
    assert told == f"{name}: there is no such variable"


def test_a17_a_frame_and_an_object_of_ones_own_are_masked(shell: InteractiveShell) -> None:
    pandas = pytest.importorskip("pandas")

    @dataclasses.dataclass
    class Settings:
        host: str
        password: str

    frame = pandas.DataFrame({"who": ["ann"], "note": [f"token={CANARY}"]})
    shell.user_ns |= {"frame": frame, "settings": Settings("localhost", CANARY)}
    told = handed_out(
        shell,
        sa.ToolCall("a", "show_frame", {"name": "frame"}),
        call("inspect_variables", "b", names=["settings", "frame"]),
    )
    assert CANARY not in told
    assert "localhost" in told


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096", "tokens: 12", "token = None", "a task-force of 20", "password reset",
        "https://example.org:8080/a@b", "species, body_mass", "def f(token): ...", "key: a",
    ],
)  # fmt: skip
def test_a17_what_is_no_secret_stays(text: str) -> None:
    names = {
        "key": "body_mass", "tokens": ["a", "long", "list"], "token_count": 5, "connection": "open",
        "author": "somebody-with-a-name", "text": text,
    }  # fmt: skip
    assert masked(text, secrets_of_names(names)) == text


def test_a17_the_environments_secrets_are_masked(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", CANARY)
    code = "import os; print(os.environ['SOME_SERVICE_API_KEY'])"
    assert handed_out(shell, call("run_python", "a", code=code)) == f"{KEY}\n"
