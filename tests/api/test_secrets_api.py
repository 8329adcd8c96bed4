"""Secrets are read and rotated over HTTP."""

import math

import pytest

from hookline.rfc3339 import read

DAY = 86_400


def rotate(service, endpoint, **fields):
    return service.call("POST", f"/v1/endpoints/{endpoint['id']}/secret/rotate", fields or None)


def secret_of(service, endpoint):
    answer = service.call("GET", f"/v1/endpoints/{endpoint['id']}/secret")
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def test_a_secret_is_shown_again_only_where_it_is_asked_for(service):
    endpoint = service.create()
    shown = {"secret": endpoint["secret"], "signature": "v1", "public_key": None, "old": None}
    assert secret_of(service, endpoint) == shown
    assert "secret" not in service.call("GET", f"/v1/endpoints/{endpoint['id']}").json()


def test_a_rotation_says_which_secrets_sign_and_until_when(service):
    endpoint = service.create()
    answer = rotate(service, endpoint)
    rotated = answer.json()
    assert answer.status_code == 200, answer.text
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != endpoint["secret"]
    changed_at = service.call("GET", f"/v1/endpoints/{endpoint['id']}").json()["updated_at"]
    # The end of the overlap is compared with the seconds of a request's timestamp: a whole one, not before its time.
    assert read(rotated["old"].pop("valid_until")) == math.ceil(read(changed_at) + DAY)
    assert rotated["old"] == {"secret": endpoint["secret"], "signature": "v1", "public_key": None}
    assert secret_of(service, endpoint)["secret"] == rotated["secret"]


def test_a_second_rotation_has_to_wait_unless_it_ends_the_overlap(service):
    endpoint = service.create()
    first = rotate(service, endpoint, overlap_s=3_600).json()
    refused = rotate(service, endpoint, overlap_s=60)
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
    assert first["old"]["valid_until"] in refused.json()["detail"]
    assert secret_of(service, endpoint) == first
    assert rotate(service, endpoint, overlap_s=0).json()["old"] is None


def test_a_secret_of_ones_own_may_be_brought_along(service):
    endpoint = service.create(signing="classic")
    assert rotate(service, endpoint, secret="one-that-is-in-use-already").json()["secret"] == (
        "one-that-is-in-use-already"
    )


def test_an_ed25519_key_comes_with_its_public_half(service):
    endpoint = service.create(signature="v1a")
    assert endpoint["signature"] == "v1a"
    assert secret_of(service, endpoint)["public_key"].startswith("whpk_")
    shared = service.create()
    rotated = rotate(service, shared, signature="v1a").json()
    assert (rotated["signature"], rotated["old"]["signature"]) == ("v1a", "v1")
    assert service.call("GET", f"/v1/endpoints/{shared['id']}").json()["signature"] == "v1a"


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"overlap_s": -1}, "invalid_field", "/overlap_s"),
        ({"overlap_s": 2_592_001}, "invalid_field", "/overlap_s"),
        ({"overlap_s": 1.5}, "invalid_field", "/overlap_s"),
        ({"overlap": 60}, "unknown_field", "/overlap"),
        ({"secret": "whsec_short"}, "invalid_field", "/secret"),
        ({"secret": ["x"]}, "invalid_field", "/secret"),
        ({"signature": "rsa"}, "invalid_field", "/signature"),
    ],
)
def test_what_will_not_do_is_refused_and_never_repeats_the_secret(service, body, code, pointer):
    endpoint = service.create()
    answer = service.call("POST", f"/v1/endpoints/{endpoint['id']}/secret/rotate", body)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert "whsec_short" not in answer.text
    assert secret_of(service, endpoint)["secret"] == endpoint["secret"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"signature": "v1a", "signing": "classic"}, "/signature"),
        ({"signature": "v1a", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "/signature"),
        ({"secret": "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "/secret"),
        ({"secret": "whsk_" + "A" * 86 + "=="}, "/secret"),
        ({"secret": "whsk_" + "A" * 43 + "=", "signing": "classic"}, "/secret"),
        ({"signature": "v3"}, "/signature"),
    ],
)
def test_keys_that_will_not_do_are_refused(service, fields, pointer):
    body = {"url": "https://hooks.example.com/", "events": ["*"], **fields}
    answer = service.call("POST", "/v1/endpoints", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_the_kind_of_signature_is_not_changed_by_a_patch(service):
    endpoint = service.create(signature="v1a")
    path = f"/v1/endpoints/{endpoint['id']}"
    assert service.call("PATCH", path, {"signature": "v1a"}).status_code == 200
    refused = service.call("PATCH", path, {"signature": "v1"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/signature")
    refused = service.call("PATCH", path, {"signing": "classic"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/signing")


@pytest.mark.parametrize(("method", "path"), [("GET", "secret"), ("POST", "secret/rotate"), ("POST", "test")])
def test_an_endpoint_that_is_not_there_is_not_found(service, method, path):
    answer = service.call(method, f"/v1/endpoints/ep_{'0' * 26}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
