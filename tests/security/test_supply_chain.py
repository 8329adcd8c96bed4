"""What is installed is what was locked, what is shipped is listed, and an audit that asked nobody does not look good."""

import json
import re
import subprocess
import tomllib
from importlib import metadata, util
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OPTIONAL = [each for extra in PYPROJECT["project"]["optional-dependencies"].values() for each in extra]


def script(name: str) -> ModuleType:
    spec = util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lock, sbom, audit = script("lock"), script("sbom"), script("audit_dependencies")


def entries(name: str) -> dict[str, list[str]]:
    """Each line of a lock with its hashes."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / name).read_text().splitlines():
        if line.startswith("    --hash="):
            found[list(found)[-1]].append(line.strip().removesuffix(" \\"))
        elif not line.startswith("#"):
            found[line.removesuffix(" \\")] = []
    return found


@pytest.mark.parametrize("name", lock.LOCKS)
def test_a_lock_is_of_what_pyproject_says_today(name):
    groups, has_project = lock.LOCKS[name]
    said = lock.said(groups, has_project=has_project)
    assert (ROOT / name).read_text().startswith(lock.HEAD + said), "run `make lock` and commit the locks"


@pytest.mark.parametrize("name", lock.LOCKS)
def test_every_line_of_a_lock_is_one_version_with_its_hashes_and_names_no_place(name):
    for line, hashes in entries(name).items():
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][\w.!+]*( ; .+)?", line), line
        assert hashes, line
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), line
    text = (ROOT / name).read_text()
    assert not re.search(r"://|--index|--find|--trusted|-i |@", text)


def test_the_locked_versions_are_allowed_by_pyproject():
    locked = dict(sbom.locked_versions((ROOT / "requirements-dev.lock").read_text()))
    groups, _ = lock.LOCKS["requirements-dev.lock"]
    wanted = PYPROJECT["project"]["dependencies"] + [each for each in OPTIONAL if "hookline[" not in each]
    wanted += [each for group in groups for each in PYPROJECT["dependency-groups"][group]]
    for each in map(Requirement, wanted):
        assert each.specifier.contains(locked[canonicalize_name(each.name)]), str(each)


def test_what_a_program_that_uses_hookline_needs_stays_a_range():
    for each in map(Requirement, PYPROJECT["project"]["dependencies"] + OPTIONAL):
        if each.name == "hookline":  # an extra that includes another
            continue
        assert {part.operator for part in each.specifier} == {">="}, str(each)


def test_the_set_up_installs_by_the_lock_alone():
    said = subprocess.run(
        ["make", "--always-make", "--dry-run", "setup"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    installs = re.findall(r"pip install[^;]*", said)
    assert len(installs) == 4, said
    assert 'echo "installing what is in requirements-dev.lock into .venv"' in said.partition("pip install")[0]
    for each in installs:
        by_lock = "--require-hashes --requirement requirements-dev.lock" in each
        assert by_lock or "--no-deps --no-build-isolation --editable ." in each, each


# --- the bill of materials ---


def test_the_bill_has_every_package_that_runs_with_its_version_and_licence():
    bill = sbom.made()
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["component"]["version"] == PYPROJECT["project"]["version"]
    found = {each["name"]: each for each in bill["components"]}
    assert len(found) == len(bill["components"])
    wanted = {canonicalize_name(Requirement(each).name) for each in sbom.requirements(PYPROJECT["project"])}
    assert wanted | {
        "asyncpg",
        "jsonschema-rs",
        "h11",
        "markupsafe",
        "cffi",
        "htmx.org",
        "uplot",
        "rapidoc",
    } <= set(found)
    for name, each in found.items():
        assert each["type"] == "library"
        assert (
            each["purl"] == each["bom-ref"] == f"{each['purl'].rpartition('/')[0]}/{name}@{each['version']}"
        )
        assert re.fullmatch(r"[0-9][\w.]*", each["version"])
        [licence] = each["licenses"]
        said = licence.get("expression") or licence["license"].get("id") or licence["license"].get("name")
        assert said
        assert said != "UNKNOWN"
    refs = {each["bom-ref"] for each in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert {each["ref"] for each in bill["dependencies"]} == refs
    assert {ref for each in bill["dependencies"] for ref in each["dependsOn"]} <= refs


def test_the_bill_is_of_what_is_installed():
    for each in sbom.made()["components"]:
        if each["purl"].startswith("pkg:pypi/"):
            assert metadata.version(each["name"]) == each["version"], "set up anew: `make setup`"


def test_what_only_development_needs_is_not_in_the_bill():
    names = {each["name"] for each in sbom.made()["components"]}
    assert not names & {"pytest", "mypy", "aiohttp", "django", "hatchling"}


def test_the_same_commit_gives_the_same_bill():
    assert sbom.made() == sbom.made()


# --- the audit ---

CLEAN = json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": []}], "fixes": []})
WEAK = json.dumps(
    {"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]}
)
SKIPPED = json.dumps({"dependencies": [{"name": "a", "skip_reason": "not found"}]})


@pytest.mark.parametrize(
    ("ended", "code", "said"),
    [
        ((0, CLEAN, ""), 0, "No known vulnerability in 1 packages."),
        ((1, WEAK, "Found 1 known vulnerability"), 1, "a 1: CVE-1, fixed in 2"),
        ((1, "", "requests.exceptions.ConnectionError: refused"), 0, audit.NOT_ASKED),
        ((1, "", "ERROR:pip_audit._cli:Tried to connect … MaxRetryError"), 0, audit.NOT_ASKED),
        ((0, SKIPPED, ""), 0, audit.NOT_ASKED),
        ((1, "", "Traceback: ValueError"), 1, "pip-audit failed:"),
        ((1, CLEAN, "something else"), 1, "pip-audit failed:"),
    ],
)
def test_an_audit_is_good_only_if_something_was_asked(ended, code, said):
    found, lines = audit.verdict(*ended)
    assert found == code
    assert any(said in line for line in lines)
