"""Four commits in a row run everything, and one commit always the same."""

import subprocess

import pytest

from tests.run_parts import environment
from tests.shares import (
    CHOSEN,
    HANDED_DOWN,
    SHARES,
    dealt,
    number_of_the_commit,
    seed_of_the_commit,
    share_of_the_commit,
)


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    for name in (CHOSEN, HANDED_DOWN):
        monkeypatch.delenv(name, raising=False)


def git(folder, *arguments):
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init")
    commit(folder, "first")
    return folder


def commit(folder, text):
    (folder / "file").write_text(text)
    git(folder, "add", "file")
    git(folder, "commit", "-m", text)


def test_the_shares_together_are_everything_once():
    for count in range(30):
        every = list(range(count))
        assert sorted(each for share in range(SHARES) for each in dealt(every, share)) == every


def test_shares_of_numbers_in_a_row_are_all_shares():
    for first in range(9):
        assert sorted(each for n in range(first, first + SHARES) for each in dealt("abcdefg", n)) == list(
            "abcdefg"
        )


def test_a_commit_has_the_number_after_its_first_parent_s(repository):
    first = number_of_the_commit(repository)
    commit(repository, "second")
    assert number_of_the_commit(repository) == first + 1
    git(repository, "checkout", "-b", "aside")
    for text in ("third", "fourth", "fifth"):
        commit(repository, text)
    git(repository, "checkout", "main")
    git(repository, "merge", "--no-ff", "aside")
    assert number_of_the_commit(repository) == first + 2, "what was merged is one commit of the main line"


def test_a_clone_without_history_takes_the_hash_of_the_files(repository, tmp_path):
    commit(repository, "second")
    git(tmp_path, "clone", "--depth=1", f"file://{repository}", "shallow")
    shallow = tmp_path / "shallow"
    assert number_of_the_commit(shallow) == seed_of_the_commit(shallow) == seed_of_the_commit(repository) > 0


def test_without_a_repository_it_is_the_first_share(tmp_path):
    assert number_of_the_commit(tmp_path) == 0


def test_without_git_it_is_the_first_share(repository, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert number_of_the_commit(repository) == 0


def test_a_share_is_chosen_by_hand(monkeypatch):
    monkeypatch.setenv("HOOKLINE_TEST_SHARE", "6")
    assert (number_of_the_commit(), share_of_the_commit()) == (6, 2)


def test_parts_get_a_chosen_share_by_a_name_that_is_no_setting(monkeypatch):
    monkeypatch.setenv(CHOSEN, "2")
    handed_down = environment()
    assert CHOSEN not in handed_down
    monkeypatch.delenv(CHOSEN)
    monkeypatch.setenv(HANDED_DOWN, handed_down[HANDED_DOWN])
    assert share_of_the_commit() == 2
