"""Checks the settings for what an operator would not want."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path

from hookline.cli.doctor.findings import Finding, ok, warn
from hookline.config import FILE, SECRET, Network, Settings
from hookline.rules.egress_proxy import shown
from hookline.store.database_url import has_password

# Addresses where clouds give credentials to every caller from inside.
_METADATA = (ip_network("169.254.169.254/32"), ip_network("fd00:ec2::254/128"))


def check_settings(settings: Settings, sources: Mapping[str, str]) -> Iterator[Finding]:
    """Check the settings themselves."""
    places = sorted({each.partition(":")[0] for each in sources.values()})
    yield ok("configuration", f"read from {', '.join(places)}" if places else "all defaults")
    if settings.dev and not sources.get("dev", "").startswith("--"):
        yield warn(
            "dev",
            f"development mode is on for every command ({sources.get('dev')})",
            f"remove {sources.get('dev')} where others can reach this machine",
        )
    yield from check_networks(settings.allow_networks)
    if settings.egress_proxy is not None:
        yield ok(
            "egress_proxy",
            f"requests go through {shown(settings.egress_proxy)}, which has to keep them from private addresses",
        )
    if settings.deny_networks:
        yield ok("deny_networks", f"webhooks are never sent to {', '.join(map(str, settings.deny_networks))}")


def check_networks(allowed: tuple[Network, ...]) -> Iterator[Finding]:
    """Check where webhooks may go besides public addresses."""
    if not allowed:
        yield ok("allow_networks", "webhooks are sent to public addresses only")
        return
    named = ", ".join(map(str, allowed))
    for network in allowed:
        if network.prefixlen == 0:
            yield warn(
                "allow_networks", f"{network} allows every private address", "list only the networks you need"
            )
            return
        if any(network.version == each.version and each.subnet_of(network) for each in _METADATA):  # type: ignore[arg-type]  # of one version
            yield warn(
                "allow_networks",
                f"{network} includes the metadata address where clouds hand out credentials",
                "exclude 169.254.0.0/16 and fd00:ec2::/32",
            )
            return
    yield ok("allow_networks", f"webhooks are also sent to {named}")


def check_file(sources: Mapping[str, str], database: str) -> Iterator[Finding]:
    """Check that others cannot read the secrets in the file."""
    in_file = {name for name, source in sources.items() if source.startswith(FILE)}
    holds_secrets = in_file & (SECRET | {"egress_proxy"}) or (
        "database" in in_file and has_password(database)
    )
    if not holds_secrets:
        return
    mode = Path(FILE).stat().st_mode & 0o777
    if mode & 0o077:
        yield warn(FILE, f"it contains secrets, and other users may read it ({mode:o})", f"chmod 600 {FILE}")
    else:
        yield ok(FILE, "only you may read it")
