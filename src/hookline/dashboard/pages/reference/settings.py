"""Shows the settings in force, and where each came from."""

from collections.abc import Mapping, Sequence
from typing import Any

from hookline.app import Hookline
from hookline.config import PREFIX, Settings, presentable
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, PageRoute, Shown

# In the order in which they are shown. A setting that stands nowhere here is shown in the last group, without words.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Server": {
        "database": "where everything is kept",
        "host": "address that the server listens on",
        "port": "and its port",
        "processes": "server processes on that port, on PostgreSQL",
        "metrics_port": "first of the ports on which each process shows its own metrics",
        "dev": "development mode: this machine only, no key, private networks",
        "public_url": "where people reach these pages",
        "drain_s": "seconds to finish what is under way before it stops",
    },
    "Access": {
        "api_key": "one more key, with all rights",
        "secret_key": "seals the secrets of endpoints in the database",
        "open_docs": "the API's description needs no key",
        "open_metrics": "metrics need no key",
    },
    "Sending": {
        "retry": "schedule of endpoints without one of their own",
        "allow_networks": "private networks that webhooks may go to",
        "deny_networks": "networks that they never go to, whatever else is allowed",
        "egress_proxy": "proxy that every request goes through; it decides where names lead to",
        "ca_file": "authorities that requests trust besides the machine's",
        "max_in_flight": "requests under way at once, for each worker",
        "max_in_flight_per_host": "and to one host",
        "contact": "said to receivers, so that they can ask",
    },
    "Limits": {
        "payload_limit_bytes": "largest payload",
        "batch_limit_bytes": "largest request with many events",
        "deliveries_per_event": "endpoints that one event may go to",
        "endpoints_per_account": "endpoints that one account may have",
        "publish_per_account": "events a second that one account may publish; 0: any number",
        "requests_per_key": "requests a second of one key; 0: any number",
        "max_connections": "connections of clients to each process; empty: as open files allow",
        "max_connections_per_address": "and from one address; empty: half of them",
        "max_hops": "times that a webhook may be published again",
    },
    "Outboxes": {
        "outbox": "databases of applications whose outbox is read, besides hookline's own",
    },
    "Keeping": {
        "keep_delivered_days": "days that delivered and cancelled ones are kept; 0: for ever",
        "keep_dead_days": "days that dead letters are kept; 0: for ever",
        "keep_audit_days": "days that entries of the audit trail are kept; 0: for ever",
    },
    "Alerts": {
        "alert_dead_letters": "an account with more dead letters is alerted",
        "alert_oldest_due_s": "seconds by which the oldest delivery may be late",
        "alert_slow_s": "seconds that the 95th percentile of an endpoint may take",
        "alert_queue": "length from which a growing queue is alerted",
        "alert_outbox_refused": "more refused rows of outboxes are alerted",
        "alert_outbox_late_s": "seconds by which an outbox may be late",
        "alert_every_s": "seconds between two looks",
        "notify_deaths_s": "seconds for which dead deliveries are gathered into one message",
    },
    "Mail": {
        "smtp_host": "server that sends mail; without one none is sent",
        "smtp_port": "its port",
        "smtp_tls": "how the connection to it is encrypted",
        "smtp_username": "login at it",
        "smtp_password": "and its password",
        "mail_from": "address that mail comes from",
    },
    "Portal": {
        "portal_name": "name that customers see",
        "portal_logo": "file with the logo that they see",
        "portal_accent": "colour of their pages",
        "portal_frame_ancestors": "sites that may show it in a frame",
    },
    "Workers": {
        "heartbeat_s": "seconds between two beats of a worker",
        "takeover_s": "seconds without a beat after which others take over",
        "poll_s": "seconds between two looks for work",
        "notify": "tell other processes of new work at once, on PostgreSQL",
    },
    "Commands": {
        "url": "server that client commands talk to",
    },
}
_REST = "Others"


class SettingPages:
    """The page of the settings; for operators."""

    def __init__(self, hookline: Hookline, sources: Mapping[str, str]) -> None:
        self._settings = hookline.settings
        self._sources = sources

    def routes(self) -> Sequence[PageRoute]:
        """The page."""
        return [PageRoute("GET", "/settings", self.show, for_accounts=False)]

    async def show(self, asked: Asked) -> Answer:
        """What is in force, and why?"""
        names = Settings.__struct_fields__
        said = {name for group in GROUPS.values() for name in group}
        groups = {
            title: {n: text for n, text in group.items() if n in names} for title, group in GROUPS.items()
        }
        groups[_REST] = {name: "" for name in names if name not in said}
        return Shown(
            template="settings.html",
            title=_sentence(len(self._sources)),
            data={
                "groups": [
                    (title, [self._row(name, text) for name, text in group.items()])
                    for title, group in groups.items()
                    if group
                ],
            },
            nav="settings",
        )

    def _row(self, name: str, text: str) -> Mapping[str, Any]:
        return {
            "name": name,
            "variable": PREFIX + name.upper(),
            "value": _written(name, presentable(name, getattr(self._settings, name))),
            "source": self._sources.get(name),
            "meaning": text,
        }


def _sentence(given: int) -> str:
    if not given:
        return "Every setting is at its default"
    return f"{words.counted(given, 'setting')} {'was' if given == 1 else 'were'} set, the others are at their defaults"


def _written(name: str, value: Any) -> str:
    match value:
        case None | ():
            return ""
        case bool():
            return "true" if value else "false"
        case int() if not name.endswith("port"):
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case tuple() | list():
            return ", ".join(str(each) for each in value)
    return str(value)
