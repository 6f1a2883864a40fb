"""The databases of the store's tests serve the files too."""

from tests.store.conftest import postgres_connection, postgres_server, postgres_url

__all__ = ["postgres_connection", "postgres_server", "postgres_url"]
