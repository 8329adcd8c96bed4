"""Names an address for every page there is, several where a page has several faces."""

from tests.browser.scenes import HOSTILE_TYPE

UNKNOWN = "ep_01k7aaaaaaaaaaaaaaaaaaaaaa"
ENDPOINT = "/endpoints/{endpoint_id}"
DELIVERY = "/deliveries/{delivery_id}"
# By its route, what a page is asked for: the name of its picture, and the path with names of the scene's ids.
SAMPLES: dict[str, dict[str, str]] = {
    "/": {"overview": "/"},
    "/keyboard": {"keyboard": "/keyboard"},
    "/endpoints": {
        "endpoints": "/endpoints",
        "endpoints-filtered": "/endpoints?state=failing",
        "endpoints-none": "/endpoints?q=nothing-like-this",
    },
    "/endpoints/new": {"endpoint-new": "/endpoints/new"},
    f"{ENDPOINT}/settings": {
        "settings-of-one": "/endpoints/{full}/settings",
        "settings-plain": "/endpoints/{fine}/settings",
        "settings-hostile": "/endpoints/{hostile}/settings",
        "settings-retry": "/endpoints/{full}/settings?change=retry",
        "settings-headers": "/endpoints/{hostile}/settings?change=headers",
    },
    f"{ENDPOINT}/secret/show": {"secret-show": "/endpoints/{fine}/secret/show"},
    f"{ENDPOINT}/secret/rotate": {"secret-rotate": "/endpoints/{fine}/secret/rotate"},
    f"{ENDPOINT}/delete": {"endpoint-delete": "/endpoints/{down}/delete"},
    ENDPOINT: {
        "endpoint-fine": "/endpoints/{fine}",
        "endpoint-down": "/endpoints/{down}",
        "endpoint-refused": "/endpoints/{refused}",
        "endpoint-invalid": "/endpoints/{invalid}",
        "endpoint-throttled": "/endpoints/{throttled}",
        "endpoint-flaky": "/endpoints/{flaky}",
        "endpoint-gone": "/endpoints/{gone}",
        "endpoint-slow": "/endpoints/{slow}",
        "endpoint-paused": "/endpoints/{paused}",
        "endpoint-off": "/endpoints/{off}",
        "endpoint-full": "/endpoints/{full}",
        "endpoint-hostile": "/endpoints/{hostile}",
    },
    f"{ENDPOINT}/recover": {"endpoint-recover": "/endpoints/{down}/recover"},
    f"{ENDPOINT}/test": {"endpoint-test": "/endpoints/{fine}/test"},
    f"{ENDPOINT}/disable": {"endpoint-disable": "/endpoints/{fine}/disable"},
    f"{ENDPOINT}/circuit": {"endpoint-circuit": "/endpoints/{down}/circuit"},
    "/deliveries": {
        "deliveries": "/deliveries",
        "deliveries-dead": "/deliveries?state=dead",
        "deliveries-of-one": "/deliveries?endpoint_id={down}&event_type=order.paid&created=custom",
        "deliveries-none": "/deliveries?event_type=nothing.like.this",
        "deliveries-refused": "/deliveries?event_type=%3Cscript%3E",
    },
    DELIVERY: {
        "delivery": "/deliveries/{delivery}",
        "delivery-pending": "/deliveries/{pending delivery}",
        "delivery-dead": "/deliveries/{dead delivery}",
        "delivery-hostile": "/deliveries/{hostile delivery}",
        "delivery-hostile-raw": "/deliveries/{hostile delivery}?view=raw",
    },
    f"{DELIVERY}/retry": {"delivery-retry": "/deliveries/{pending delivery}/retry"},
    f"{DELIVERY}/cancel": {"delivery-cancel": "/deliveries/{pending delivery}/cancel"},
    f"{DELIVERY}/replay": {"delivery-replay": "/deliveries/{delivery}/replay"},
    f"{DELIVERY}/discard": {"delivery-discard": "/deliveries/{dead delivery}/discard"},
    "/dead-letters": {
        "dead-letters": "/dead-letters",
        "dead-letters-list": "/dead-letters?view=list",
        "dead-letters-of-one": "/dead-letters?endpoint_id={refused}",
        "dead-letters-hostile": "/dead-letters?endpoint_id={hostile}",
        "dead-letters-none": "/dead-letters?event_type=nothing.like.this",
    },
    "/dead-letters/replay": {"bulk-replay": "/dead-letters/replay?endpoint_id={refused}"},
    "/dead-letters/discard": {"bulk-discard": "/dead-letters/discard?account=birch"},
    "/replays": {"replays": "/replays"},
    "/discards": {"discards": "/discards"},
    "/replays/{replay_id}": {"replay-job": "/replays/{replays}"},
    "/discards/{discard_id}": {"discard-job": "/discards/{discards}"},
    "/events/new": {"event-new": "/events/new"},
    "/events": {"events": "/events", "events-none": "/events?type=nothing.like.this"},
    "/events/{event_id}": {
        "event": "/events/{event}",
        "event-hostile": "/events/{hostile event}",
        "event-large": "/events/{large event}",
    },
    "/events/{event_id}/replay": {"event-replay": "/events/{event}/replay"},
    "/outbox": {"outbox": "/outbox", "outbox-none": "/outbox?code=no_such"},
    "/outbox/{row_id}": {"outbox-row": "/outbox/{refused row}", "outbox-hostile": "/outbox/{hostile row}"},
    "/outbox/{row_id}/discard": {"outbox-discard": "/outbox/{hostile row}/discard"},
    "/event-types": {"event-types": "/event-types"},
    "/event-types/-new": {"event-type-new": "/event-types/-new"},
    "/event-types/{name}": {"event-type": f"/event-types/{HOSTILE_TYPE}"},
    "/event-types/{name}/change": {"event-type-change": f"/event-types/{HOSTILE_TYPE}/change"},
    "/event-types/{name}/delete": {"event-type-delete": f"/event-types/{HOSTILE_TYPE}/delete"},
    "/accounts": {"accounts": "/accounts"},
    "/accounts/{account}": {"account": "/accounts/acme"},
    "/accounts/{account}/notify": {"account-notify": "/accounts/acme/notify"},
    "/keys": {"keys": "/keys"},
    "/keys/new": {"key-new": "/keys/new"},
    "/keys/{key_id}/revoke": {"key-revoke": "/keys/{hostile key}/revoke"},
    "/workers": {"workers": "/workers"},
    "/audit": {
        "audit": "/audit",
        "audit-filtered": "/audit?action=key.created",
        "audit-refused": "/audit?actor=x",
    },
    "/settings": {"settings": "/settings"},
    "/find": {
        "find-many": "/find?q=127.0.0.1",
        "find-none": "/find?q=%22%3E%3Cscript%3Ewindow.__xss=1%3C/script%3E",
    },
}
REFUSED = {"deliveries-refused": 422, "audit-refused": 422, "find-none": 404}
DOWNLOADS = {
    "/deliveries/{delivery_id}/payload",
    "/events/{event_id}/payload",
    "/outbox/{row_id}/payload",
}  # tests/dashboard has them
EMPTY = {
    "overview": "/",
    "endpoints": "/endpoints",
    "deliveries": "/deliveries",
    "dead-letters": "/dead-letters",
    "events": "/events",
    "event-types": "/event-types",
    "replays": "/replays",
}
NOT_FOUND = {
    "not-found": f"/endpoints/{UNKNOWN}",
    "not-found-delivery": "/deliveries/dlv_01k7aaaaaaaaaaaaaaaaaaaaaa",
    "not-found-event": "/events/evt_01k7aaaaaaaaaaaaaaaaaaaaaa",
    "not-found-page": f"/endpoints/{UNKNOWN}/nothing",
}
