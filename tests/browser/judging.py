"""Judges a page: what holds for each of them, whatever it shows."""

from playwright.sync_api import Page, expect

from tests.browser.accessibility import violations
from tests.browser.conftest import Shots

WIDTHS = (1440, 768, 360)
TWICE = """() => {
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  return ids.filter((id, n) => ids.indexOf(id) !== n);
}"""
AXE = {(1440, "light"), (1440, "dark"), (360, "light")}


def judge(page: Page, name: str, shots: Shots | None) -> None:
    """What holds for every page, as it is now."""
    troubles = []
    h1 = page.locator("h1")
    expect(h1).to_have_count(1)
    sentence = " ".join(h1.inner_text().split())
    if sentence not in " ".join(page.title().split()):
        troubles.append(f"the tab says {page.title()!r}, the page {sentence!r}")
    troubles += foreign(page)
    if twice := page.evaluate(TWICE):
        troubles.append(f"ids that are there twice: {twice}")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        troubles += [f"{width}: {each}" for each in sideways(page)]
        for scheme in ("light", "dark") if shots is not None else ():
            page.emulate_media(color_scheme=scheme)
            if (width, scheme) in AXE:
                troubles += [f"{width} {scheme}: {each}" for each in violations(page)]
            shots(page, name)
    assert not troubles, "\n".join([page.url, *troubles])


def foreign(page: Page) -> list[str]:
    """What of the page is a stranger's and more than text."""
    troubles = []
    if page.evaluate("window.__xss") is not None:
        troubles.append("a foreign script ran")
    if page.locator("[href^='javascript:' i], [src^='javascript:' i], [action^='javascript:' i]").count():
        troubles.append("a link is a script")
    return troubles


def sideways(page: Page) -> list[str]:
    """What is wider than the window, if the page can be scrolled sideways."""
    found: list[str] = page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          const wide = [...document.body.querySelectorAll("*")].filter((each) => each.getBoundingClientRect().right > width + 1);
          return [`scrolls sideways to ${document.documentElement.scrollWidth}: ` +
            wide.slice(0, 5).map((each) => `${each.tagName} .${each.getAttribute("class")} ${each.textContent.trim().slice(0, 40)}`).join("; ")];
        }"""
    )
    return found
