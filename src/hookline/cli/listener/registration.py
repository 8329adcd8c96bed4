"""Makes a server send to a listener: through the same endpoint, with the same secret, at every start."""

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import click

from hookline.cli.exits import NOT_FOUND, UNREACHABLE, CommandError
from hookline.cli.listener.kept_endpoints import KeptEndpoint, KeptEndpoints

if TYPE_CHECKING:
    from hookline.cli.client import Client

DESCRIPTION = "hookline listen"  # of the endpoints that listeners create


class Wanted(NamedTuple):
    """The endpoint that a listener wants."""

    url: str
    events: list[str]
    account: str | None


def register(client: "Client", files: KeptEndpoints, wanted: Wanted) -> KeptEndpoint:
    """The endpoint that sends here: the one of the last time, or else a new one with the same secret."""
    kept = files.read()
    try:
        endpoint = _found(client, kept, wanted)
        endpoint = (
            create(client, wanted, secret=None if kept is None else kept.secret)
            if endpoint is None
            else _as_wanted(client, endpoint, wanted)
        )
    except CommandError as error:
        if kept is None or error.exit_status != UNREACHABLE:
            raise
        click.echo(f"{error} Once the server is back, it goes on with {kept.id}.", err=True)
        _say_secret(kept.secret)
        return kept
    now = KeptEndpoint(endpoint["id"], endpoint["secret"])
    if now != kept:
        _keep(files, now)
    say(endpoint)
    return now


def unregister(client: "Client", files: KeptEndpoints, wanted: Wanted) -> str | None:
    """Delete the endpoint that is kept here and forget its secret; its id, or None: there is none.

    One that is only found by its URL may be that of somebody else's listener: it is named, and not deleted.
    """
    kept = files.read()
    endpoint = None if kept is None else _by_id(client, kept.id)
    if endpoint is None:
        files.forget()
        if (other := _by_url(client, wanted)) is not None:
            raise CommandError(
                f"{other['id']} sends to {wanted.url}, but is not the one that is kept here: another listener may be "
                f"using it. If none is: hookline endpoints delete {other['id']}",
                NOT_FOUND,
            )
        return None
    client.delete(_path(endpoint["id"]))
    files.forget()
    return str(endpoint["id"])


def create(client: "Client", wanted: Wanted, *, secret: str | None = None) -> dict[str, Any]:
    """A new endpoint, with its secret."""
    body = {**wanted._asdict(), "description": DESCRIPTION, "secret": secret}
    created: dict[str, Any] = client.post(
        "/v1/endpoints", {name: value for name, value in body.items() if value is not None}
    )
    return created


def say(endpoint: dict[str, Any]) -> None:
    """Say what is sent where, and with which secret it is signed."""
    click.echo(f"{endpoint['id']} sends {', '.join(endpoint['events'])} to {endpoint['url']}", err=True)
    _say_secret(endpoint["secret"])


def _say_secret(secret: str) -> None:
    click.echo(f"signing secret: {secret}", err=True)


def _found(client: "Client", kept: KeptEndpoint | None, wanted: Wanted) -> dict[str, Any] | None:
    found = None if kept is None else _by_id(client, kept.id)
    # By its URL: of a listener that was killed before it could keep the id, or whose file is lost.
    return _by_url(client, wanted) if found is None else found


def _as_wanted(client: "Client", endpoint: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    """The endpoint with its secret, sending again: the server may have given up while nobody listened."""
    path = _path(endpoint["id"])
    changes = {
        name: value
        for name, value in (("url", wanted.url), ("events", wanted.events))
        if endpoint[name] != value
    }
    if changes:
        endpoint = client.patch(path, changes)
    if not endpoint["enabled"]:
        endpoint = client.post(f"{path}/enable")
    if endpoint["circuit_state"]["state"] != "closed":
        client.post(f"{path}/circuit/reset")
    if endpoint["paused"]:
        click.echo(f"It is paused: hookline endpoints resume {endpoint['id']}", err=True)
    return {**endpoint, "secret": client.get(f"{path}/secret")["secret"]}


def _by_id(client: "Client", id: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.get(_path(id))
    except CommandError as error:
        if error.exit_status == NOT_FOUND:
            return None
        raise
    return found


def _by_url(client: "Client", wanted: Wanted) -> dict[str, Any] | None:
    for each in client.pages("/v1/endpoints", limit=None, account=wanted.account):
        if each["url"] == wanted.url and each["description"] == DESCRIPTION:
            found: dict[str, Any] = each
            return found
    return None


def _keep(files: KeptEndpoints, kept: KeptEndpoint) -> None:
    try:
        files.write(kept)
    except OSError as error:
        # It is not worth an error.
        why = error.strerror or str(error)
        click.echo(
            f"{files.path} cannot be written ({why}): the next start finds the endpoint by its URL.", err=True
        )


def _path(id: str) -> str:
    return f"/v1/endpoints/{quote(id, safe='')}"
