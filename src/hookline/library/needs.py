"""Names the optional package that is missing, with the line that installs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from hookline.errors import ConfigError

_EXTRAS = {"asyncpg": "postgres", "jsonschema_rs": "schema", "opentelemetry": "otel"}  # the rest: server


@contextmanager
def naming_what_is_missing(what: str) -> Iterator[None]:
    """Inside, what cannot be imported is a `ConfigError` that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "hookline"):
            raise
        extra = _EXTRAS.get(package, "server")
        raise ConfigError(f"{what} needs {package}: pip install 'hookline[{extra}]'.") from None
