"""Checks that these settings allow sending to the stored endpoints.

The process that accepts endpoints and the one that delivers can have different settings, and then every attempt fails.
Only the URLs are checked. What a host name resolves to is checked when a request is sent.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from hookline import ids
from hookline.cli.doctor.findings import Finding, ok, warn
from hookline.config import PREFIX, Settings
from hookline.errors import Invalid
from hookline.rules.destination import canonical
from hookline.store.contract.doctor import MOST_COUNTED, Examination

NAMED = 3  # endpoints


def check_destinations(found: Examination, settings: Settings) -> Iterator[Finding]:
    """Check the URLs of enabled endpoints."""
    destinations = [(each.id, each.url) for each in found.endpoints if each.enabled and _is_url(each.url)]
    if not destinations:
        return
    refused = [(id, url) for id, url in destinations if not _may_send(url, settings)]
    if not refused:
        yield ok("endpoints", f"the URLs of all enabled endpoints are allowed ({_many(len(destinations))})")
        return
    named = ", ".join(
        f"{ids.show('endpoint', id)} at {urlsplit(url).hostname}" for id, url in refused[:NAMED]
    )
    more = f" and {len(refused) - NAMED:,} more" if len(refused) > NAMED else ""
    yield warn(
        "endpoints",
        f"a process with these settings would refuse to send to {named}{more}, and every attempt would fail",
        f"set {PREFIX}ALLOW_NETWORKS and {PREFIX}DENY_NETWORKS to the same values for every hookline process, or disable these endpoints",
    )


def _is_url(url: str) -> bool:
    """Is it a URL that some settings would allow? Invalid URLs are reported elsewhere."""
    try:
        canonical(url, private_allowed=True)
    except Invalid:
        return False
    return True


def _may_send(url: str, settings: Settings) -> bool:
    allowed = None if settings.dev else settings.allow_networks
    try:
        canonical(
            url,
            private_allowed=settings.dev or bool(settings.allow_networks),
            allowed=allowed,
            denied=settings.deny_networks,
        )
    except Invalid:
        return False
    return True


def _many(number: int) -> str:
    return f"{number:,}{' or more' if number >= MOST_COUNTED else ''}"
