"""Finds stored endpoints that today's rules would refuse."""

from collections.abc import Iterator

from hookline import ids
from hookline.cli.doctor.findings import Finding, bad
from hookline.config import Settings
from hookline.crypto.sealing import PREFIX, Sealer
from hookline.store.contract.doctor import Examination
from hookline.validate.endpoint_fields import shown_as
from hookline.validate.stored_endpoint import EndpointJudge

NAMED = 3  # endpoints


def check_stored_endpoints(found: Examination, settings: Settings) -> Iterator[Finding]:
    """List endpoints with a fault that makes deliveries fail. Another check covers whether secrets can be opened."""
    judge = EndpointJudge(Sealer(settings.secret_key))
    at_fault = []
    for endpoint in found.endpoints:
        faults = dict(judge.faults(endpoint))
        if endpoint.secret.startswith(PREFIX):
            faults.pop("secret", None)
        certificate = endpoint.client_certificate
        if certificate is not None and certificate.pem.startswith(PREFIX):
            faults.pop("client_certificate", None)
        if any(value.startswith(PREFIX) for value in endpoint.headers.values()):
            faults.pop("headers", None)
        if faults:
            field, why = next(iter(faults.items()))
            at_fault.append(f"{ids.show('endpoint', endpoint.id)}: {shown_as(field)} is not valid ({why})")
    if at_fault:
        more = f"; and {len(at_fault) - NAMED:,} more" if len(at_fault) > NAMED else ""
        yield bad(
            "endpoints",
            f"{'; '.join(at_fault[:NAMED])}{more}",
            "their deliveries fail: correct them with `hookline endpoints update`, or delete them",
        )
