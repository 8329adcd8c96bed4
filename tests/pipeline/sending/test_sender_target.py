"""A URL is split without being changed."""

import pytest

from hookline.errors import Invalid
from hookline.pipeline.sending import Target, parse
from hookline.pipeline.sending.target import head_of


@pytest.mark.parametrize(
    ("url", "tls", "host", "port", "path", "named"),
    [
        ("http://a.test", False, "a.test", 80, "/", "a.test"),
        ("https://a.test/", True, "a.test", 443, "/", "a.test"),
        ("https://a.test:443/", True, "a.test", 443, "/", "a.test"),
        ("http://a.test:443/x", False, "a.test", 443, "/x", "a.test:443"),
        ("http://a.test:8080/x/%2F?y=z&y", False, "a.test", 8080, "/x/%2F?y=z&y", "a.test:8080"),
        ("http://a.test?q", False, "a.test", 80, "/?q", "a.test"),
        ("http://a.test/?", False, "a.test", 80, "/?", "a.test"),
        ("http://a.test/x#fragment", False, "a.test", 80, "/x", "a.test"),
        ("http://[::1]/", False, "::1", 80, "/", "[::1]"),
        ("https://[2001:db8::1]:8443/", True, "2001:db8::1", 8443, "/", "[2001:db8::1]:8443"),
        ("http://user:word@a.test/@b", False, "a.test", 80, "/@b", "a.test"),
    ],
)
def test_a_canonical_url_is_split_into_what_a_request_needs(
    url: str, tls: bool, host: str, port: int, path: str, named: str
) -> None:
    target = parse(url)
    assert target == Target(url=url, tls=tls, host=host, port=port, path=path)
    assert head_of(target) == f"POST {path} HTTP/1.1\r\nHost: {named}\r\nContent-Length: ".encode()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.test",
        "ftp://a.test/",
        "http:///x",
        "http://:80/",
        "http://a.test:0/",
        "http://a.test:99999/",
        "http://a.test:x/",
    ],
)
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        parse(url)
