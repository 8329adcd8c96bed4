"""Writes what a release consists of: a software bill of materials in CycloneDX 1.6, as JSON.

It lists what a server with every extra of a server needs when it runs, with the versions of `requirements-dev.lock` and the licences of what is
installed, and the files of others that it ships. The same commit on the same Python gives the same file.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
TABLE = ROOT / "src/hookline/dashboard/static/vendor/vendor.toml"
DOCS = ROOT / "src/hookline/api/vendor/README.md"
SERVER_EXTRAS = ("server", "postgres", "schema")
SERVED = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}

Component = dict[str, Any]


def main() -> int:
    bill = made()
    path = ROOT / "dist" / f"hookline-{bill['metadata']['component']['version']}.cdx.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")
    print(f"{path.relative_to(ROOT)}: {len(bill['components'])} components")
    return 0


def made() -> dict[str, Any]:
    """The bill of this checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    locked = dict(locked_versions(LOCK.read_text()))
    wanted = requirements(project)
    needed = needed_by(wanted)
    refs = {name: f"pkg:pypi/{name}@{locked[name]}" for name in needed}
    python = [of_package(name, locked[name], refs[name]) for name in sorted(needed)]
    components = [*python, *shipped()]
    direct = sorted({canonicalize_name(Requirement(each).name) for each in wanted})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + LOCK.read_text())}",
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"expression": project["license"]}],
                "purl": own,
            }
        },
        "components": components,
        "dependencies": [
            {
                "ref": own,
                "dependsOn": [refs[each] for each in direct] + [each["bom-ref"] for each in shipped()],
            },
            *(
                {"ref": refs[name], "dependsOn": sorted(refs[each] for each in needed[name])}
                for name in sorted(needed)
            ),
            *({"ref": each["bom-ref"], "dependsOn": []} for each in shipped()),
        ],
    }


def requirements(project: dict[str, Any]) -> list[str]:
    """What pyproject.toml asks for where a server runs."""
    extras = project["optional-dependencies"]
    found = [*project["dependencies"], *(each for name in SERVER_EXTRAS for each in extras[name])]
    return [each for each in found if Requirement(each).name != project["name"]]  # an extra may name another


def locked_versions(lock: str) -> Iterator[tuple[str, str]]:
    """The packages of a lock with their versions, as far as they are for this Python."""
    for name, version, marker in re.findall(r"^([a-z0-9-]+)==([^\s;]+)(?: ; (.+?))? \\$", lock, re.MULTILINE):
        if not marker or Marker(marker).evaluate():
            yield name, version


def needed_by(requirements: list[str]) -> dict[str, set[str]]:
    """Every package that is needed when the project runs, also by another one, and what each needs itself."""
    found: dict[str, set[str]] = {}
    left = [Requirement(each) for each in requirements]
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        if not _applies(wanted, "") or (name in found and not wanted.extras):
            continue
        own = [
            each
            for each in map(Requirement, metadata.requires(name) or ())
            if any(_applies(each, extra) for extra in ("", *wanted.extras))
        ]
        found.setdefault(name, set()).update(canonicalize_name(each.name) for each in own)
        left += [each for each in own if canonicalize_name(each.name) not in found or each.extras]
    return found


def _applies(wanted: Requirement, extra: str) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({**SERVED, "extra": extra})


def of_package(name: str, version: str, ref: str) -> Component:
    """A package with its licence."""
    said = metadata.metadata(name)
    found: Component = {
        "type": "library",
        "bom-ref": ref,
        "name": name,
        "version": version,
        "purl": ref,
        "licenses": [licence_of(said)],
        "scope": "required",
    }
    if said["Summary"]:
        found["description"] = said["Summary"]
    return found


def licence_of(said: Any) -> dict[str, Any]:
    """Its licence by the newest of the three ways in which a package says it."""
    if expression := said["License-Expression"]:
        return {"expression": expression}
    text = (said["License"] or "").strip()
    if text and "\n" not in text and len(text) < 100:
        return {"license": {"name": text}}
    classes = [
        each.rpartition(":: ")[2]
        for each in said.get_all("Classifier") or ()
        if each.startswith("License ::")
    ]
    if classes:
        return {"license": {"name": ", ".join(classes)}}
    raise ValueError(f"{said['Name']} does not say under which licence it is")


def shipped() -> list[Component]:
    """The files of others that the project ships: of the dashboard, and of the pages about the API."""
    found = [
        _from_npm(
            each["name"], each["version"], each["licence"], [file["sha256"] for file in each["files"]][:1]
        )
        for each in tomllib.loads(TABLE.read_text())["packages"]
    ]
    for name, version, licence, digest in re.findall(
        r"npm `([\w.-]+)@([\d.]+)`, .+ \| (\w+) \(.+ \| `([0-9a-f]{64})` \|", DOCS.read_text()
    ):
        found.append(_from_npm(name, version, licence, [digest]))
    return found


def _from_npm(name: str, version: str, licence: str, digests: list[str]) -> Component:
    ref = f"pkg:npm/{name}@{version}"
    return {
        "type": "library",
        "bom-ref": ref,
        "name": name,
        "version": version,
        "purl": ref,
        "licenses": [{"license": {"id": licence}}],
        "hashes": [{"alg": "SHA-256", "content": each} for each in digests],
        "scope": "required",
    }


if __name__ == "__main__":
    sys.exit(main())
