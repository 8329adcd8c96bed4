"""Finds the endpoint that a person means: by its id, the beginning of that, or a part of its URL."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from hookline.api.inside import CallersApi
from hookline.dashboard.look import words
from hookline.errors import Invalid, NotFound

_PAGES = 10  # of 200 endpoints: a search must not read all of a large installation
_OFFERED = 8
_COMPARED = 200  # URLs that are compared with a misspelt one; it blocks all others meanwhile
_COMPARED_TEXT = 100  # characters of each: the time grows with their square


class Found(NamedTuple):
    """What was found."""

    id: str = ""  # of the one that is meant; empty: none, or more than one
    url: str = ""
    offered: Sequence[Any] = ()  # those that match, or the nearest one
    matches: int = 0
    is_cut: bool = False  # there are more endpoints than were looked at


async def find_endpoint(api: CallersApi, text: str, *, account: str = "") -> Found:
    """The endpoint that the text means; raises `Invalid` for what looks like an id and is none."""
    if text.startswith("ep_"):
        id = text
        if len(text) < 29:
            try:
                found = await api.get("/v1/ids/{prefix}", prefix=text)
                id = found.data[0] if len(found.data) == 1 else text
            except (NotFound, Invalid):
                id = text
        return Found(id, await endpoint_url(api, id))
    wanted = text.lower().removeprefix("https://").rstrip("/")
    seen, cursor, is_cut = [], "", False
    for _ in range(_PAGES):
        page = await api.get("/v1/endpoints", {"limit": "200", "account": account, "cursor": cursor})
        seen += page.data
        cursor = page.next_cursor or ""
        if not cursor:
            break
    else:
        is_cut = True
    same = [each for each in seen if _plain(each.url) == wanted]
    matching = same if len(same) == 1 else [each for each in seen if wanted in _plain(each.url)]
    if len(matching) == 1:
        return Found(matching[0].id, matching[0].url, is_cut=is_cut)
    if matching:
        return Found(offered=matching[:_OFFERED], matches=len(matching), is_cut=is_cut)
    slip = wanted[:_COMPARED_TEXT]
    by_url = {_plain(each.url)[:_COMPARED_TEXT]: each for each in seen[:_COMPARED]}
    nearest = get_close_matches(slip, by_url, n=1, cutoff=0.5)
    by_host = {words.host(each.url).lower()[:_COMPARED_TEXT]: each for each in seen[:_COMPARED]}
    nearest_host = get_close_matches(slip, by_host, n=1, cutoff=0.6)
    near = by_url[nearest[0]] if nearest else by_host[nearest_host[0]] if nearest_host else None
    return Found(offered=[] if near is None else [near], is_cut=is_cut)


async def endpoint_url(api: CallersApi, id: str) -> str:
    """The URL of an endpoint; empty if it is deleted, or not seen by who asks."""
    try:
        return str((await api.get("/v1/endpoints/{endpoint_id}", endpoint_id=id)).url)
    except NotFound:
        return ""


async def endpoint_urls(api: CallersApi, deliveries: Sequence[Any]) -> dict[str, str]:
    """The URLs of the endpoints that these deliveries go to."""
    ids = {each.endpoint_id for each in deliveries}
    return {id: await endpoint_url(api, id) for id in ids}


def _plain(url: str) -> str:
    return url.lower().removeprefix("https://").rstrip("/")
