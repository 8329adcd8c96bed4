"""Checks a client certificate, with which requests prove over TLS who sends them.

It is one PEM text: the certificate, those that lead to its authority, and the private key. Everything that the sender
will do with it is tried here.
"""

import os
import re
import ssl
import tempfile
from typing import Any, NoReturn

from hookline import rfc3339
from hookline.errors import Invalid
from hookline.model import CertificateFacts, ClientCertificate

MAX_BYTES = 32_768
POINTER = "/client_certificate"
_MOST_SHOWN = 300  # characters of a name in a certificate
_MANY = 10  # certificates in a chain; none is that long

_BLOCK = re.compile(r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----\s.*?-----END (?P=label)-----", re.S)
_KEYS = frozenset({"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"})
_WITHOUT_USE = frozenset({"EC PARAMETERS"})  # `openssl ecparam` writes it before the key


def checked(value: Any) -> ClientCertificate:
    """A client certificate that can be used; `Invalid` says what is wrong with it, and repeats nothing of it."""
    if not isinstance(value, str):
        _refuse("client_certificate is a text in PEM form: certificates and their private key.")
    if len(value.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        _refuse(f"A client certificate may have at most {MAX_BYTES:,} bytes.")
    certificates, key = _blocks(value)
    facts = _facts(certificates, key)
    pem = "\n".join([*certificates, key, ""])
    try:
        load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pem)
    except (ssl.SSLError, ValueError) as error:
        why = getattr(error, "reason", None) or type(error).__name__
        _refuse(f"The client certificate cannot be used for TLS ({why}).")
    return ClientCertificate(pem=pem, facts=facts)


def load(context: ssl.SSLContext, pem: str) -> None:
    """Have a context show this certificate. Python reads it from a file only: one in memory, where there are such."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
        if os.path.exists(path):
            with open(descriptor, "w") as file:
                file.write(pem)
                file.flush()
                context.load_cert_chain(path, password=_no_password)
            return
        os.close(descriptor)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as named:
        named.write(pem)
        named.flush()
        context.load_cert_chain(named.name, password=_no_password)


def _blocks(text: str) -> tuple[list[str], str]:
    certificates, keys = [], []
    for block in _BLOCK.finditer(text):
        label, content = block["label"], "\n".join(line.strip() for line in block[0].splitlines())
        if label == "CERTIFICATE":
            certificates.append(content)
        elif label in _KEYS and "ENCRYPTED" not in content:
            keys.append(content)
        elif label.endswith("PRIVATE KEY"):
            _refuse(
                "The private key of the client certificate is encrypted, or of an unknown kind: give it plain."
            )
        elif label not in _WITHOUT_USE:
            _refuse("A client certificate consists of certificates and one private key in PEM form.")
    if not certificates or len(certificates) > _MANY:
        _refuse(
            "A client certificate begins with '-----BEGIN CERTIFICATE-----', the certificate itself first."
        )
    if len(keys) != 1:
        _refuse("A client certificate needs its private key, and only that one, in the same text.")
    return certificates, keys[0]


def _facts(certificates: list[str], key: str) -> CertificateFacts:
    # Imported here, not above: only endpoints with a certificate pay for it.
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization

    try:
        chain = [x509.load_pem_x509_certificate(each.encode("ascii")) for each in certificates]
        own = chain[0]
        shown = CertificateFacts(
            subject=_shown(own.subject.rfc4514_string()),
            issuer=_shown(own.issuer.rfc4514_string()),
            serial=f"{own.serial_number:x}",
            not_before=rfc3339.show(own.not_valid_before_utc.timestamp()),
            not_after=rfc3339.show(own.not_valid_after_utc.timestamp()),
            fingerprint="sha256:" + own.fingerprint(hashes.SHA256()).hex(),
        )
        public = _bytes_of(own.public_key())
    except (ValueError, UnsupportedAlgorithm, UnicodeError):
        _refuse("A certificate in the client certificate cannot be read.")
    try:
        private = serialization.load_pem_private_key(key.encode("ascii"), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm, UnicodeError):
        _refuse("The private key of the client certificate cannot be read.")
    if _bytes_of(private.public_key()) != public:
        _refuse("The private key does not belong to the client certificate, which has to be the first one.")
    return shown


def _bytes_of(public: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    found: bytes = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found


def _shown(name: str) -> str:
    """A name, as it may be shown: whoever made the certificate chose it."""
    plain = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name)
    return plain if len(plain) <= _MOST_SHOWN else plain[: _MOST_SHOWN - 1] + "…"


def _no_password() -> str:
    raise ValueError("the private key is encrypted")  # or OpenSSL would ask the terminal


def _refuse(detail: str) -> NoReturn:
    raise Invalid(detail, pointer=POINTER)
