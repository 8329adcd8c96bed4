"""Every page while it shows what strangers wrote: it stays text. How pages look is for test_every_page.py."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import NewPage
from tests.browser.guard import Guard
from tests.browser.judging import foreign
from tests.browser.samples import NOT_FOUND, REFUSED, SAMPLES
from tests.browser.scenes import Scene
from tests.corpus.shown import SHOWN


def test_no_page_runs_what_a_stranger_wrote(new_page: NewPage, guard: Guard, scene: Scene) -> None:
    """One look at each page; the guard sees broken policies, errors and requests to other servers."""
    page = new_page(scene.api.url)
    dialogs = listened_to(page)
    for paths in (*SAMPLES.values(), NOT_FOUND):
        for name, path in paths.items():
            answer = page.goto(path.format_map(scene.ids))
            assert answer is not None
            assert answer.status == (404 if name in NOT_FOUND else REFUSED.get(name, 200)), path
            if answer.status >= 400:
                refused = guard.take()  # the browser itself complains of such an answer, once
                assert all("Failed to load resource" in trouble for trouble in refused), refused
            assert foreign(page) == [], path
            guard.check()
    assert dialogs == []


@pytest.mark.parametrize("row", sorted(SHOWN))
def test_payloads_of_the_corpus_are_text(new_page: NewPage, scene: Scene, row: str) -> None:
    """Rows P31 to P33 of tests/corpus/bad-input.jsonl: byte for byte, and no script runs."""
    page = new_page(scene.api.url)
    dialogs = listened_to(page)
    for delivery, payload in zip(scene.shown[row], SHOWN[row], strict=True):
        event = scene.api.get(f"/v1/deliveries/{delivery}")["event_id"]
        for path in (f"/deliveries/{delivery}", f"/events/{event}"):
            page.goto(f"{path}?view=raw")
            shown = page.locator("#payload pre.code").first
            assert shown.evaluate("each => each.textContent") == payload.decode()
            assert shown.locator("script, img, textarea").count() == 0
            page.goto(path)
            written = page.locator("#payload pre.code").first.evaluate("each => each.textContent")
            assert "".join(written.split()) == "".join(payload.decode().split())
            assert page.evaluate("({}).x") is None  # no prototype is polluted
    assert dialogs == []


def listened_to(page: Page) -> list[str]:
    """What the page's dialogs say, from now on."""
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    return said
