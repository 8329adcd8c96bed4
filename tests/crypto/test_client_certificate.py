"""A client certificate that is accepted can be used, and one that is refused is not repeated."""

import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from factories import an_endpoint
from hookline.crypto.client_certificate import MAX_BYTES, checked, load
from hookline.crypto.sealing import PREFIX, Sealer
from hookline.errors import Invalid, SealBroken
from hookline.model import ClientCertificate

FROM, UNTIL = (datetime.datetime(year, 1, 2, tzinfo=datetime.UTC) for year in (2020, 2040))
KINDS = {
    "EC": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(65_537, 2_048),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


def key_text(key: object, *, form: str = "PKCS8", password: bytes | None = None) -> str:
    encryption = (
        serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    )
    text = key.private_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM, getattr(serialization.PrivateFormat, form), encryption
    )
    return str(text.decode())


def certificate_text(key: object, *, name: str = "client", digest: object = None) -> str:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
        .public_key(key.public_key())  # type: ignore[attr-defined]
        .serial_number(0x1F)
        .not_valid_before(FROM)
        .not_valid_after(UNTIL)
        .sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())  # type: ignore[arg-type]
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


KEY = KINDS["EC"]()
PLAIN = key_text(KEY)
CERTIFICATE = certificate_text(KEY)
OTHER = KINDS["EC"]()


def refusal(value: object) -> str:
    with pytest.raises(Invalid) as refused:
        checked(value)
    assert (refused.value.pointer, refused.value.code) == ("/client_certificate", "invalid_field")
    for line in str(value).splitlines():
        assert len(line) < 40 or line not in refused.value.detail
    return refused.value.detail


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_with_its_key_is_accepted_and_its_facts_are_told(kind):
    key = KINDS[kind]()
    facts = checked(certificate_text(key) + key_text(key)).facts
    assert (facts.subject, facts.issuer, facts.serial) == ("CN=client", "CN=authority", "1f")
    assert (facts.not_before, facts.not_after) == (
        "2020-01-02T00:00:00.000000Z",
        "2040-01-02T00:00:00.000000Z",
    )
    assert facts.fingerprint.startswith("sha256:")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + CERTIFICATE,
        CERTIFICATE + certificate_text(OTHER) + PLAIN,
        (CERTIFICATE + PLAIN).replace("\n", "\r\n"),
        "Bag Attributes: für uns\n" + CERTIFICATE + "\n\n" + key_text(KEY, form="TraditionalOpenSSL"),
        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
        + CERTIFICATE
        + PLAIN,
    ],
)
def test_the_order_of_key_and_chain_line_ends_and_what_stands_around_do_not_matter(text):
    certificate = checked(text)
    assert certificate.facts == checked(CERTIFICATE + PLAIN).facts
    assert certificate.pem.startswith("-----BEGIN CERTIFICATE-----\n")
    assert checked(certificate.pem) == certificate
    load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate.pem)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (7, "is a text"),
        ({"pem": "x"}, "is a text"),
        ("", "begins with"),
        ("x", "begins with"),
        (PLAIN, "begins with"),
        (CERTIFICATE, "needs its private key"),
        (CERTIFICATE + PLAIN + key_text(OTHER), "only that one"),
        (CERTIFICATE + key_text(OTHER), "does not belong"),
        (certificate_text(OTHER) + CERTIFICATE + PLAIN, "does not belong"),
        (CERTIFICATE + key_text(KEY, password=b"sesame"), "encrypted"),
        (CERTIFICATE + key_text(KEY, form="TraditionalOpenSSL", password=b"sesame"), "encrypted"),
        (CERTIFICATE.replace("MII", "AAA", 1) + PLAIN, "cannot be read"),
        (
            CERTIFICATE + PLAIN.replace("MIG", "AAA", 1),
            "private key of the client certificate cannot be read",
        ),
        (CERTIFICATE + "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n" + PLAIN, "consists of"),
        (CERTIFICATE * 11 + PLAIN, "begins with"),
        (CERTIFICATE + PLAIN + "x" * MAX_BYTES, "at most 32,768 bytes"),
        ("\ud800" + CERTIFICATE, "needs its private key"),
        (PREFIX + "AAAA", "begins with"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_repeated(value, said):
    assert said in refusal(value)


def test_a_key_that_openssl_finds_too_weak_is_refused():
    weak = rsa.generate_private_key(65_537, 1_024)  # noqa: S505 - too weak on purpose
    assert "cannot be used for TLS" in refusal(certificate_text(weak) + key_text(weak))


def test_a_name_in_a_certificate_is_shown_without_tricks_and_never_long():
    shown = checked(certificate_text(KEY, name="a\u202eb\x1b[31m") + PLAIN).facts.subject
    assert shown.isprintable()
    assert shown.startswith("CN=a\N{REPLACEMENT CHARACTER}b")


def test_neither_the_certificate_nor_its_endpoint_shows_the_key():
    certificate = checked(CERTIFICATE + PLAIN)
    assert "PRIVATE" not in repr(certificate) + repr(an_endpoint(client_certificate=certificate))


def an_endpoint_with(certificate: ClientCertificate):
    return an_endpoint(client_certificate=certificate)


def test_it_is_sealed_and_opened_with_its_endpoint_and_worth_nothing_in_another():
    sealer, certificate = Sealer(["k" * 32]), checked(CERTIFICATE + PLAIN)
    endpoint = an_endpoint_with(certificate)
    stored = sealer.sealed(endpoint)
    assert stored.client_certificate.pem.startswith(PREFIX)
    assert stored.client_certificate.facts == certificate.facts
    assert sealer.sealed(stored) == stored
    assert sealer.open_certificate(stored).client_certificate == certificate
    assert sealer.plain(stored) == endpoint
    with pytest.raises(SealBroken):
        sealer.open_certificate(an_endpoint_with(stored.client_certificate))
    with pytest.raises(SealBroken):
        sealer.open(stored.client_certificate.pem, of=endpoint.id)


def test_it_is_sealed_anew_when_keys_are_rotated():
    certificate = checked(CERTIFICATE + PLAIN)
    stored = Sealer(["k" * 32]).sealed(an_endpoint_with(certificate))
    renewed = Sealer(["n" * 32, "k" * 32]).sealed(stored)
    assert Sealer(["n" * 32]).open_certificate(renewed).client_certificate == certificate
    with pytest.raises(SealBroken):
        Sealer(["k" * 32]).open_certificate(renewed)
