"""Makes the certificates that the TLS tests need."""

import datetime
import ipaddress
import ssl
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = datetime.datetime.now(datetime.UTC)
_DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates for the tests' servers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test Authority")])
        root = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOW - 10 * _DAY)
            .not_valid_after(_NOW + 10 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._root = folder / "root.pem"
        self._root.write_bytes(root.public_bytes(serialization.Encoding.PEM))

    @property
    def root(self) -> Path:
        """The file with its own certificate."""
        return self._root

    def client(self) -> ssl.SSLContext:
        """A default context that trusts only this authority."""
        return ssl.create_default_context(cafile=str(self._root))

    def requiring(self, *names: str) -> ssl.SSLContext:
        """A server's context that accepts only clients with a certificate of this authority."""
        context = self.server(*names)
        context.load_verify_locations(self._root)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def identity(self, name: str) -> str:
        """A client's certificate and private key."""
        self.server(name)
        return (self._folder / f"{name}-False-False.pem").read_text()

    def server(self, *names: str, expired: bool = False, self_signed: bool = False) -> ssl.SSLContext:
        """A server's context with a certificate for these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if self_signed else self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_NOW - 9 * _DAY)
            .not_valid_after(_NOW - _DAY if expired else _NOW + _DAY)
            .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(key if self_signed else self._key, hashes.SHA256())
        )
        path = self._folder / f"{names[0]}-{expired}-{self_signed}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def old_tls(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same, for TLS 1.0 alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    return context


def other_ciphers(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same, without a cipher that hookline would take."""
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AES128-SHA")  # for RSA keys, and the certificate's is not one
    return context


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
