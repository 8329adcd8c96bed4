"""Checks that every path and every relative link in the documents exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/hookline"
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*/README.md"),
    ]
)

# `tests/sim`, `python benchmarks/idle.py`; also a module named from the package on, such as `rules/slots.py`.
FROM_ROOT = re.compile(r"(?<![\w/.<>-])(?:src|tests|benchmarks|examples)/[\w./-]*\w")
FROM_PACKAGE = re.compile(
    r"(?<![\w/.<>-])(?:admin|api|cli|client|crypto|pipeline|receiver|reports|rules|store|testing|validate)/[\w/]*\.py\b"
)
LINK = re.compile(r"\]\((?!https?://)([^)\s]+)\)")


def named_paths(text: str) -> list[Path]:
    """The files and folders that a text names."""
    from_root = [ROOT / each for each in FROM_ROOT.findall(text)]
    return from_root + [PACKAGE / each for each in FROM_PACKAGE.findall(text)]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def is_good(link: str, page: Path) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_path_that_a_page_names_exists(page):
    assert [name_of(path) for path in named_paths(page.read_text()) if not path.exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    assert [link for link in LINK.findall(page.read_text()) if not is_good(link, page)] == []


def test_a_path_that_does_not_exist_is_found():
    text = (
        "See `src/hookline/gone.py`, [tests](tests/nowhere/), `rules/gone.py` and `tests/test_docs_paths.py`."
    )
    missing = [name_of(path) for path in named_paths(text) if not path.exists()]
    assert missing == ["src/hookline/gone.py", "tests/nowhere", "src/hookline/rules/gone.py"]


def test_a_link_that_leads_nowhere_is_found():
    links = ["docs/api.md#lists", "docs/api.md#gone", "docs/gone.md", "#status", "#gone"]
    assert [link for link in links if not is_good(link, ROOT / "README.md")] == [
        "docs/api.md#gone",
        "docs/gone.md",
        "#gone",
    ]
