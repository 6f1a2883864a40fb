"""Which providers there are: all that the rest of the package knows of one is said here.

A new one is an entry in ``PROVIDERS``, a module with its model, and the extra of its SDK in
pyproject.toml. Importing this loads neither SDKs nor those modules.
"""

from __future__ import annotations

from typing import NamedTuple


class Sdk(NamedTuple):
    """One SDK: what to import, and which variables of the environment it reads.

    ``package`` is also the name of the extra that installs it, from the version ``oldest``.
    ``own_credentials`` are the attributes of its client that hold what it found in the place of
    a key by itself; there are none if its client has to be given one.
    """

    package: str
    oldest: str
    client: str
    label: str
    key_variable: str
    url_variable: str
    default_url: str
    other_credentials: tuple[str, ...]
    own_credentials: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """All that it reads of the environment."""
        return self.key_variable, self.url_variable, *self.other_credentials


ANTHROPIC = Sdk(
    package="anthropic",
    oldest="2",
    client="AsyncAnthropic",
    label="Anthropic",
    key_variable="ANTHROPIC_API_KEY",
    url_variable="ANTHROPIC_BASE_URL",
    default_url="https://api.anthropic.com",
    other_credentials=("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR"),
    own_credentials=("api_key", "auth_token", "credentials"),
)
OPENAI = Sdk(
    package="openai",
    oldest="3",
    client="AsyncOpenAI",
    label="OpenAI",
    key_variable="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    default_url="https://api.openai.com/v1",
    other_credentials=("OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
)
SDKS = (ANTHROPIC, OPENAI)

KEYS_GO = (
    f"the environment ({', '.join(sdk.key_variable for sdk in SDKS)}) or api_key=… of the model"
)
"""Where keys go, as errors say it."""


class Provider(NamedTuple):
    """What ``name:MODEL`` stands for: the class ``model`` of ``module`` in this package.

    ``default`` is its model for those who name none but have a key; "" for none. ``prefixes``
    begin the names of its models, as people give them without a provider.
    """

    name: str
    sdk: Sdk
    module: str
    model: str
    default: str = ""
    prefixes: tuple[str, ...] = ()
    note: str = ""


# In the order in which a default model is looked for.
PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider(
            *("anthropic", ANTHROPIC, "anthropic", "AnthropicModel"),
            default="claude-sonnet-5-5",
            prefixes=("claude",),
        ),
        Provider(
            *("openai", OPENAI, "openai", "OpenAIModel"),
            default="gpt-6.1-sol",
            prefixes=("gpt", "o1", "o3"),
        ),
        Provider(
            *("openai-chat", OPENAI, "openai_chat", "OpenAIChatModel"),
            note=" (with base_url=… for a compatible server)",
        ),
    )
}
