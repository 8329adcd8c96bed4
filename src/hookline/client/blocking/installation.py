# Generated from client/aio by scripts/mirror_client.py: change that, and run it.
"""Calls about the whole installation."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from hookline.client import call as calls
from hookline.client.blocking.listing import Listing, Sends
from hookline.client.call import step
from hookline.client.overview import (
    Account,
    Alert,
    AlertTest,
    AuditEntry,
    Conservation,
    EventType,
    FoundIds,
    Health,
    Key,
    PortalLink,
    Worker,
)
from hookline.client.status import Status
from hookline.client.words import AlertKind, AlertState, AuditAction, Scope


class InstallationMethods(Sends):
    """Health, event types, accounts and keys."""

    def health(self, *, account: str | None = None) -> Health:
        """Get how much waits, fails and arrives, of one account or of all."""
        return self.send(calls.get("/v1/health", Health, account=account))

    def status(self, *, account: str | None = None) -> Status:
        """Get how the installation is, in a sentence, and what fails, of one account or of all."""
        return self.send(calls.get("/v1/status", Status, account=account))

    def conservation(self, *, account: str | None = None) -> Conservation:
        """Account for all deliveries that were ever accepted, of one account or of all."""
        return self.send(calls.get("/v1/conservation", Conservation, account=account))

    def alerts(
        self,
        *,
        state: AlertState | str | None = None,
        kind: AlertKind | str | None = None,
        account: str | None = None,
        endpoint_id: str | None = None,
    ) -> Listing[Alert]:
        """List alerts; `state` is "firing" or "resolved", and both if it is not given."""
        return Listing(
            self, "/v1/alerts", Alert, state=state, kind=kind, account=account, endpoint_id=endpoint_id
        )

    def audit(
        self,
        *,
        account: str | None = None,
        action: AuditAction | str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Listing[AuditEntry]:
        """List who changed what; `subject` is an id or a name, `actor` the id of a key."""
        return Listing(
            self,
            "/v1/audit",
            AuditEntry,
            account=account,
            action=action,
            subject=subject,
            actor=actor,
            since=since,
            until=until,
        )

    def workers(self) -> Listing[Worker]:
        """List the processes that deliver."""
        return Listing(self, "/v1/workers", Worker)

    def ids(self, prefix: str) -> FoundIds:
        """Find the ids that begin with a prefix, such as `dlv_06f3b1q2`; it needs 8 characters after the kind."""
        return self.send(calls.get(f"/v1/ids/{step(prefix)}", FoundIds))

    # --- event types ---

    def event_types(self) -> Listing[EventType]:
        """List the event types that were described, by name."""
        return Listing(self, "/v1/event-types", EventType)

    def event_type(self, name: str) -> EventType:
        """Get the description of an event type."""
        return self.send(calls.get(f"/v1/event-types/{step(name)}", EventType))

    def put_event_type(
        self, name: str, *, description: str | None = None, schema: Mapping[str, object] | None = None
    ) -> EventType:
        """Describe an event type; payloads published from now on must match the JSON Schema."""
        fields = calls.said(description=description, schema=schema)
        return self.send(calls.put(f"/v1/event-types/{step(name)}", EventType, fields))

    def delete_event_type(self, name: str) -> None:
        """Delete the description of an event type; it can still be published."""
        self.send(calls.delete(f"/v1/event-types/{step(name)}"))

    # --- accounts ---

    def account(self, id: str) -> Account:
        """Get an account's settings; every name is an account."""
        return self.send(calls.get(f"/v1/accounts/{step(id)}", Account))

    def put_account(self, id: str, *, notify: Mapping[str, str | None] | None = None) -> Account:
        """Set where an account is told of trouble: `email`, `webhook`, `slack`. One that is missing is removed.

        A URL as the server shows it, masked, keeps the stored one.
        """
        return self.send(calls.put(f"/v1/accounts/{step(id)}", Account, calls.said(notify=notify)))

    def test_alert(self, account: str) -> AlertTest:
        """Send a test alert on every channel of an account, and wait for the answers."""
        return self.send(calls.post(f"/v1/accounts/{step(account)}/test-alert", AlertTest))

    def portal_link(
        self,
        account: str,
        *,
        expires_in_s: int | None = None,
        visit_s: int | None = None,
        may_act: bool | None = None,
    ) -> PortalLink:
        """Create a link that opens one visit to an account's portal. Only the answer to this call holds it."""
        fields = calls.said(expires_in_s=expires_in_s, visit_s=visit_s, may_act=may_act)
        return self.send(calls.post(f"/v1/accounts/{step(account)}/portal-link", PortalLink, fields))

    # --- keys ---

    def keys(self) -> Listing[Key]:
        """List API keys, revoked ones too, without the keys themselves."""
        return Listing(self, "/v1/keys", Key)

    def key(self, id: str) -> Key:
        """Get an API key, without the key itself."""
        return self.send(calls.get(f"/v1/keys/{step(id)}", Key))

    def create_key(
        self, scopes: Sequence[Scope | str], *, name: str | None = None, account: str | None = None
    ) -> Key:
        """Create a key; with an account it is good for that one only. Only the answer to this call holds the key."""
        fields = calls.said(scopes=scopes, name=name, account=account)
        return self.send(calls.post("/v1/keys", Key, fields))

    def revoke_key(self, id: str) -> None:
        """Revoke a key."""
        self.send(calls.delete(f"/v1/keys/{step(id)}"))
