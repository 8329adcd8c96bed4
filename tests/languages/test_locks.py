"""The locks of other languages name every package with its hash, and no place where it comes from."""

import json
import re
from xml.etree import ElementTree

from languages.toolchains import HERE

MAVEN = "{http://maven.apache.org/POM/4.0.0}"


def test_npms_lock_has_a_hash_for_every_package_and_names_no_place():
    lock = json.loads((HERE / "javascript" / "package-lock.json").read_text())
    packages = {name: each for name, each in lock["packages"].items() if name}
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    assert not any("resolved" in each for each in packages.values()), (
        "run `npm install --package-lock-only --omit-lockfile-registry-resolved`"
    )


def test_cargos_lock_has_a_hash_for_every_package_of_the_registry():
    packages = (HERE / "rust" / "Cargo.lock").read_text().split("[[package]]")[1:]
    for package in packages:
        if 'name = "languages"' not in package:
            # The registry's name, which cargo writes whatever mirror is asked.
            assert 'source = "registry+https://github.com/rust-lang/crates.io-index"' in package
            assert re.search(r'checksum = "[0-9a-f]{64}"', package)


def test_gos_lock_has_a_hash_for_every_module():
    required = re.findall(r"^require (\S+ \S+)$", (HERE / "go" / "go.mod").read_text(), re.MULTILINE)
    sums = (HERE / "go" / "go.sum").read_text()
    assert required
    assert all(f"{module} h1:" in sums for module in required)


def test_maven_is_told_the_version_of_every_package_and_no_repository():
    project = ElementTree.parse(HERE / "java" / "pom.xml").getroot()  # noqa: S314 - a file of ours
    versions = [each.findtext(f"{MAVEN}version") for each in project.iter(f"{MAVEN}dependency")]
    assert versions
    assert all(version and re.fullmatch(r"[0-9.]+", version) for version in versions)
    assert not list(project.iter(f"{MAVEN}repository"))
