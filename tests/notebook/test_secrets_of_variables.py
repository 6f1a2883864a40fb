"""What a notebook's variables hold of secrets is handed to no model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell

import sagents_nb as sa
from sagents_nb.notebook.interpolate import fields_in
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


SECRET_VALUES = {
    "bytes": "b'hush-1234-abcd'",
    "bytes that are no text": "bytes(range(200, 232))",
    "bytearray": "bytearray(b'hush-1234-abcd')",
    "memoryview": "memoryview(b'hush-1234-abcd')",
    "list": "['hush-1234-abcd', b'hush-5678-efgh', 'x']",
    "tuple": "('hush-1234-abcd',)",
    "set": "{'hush-1234-abcd'}",
    "frozenset": "frozenset({'hush-1234-abcd'})",
    "dict": "{'prod': 'hush-1234-abcd', 'test': {'eu': ['hush-5678-efgh']}}",
    "deque": "__import__('collections').deque(['hush-1234-abcd'])",
    "int": "1234567890123",
    "UUID": "__import__('uuid').UUID('12345678123456781234567812345678')",
    "array": "__import__('numpy').array([['hush-1234-abcd']])",
    "array of numbers": "__import__('numpy').array([12345678])",
    "Series": "__import__('pandas').Series(['hush-1234-abcd'])",
    "Index": "__import__('pandas').Index(['hush-1234-abcd'])",
    "DataFrame": "__import__('pandas').DataFrame({'n': ['hush-1234-abcd'], 'm': [12345678]})",
    "a text with quotes": "'hush\"1234\\'&<abcd\\n'",
    "a subclass of str": "type('S', (str,), {})('hush-1234-abcd')",
}  # fmt: skip
# None of these may be in what a model is told, whatever the value is.
PIECES = ["hush", "1234", "5678", "68757368", "c8c9cacb", r"\xc8\xc9", "ÈÉ"]


@pytest.mark.parametrize("kind", SECRET_VALUES)
@pytest.mark.parametrize("name", ["api_key", "password", "client_secret", "auth_token"])
def test_a17_a_secret_of_any_type_is_masked(kind: str, name: str, shell: InteractiveShell) -> None:
    shell.user_ns[name] = eval(SECRET_VALUES[kind])
    told = handed_out(
        shell,
        call("inspect_variables", "a"),
        call("inspect_variables", "b", names=[name]),
        call("run_python", "c", code=f"print({name}); print(repr({name}))\n{name}"),
        call("run_python", "d", code=f"print({name}.hex())" if "bytes" in kind else "0"),
        call("run_python", "e", code=f"print({name}.decode('latin-1'))" if "bytes" in kind else ""),
        call("run_python", "f", code=f"raise ValueError({name})"),
    )
    assert f"\n{name}: [key]\n" in f"\n{told}\n"
    told += interpolate(f"Use {{{name}}}.", shell.user_ns)
    assert not any(piece in told for piece in PIECES)


@pytest.mark.parametrize("kind", SECRET_VALUES)
def test_a17_the_list_of_variables_says_nothing_of_a_secret_but_its_name(
    kind: str, shell: InteractiveShell
) -> None:
    shell.user_ns["api_key"] = eval(SECRET_VALUES[kind])
    for asked in ({}, {"names": ["api_key"]}):
        told = handed_out(shell, call("inspect_variables", "a", **asked))
        line = next(line for line in told.splitlines() if line.startswith("api_key"))
        assert line == "api_key: [key]"
        assert not any(piece in line for piece in PIECES)
    assert interpolate("{api_key}", shell.user_ns) == "[key]"


def test_a17_code_and_what_is_empty_are_no_secrets(shell: InteractiveShell) -> None:
    def get_password() -> None: ...

    shell.user_ns |= {
        "get_password": get_password, "SecretType": int, "api_key": "", "passwords": [],
        "password_count": 3, "has_password": True, "secret": None, "token": ["the", "word"],
        "tokens": {"the": 1200000}, "token_ids": [101, 20394812], "key": ("a", "b"),
    }  # fmt: skip
    told = handed_out(shell, call("inspect_variables", "a"))
    assert KEY not in told
    assert "token: list ['the', 'word']" in told
    assert "1200000" in told


def test_a17_a_secret_is_masked_where_other_values_hold_it(shell: InteractiveShell) -> None:
    code = (
        "from dataclasses import dataclass\n"
        "from types import SimpleNamespace\n"
        "from collections import namedtuple\n"
        "class Settings:\n"
        "    api_key = 'attr-hush-01'\n"
        "    __slots__ = ('password',)\n"
        "    def __repr__(self): return f'{self.api_key} {self.password}'\n"
        "settings = Settings(); settings.password = 'slot-hush-02'\n"
        "inner = SimpleNamespace(pwd='in-hush-04')\n"
        "space = SimpleNamespace(token='space-hush-03-xyz', inner=inner)\n"
        "Login = namedtuple('Login', 'user password'); login = Login('ann', 'tuple-hush-05')\n"
        "rows = [{'host': 'a', 'password': b'row-hush-06'}, {'api_key': ['row-hush-07']}]\n"
        "by_bytes = {b'password': 'bytes-hush-08', ('password', 1): 'pair-hush-09'}\n"
        "class Later:\n"
        "    def __init__(self): self.secret_key = 'own-hush-10'\n"
        "    def __repr__(self): return self.secret_key[:] + '!'\n"
        "later = Later()\n"
    )
    shell.run_cell(code).raise_error()
    seen = "settings, later, space.token, space.inner.pwd, login[1], rows, list(by_bytes.values())"
    told = handed_out(
        shell,
        call("inspect_variables", "a"),
        call("inspect_variables", "b", names=["settings", "later", "rows", "by_bytes", "login"]),
        call("run_python", "c", code=f"print({seen})"),
        call("run_python", "d", code="raise ValueError(settings.password, later)"),
        call("run_python", "e", code="print(str(rows[0]['password'], 'utf8'), rows[1]['api_key'])"),
    )
    assert "hush" not in told
    assert "Login(user='ann', password='[key]')" in told


def test_a17_no_piece_of_a_secret_is_left_where_a_text_is_cut(shell: InteractiveShell) -> None:
    secret = "Sx1-" * 30
    shell.user_ns |= {"api_key": secret, "text": "w" * 70 + secret, "cell": "c" * 4900 + secret}
    shell.run_cell(f"'{'d' * 4900}' + api_key", store_history=True)
    told = handed_out(
        shell,
        call("inspect_variables", "a"),
        call("inspect_variables", "b", names=["text", "cell"]),
        call("read_cell", "c", number=shell.execution_count - 1),
        call("run_python", "d", code="'e' * 8990 + api_key"),
    )
    assert "Sx1" not in told


@pytest.mark.parametrize("path", ["settings.api_key", "data.password", "space.token", "deep.a.pwd"])
def test_a17_an_attribute_with_the_name_of_a_secret_is_masked_in_a_prompt(
    path: str, shell: InteractiveShell
) -> None:
    code = (
        "from types import SimpleNamespace\n"
        "class Settings:\n"
        "    api_key = 'hush-0001-abcd'\n"
        "settings = Settings()\n"
        "class Data:\n"
        "    @property\n"
        "    def password(self): return 'hush-2'\n"
        "data = Data()\n"
        "space = SimpleNamespace(token=b'hush-0003-abcd', user='ann')\n"
        "deep = SimpleNamespace(a=SimpleNamespace(pwd=['hush']))"
    )
    shell.run_cell(code).raise_error()
    field = fields_in(f"Use {{{path}}}.", shell.user_ns)[path]
    assert (field.text, field.brief) == (KEY, KEY)
    assert fields_in("{space.user}", shell.user_ns)["space.user"].text == "ann"


def test_a17_columns_and_entries_with_the_name_of_a_secret_are_masked(
    shell: InteractiveShell,
) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "user": ["ann", "bob", "cem"],
            "password": ["hush1", "hush2", "zhush"],
            "api_key": [70010001, 70010002, 70010003],
            ("auth", "secret"): [b"hush-b", None, ["hush-l"]],
            "session_token": ["hush0001abcdef", "hush0002abcdef", "hush0003abcdef"],
            "token": ["the", "cat", "sat"],
        }
    )
    by_key = frame[["user", "password"]].rename(columns={"password": "pwd"}).set_index("pwd")
    entries = pandas.Series({"password": "hush", "api_key": 70010004, "n": 1})
    named = pandas.Series(["hush", "hush"], name="password")
    shell.user_ns |= {"df": frame, "keyed": by_key, "entries": entries, "named": named}
    told = handed_out(
        shell,
        call("inspect_variables", "a"),
        call("inspect_variables", "b", names=["df", "keyed", "entries", "named"]),
        sa.ToolCall("c", "show_frame", {"name": "df"}),
        sa.ToolCall("d", "show_frame", {"name": "keyed"}),
        call("run_python", "e", code="df"),
        call("run_python", "f", code="entries"),
        call("run_python", "g", code="named"),
    )
    told += interpolate("{df} {keyed} {entries} {named}", shell.user_ns)
    assert "hush" not in told
    assert "7001" not in told
    assert "- password: [key]" in told
    assert "ann,[key],[key]" in told
    assert '- token: {"the": 1, "cat": 1, "sat": 1}' in told
    assert frame["password"].tolist() == ["hush1", "hush2", "zhush"]
    assert list(by_key.index) == ["hush1", "hush2", "zhush"]


def test_a17_the_values_of_a_secret_column_are_masked_in_what_is_printed(
    shell: InteractiveShell,
) -> None:
    pandas = pytest.importorskip("pandas")
    keys = [f"hush-{n:05}-{'x' * 60}" for n in range(5000)]
    shell.user_ns["df"] = pandas.DataFrame({"n": range(5000), "api_key": keys})
    told = handed_out(shell, call("run_python", "a", code="print(df); print(df.api_key[0])"))
    assert "hush" not in told
    assert "[5000 rows x 2 columns]" in told


def test_a17_a_frame_with_the_name_of_a_secret_is_neither_shown_nor_drawn(
    shell: InteractiveShell,
) -> None:
    pandas = pytest.importorskip("pandas")
    shell.user_ns |= {
        "credentials": pandas.DataFrame({"a": [1.5]}),
        "df": pandas.DataFrame({"password": [123456.0], "n": [1]}),
    }
    for tool in ("show_frame", "plot"):
        said = handed_out(shell, sa.ToolCall("a", tool, {"name": "credentials"}))
        assert said == (
            "ValueError: 'credentials' has the name of a secret, so nothing of it is shown."
        )
    said = handed_out(shell, sa.ToolCall("a", "plot", {"name": "df", "columns": ["password"]}))
    assert said == "TypeError: no numeric data to plot"
