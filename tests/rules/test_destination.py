"""Every valid URL has one spelling, and all others are plainly refused."""

import json
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookline.errors import Invalid
from hookline.rules.destination import DENIED_PORTS, SPECIAL_SUFFIXES, canonical

CORPUS = Path(__file__).parent.parent / "corpus" / "bad-input.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text().splitlines()]
EXACT = [row for row in ROWS if row["area"] == "url" and int(row["id"][1:]) <= 83]
ACCEPTED = {
    "U71": "http://xn--bcher-kva.example/",
    "U77": "http://hooks.example.com/",
    "U79": "https://hooks.example.com/A?b=%2F",
}


def refusal(url: str, **options: object) -> Invalid:
    with pytest.raises(Invalid) as refused:
        canonical(url, **{"private_allowed": False, **options})
    return refused.value


@pytest.mark.parametrize("row", EXACT, ids=[row["id"] for row in EXACT])
def test_the_corpus_of_bad_urls(row):
    if row["id"] in ACCEPTED:
        assert row["expect"].startswith("accept")
        assert canonical(row["input"], private_allowed=False) == ACCEPTED[row["id"]]
        return
    refused = refusal(row["input"])
    assert row["expect"].endswith(f"422 code={refused.code}")
    assert refused.pointer == "/url"
    assert len(refused.detail) < 400
    assert refused.detail.isprintable()


def test_the_corpus_has_every_row_that_is_an_exact_url():
    assert [row["id"] for row in EXACT] == [f"U{number:02}" for number in range(1, 84)]


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("https://hooks.example.com", "https://hooks.example.com/"),
        ("https://hooks.example.com?a=1", "https://hooks.example.com/?a=1"),
        ("https://hooks.example.com/?", "https://hooks.example.com/?"),
        ("https://hooks.example.com:80/", "https://hooks.example.com:80/"),
        ("http://hooks.example.com:443/", "http://hooks.example.com:443/"),
        ("hTTp://hooks.example.com:8443/", "http://hooks.example.com:8443/"),
        ("https://hooks.example.com.:8443/a", "https://hooks.example.com:8443/a"),
        ("https://a.example/../%zz//;'()*!$&[]~?x=:@/?", "https://a.example/../%zz//;'()*!$&[]~?x=:@/?"),
        ("https://r3---sn-a.example/", "https://r3---sn-a.example/"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"),
        ("https://Bücher.EXAMPLE/", "https://xn--bcher-kva.example/"),
        ("https://8.8.8.8:8080/x", "https://8.8.8.8:8080/x"),
        ("https://[2600:1234:0:0::00AB]/", "https://[2600:1234::ab]/"),
        ("https://[2600:1234::ab]:443/", "https://[2600:1234::ab]/"),
        ("https://1.2.3.4.example/", "https://1.2.3.4.example/"),
        ("https://0xa.example/", "https://0xa.example/"),
        ("https://example.notlocal/", "https://example.notlocal/"),
    ],
)
def test_what_passes_has_one_spelling(url, spelled):
    assert canonical(url, private_allowed=False) == spelled
    assert canonical(spelled, private_allowed=False) == spelled


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "url_invalid"),
        ("https://", "url_invalid"),
        ("https://:443/", "url_invalid"),
        ("https://a.example:/", "url_invalid"),
        ("https://a.example:08443/", "url_invalid"),
        ("https://a.example:8443\n", "url_invalid"),
        ("https://a.example/\x7f", "url_invalid"),
        ("https://a.example/ü", "url_invalid"),
        ("https://a.example/#", "url_invalid"),
        ("https://a.example?a@b", None),
        ("https://a_b.example/", "url_invalid"),
        ("https://-a.example/", "url_invalid"),
        ("https://a-.example/", "url_invalid"),
        (f"https://{'a' * 63}.example/", None),
        (f"https://{'a' * 64}.example/", "url_invalid"),
        ("https://.example/", "url_invalid"),
        ("https://./", "url_invalid"),
        ("https://a..example/", "url_invalid"),
        ("https://a.0x/", "url_invalid"),
        ("https://a.0X1F/", "url_invalid"),
        ("https://a.08/", "url_invalid"),
        ("https://a.1./", "url_invalid"),
        ("https://\u212aelvin.example/", "url_invalid"),  # the Kelvin sign, which lower() makes an ASCII k
        ("https://BÜCHER.example/", "url_invalid"),
        ("https://xn--localhost-.example/", "url_invalid"),
        ("https://xn--.example/", "url_invalid"),
        ("https://\ud800.example/", "url_invalid"),
        ("https://[2600:1234::1/", "url_invalid"),
        ("https://[2600:1234::1]x/", "url_invalid"),
        ("https://[2600:1234::1]:/", "url_invalid"),
        ("https://[]/", "url_invalid"),
        ("https://2600:1234::1/", "url_invalid"),
        ("https://a.example:22/", "url_forbidden"),
        ("https://a.example:1023/", "url_forbidden"),
        ("https://a.example:1024/", None),
        ("https://8.8.8.8:6379/", "url_forbidden"),
        ("https://home.arpa/", "url_forbidden"),
        ("https://LOCALHOST/", "url_forbidden"),
        ("https://example/", "url_forbidden"),
    ],
)
def test_the_edges_of_the_grammar(url, code):
    if code is None:
        assert canonical(url, private_allowed=False).startswith("https://")
    else:
        assert refusal(url).code == code


@pytest.mark.parametrize("port", sorted(DENIED_PORTS))
def test_a_service_port_is_forbidden_also_where_private_networks_are_allowed(port):
    assert refusal(f"http://a.example:{port}/").code == "url_forbidden"
    assert refusal(f"http://localhost:{port}/", private_allowed=True).code == "url_forbidden"


@pytest.mark.parametrize("suffix", SPECIAL_SUFFIXES)
def test_private_names_pass_where_private_networks_are_allowed(suffix):
    url = f"http://a.{suffix}:8080/"
    assert refusal(url).code == "url_forbidden"
    assert canonical(url, private_allowed=True) == url


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("http://localhost:8080", "http://localhost:8080/"),
        ("http://localhost./", "http://localhost/"),
        ("http://receiver:9000/hook", "http://receiver:9000/hook"),
        ("http://127.0.0.1:9000/", "http://127.0.0.1:9000/"),
        ("http://[::1]:9000/", "http://[::1]:9000/"),
        ("http://[::ffff:7f00:1]/", "http://[::ffff:127.0.0.1]/"),
    ],
)
def test_where_private_networks_are_allowed_the_check_before_connecting_decides(url, spelled):
    assert canonical(url, private_allowed=True) == spelled


@pytest.mark.parametrize("url", ["http://0/", "http://127.1/", "http://0x7f000001/", "http://u@localhost/"])
def test_odd_spellings_are_invalid_also_where_private_networks_are_allowed(url):
    assert refusal(url, private_allowed=True).code == "url_invalid"


def test_a_literal_must_lie_in_an_allowed_network_where_these_are_known():
    loopback = [ip_network("127.0.0.0/8")]
    assert canonical("http://127.0.0.1/", private_allowed=True, allowed=loopback) == "http://127.0.0.1/"
    assert canonical("http://8.8.8.8/", private_allowed=True, allowed=loopback) == "http://8.8.8.8/"
    assert refusal("http://169.254.169.254/", private_allowed=True, allowed=loopback).code == "url_forbidden"


def test_allowed_networks_open_nothing_where_private_ones_are_not_allowed():
    loopback = [ip_network("127.0.0.0/8")]
    assert refusal("http://127.0.0.1/", allowed=loopback).code == "url_forbidden"


def test_every_forbidden_address_is_refused_with_the_same_words():
    urls = ["http://127.0.0.1/", "http://169.254.169.254/latest", "http://[::1]:8080/", "http://10.0.0.1/"]
    assert len({refusal(url).detail for url in urls}) == 1


def test_a_password_in_a_url_is_not_repeated():
    assert "hunter2" not in refusal("https://user:hunter2@a.example/").detail


def test_a_url_may_have_2048_bytes_and_no_more():
    longest = "https://a.example/".ljust(2048, "p")
    assert canonical(longest, private_allowed=False) == longest
    assert refusal(longest + "p").code == "url_invalid"


def test_the_length_is_that_of_the_canonical_spelling_too():
    assert refusal("https://bücher.example/".ljust(2046, "p")).code == "url_invalid"


@settings(deadline=None, max_examples=500)
@example("https://xn--0.example/")
@example("https://xn--99999999.example/")
@given(
    st.text()
    | st.text().map("http://{}".format)
    | st.text().map("http://{}.example/".format)
    | st.text(st.sampled_from("abxn-019.:[]@%é。")).map("http://{}/".format)
    | st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789-")).map("http://xn--{}.example/".format)
)
def test_any_text_is_either_refused_or_spelled_once_and_read_by_others_as_we_read_it(text):
    spelled = spelled_or_refused(text)
    if isinstance(spelled, Invalid):
        assert spelled.code in ("url_invalid", "url_forbidden")
        assert spelled.detail.isprintable()
        assert len(spelled.detail) < 500
        return
    assert spelled.isascii()
    assert canonical(spelled, private_allowed=True) == spelled
    parts = urlsplit(spelled)
    assert parts.username is None
    assert parts.hostname
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    assert spelled.startswith(f"{parts.scheme}://{host}{port}/")


def spelled_or_refused(text: str) -> str | Invalid:
    try:
        return canonical(text, private_allowed=True)
    except Invalid as refused:
        return refused


@pytest.mark.parametrize(
    "options",
    [
        {"private_allowed": False},
        {"private_allowed": True},  # development mode
        {"private_allowed": True, "allowed": [ip_network("0.0.0.0/0"), ip_network("::/0")]},
    ],
)
@pytest.mark.parametrize(
    "host", ["9.9.9.9", "[::ffff:9.9.9.9]", "[64:ff9b::9.9.9.9]", "[2002:909:909::]", "[2600:1234::1]"]
)
def test_a_denied_address_is_refused_whatever_is_allowed_and_with_the_words_of_any_other(host, options):
    denied = [ip_network("9.9.9.0/24"), ip_network("2600:1234::/32")]
    assert refusal(f"http://{host}/", **options, denied=denied).code == "url_forbidden"
    assert refusal(f"http://{host}/", **options, denied=denied).detail == refusal("http://10.0.0.1/").detail
    assert canonical("http://9.9.8.1/", **options, denied=denied) == "http://9.9.8.1/"
