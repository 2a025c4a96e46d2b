"""CycloneDX 1.6 files of a release, and of an image that was built.

    sbom.py wheel ENVIRONMENT.json WHEEL OUT                 cyclonedx-py's, with the wheel on top
    sbom.py recipe REQUIREMENTS.json PINS VERSION OUT        what the image's recipe pins
    sbom.py image IMAGE.json DPKG NAME OUT                   what is in an image

IMAGE.json is the image's /opt/rigproof/image.json, and DPKG the output of its
`dpkg-query -W -f '${Package}\t${Version}\t${Architecture}\n'`. Each file is held against the schema
where cyclonedx-python-lib is installed, as `scripts/release-files` installs it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

Component = dict[str, Any]
RELEASES = {"trixie": "debian", "sid": "debian", "debian:13": "debian", "ubuntu:24.04": "ubuntu"}


def component(
    kind: str, name: str, version: str, purl: str | None = None, **properties: str
) -> Component:
    """A component; `properties` are ours."""
    made: Component = {
        "type": kind,
        "name": name,
        "version": version,
        "bom-ref": purl or f"{name}=={version}",
    }
    if purl:
        made["purl"] = purl
    if properties:
        named = sorted(properties.items())
        made["properties"] = [{"name": f"rigproof:{key}", "value": value} for key, value in named]
    return made


def deb(name: str, version: str, place: str, architecture: str | None = None) -> Component:
    """A package of Debian or Ubuntu. A version that ends in `*` is open: any revision of it."""
    exact = None if version.endswith("*") else quote(version, safe="")
    at = f"pkg:deb/{RELEASES[place]}/{quote(name, safe='')}{'' if exact is None else '@' + exact}"
    about = f"?{f'arch={architecture}&' if architecture else ''}distro={place.replace(':', '-')}"
    return component("library", name, version, at + about)


def pypi(name: str, version: str) -> Component:
    """A package of PyPI."""
    return component(
        "library", name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    )


def pins(text: str) -> Iterator[tuple[str, str, str]]:
    """The lines of pins.txt: place, name, version."""
    for line in text.splitlines():
        if words := line.partition("#")[0].split():
            place, name, version = words
            yield place, name, version


def bill(top: Component, components: Iterable[Component], **more: Any) -> dict[str, Any]:
    """A whole file, with neither a date nor a random number: the same input gives the same."""
    found = {each["bom-ref"]: each for each in components}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": top},
        "components": [found[ref] for ref in sorted(found)],
        **more,
    }


def of_wheel(environment: dict[str, Any], wheel: Path) -> dict[str, Any]:
    """cyclonedx-py's list of an environment in which only the wheel was installed."""
    ours = next(each for each in environment["components"] if each["name"] == "rigproof")
    others = [each for each in environment["components"] if each is not ours]
    del ours["externalReferences"]  # where the file lay on the machine that made this
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    top = {
        **ours,
        "type": "application",
        "purl": f"pkg:pypi/rigproof@{quote(ours['version'], safe='')}",
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    return bill(top, others, dependencies=environment["dependencies"])


def of_recipe(requirements: dict[str, Any], text: str, version: str) -> dict[str, Any]:
    """What the recipe pins: PyPI's packages by hash, others by version, bases by tag."""
    found: list[Component] = list(requirements["components"])
    for place, name, pinned in pins(text):
        if place == "image":
            base, _, tag = pinned.rpartition(":")
            found.append(
                component(
                    "container", base, tag, f"pkg:docker/{base}@{tag}", use=name, pinned="tag"
                )
            )
        elif place in RELEASES:
            found.append(deb(name, pinned, place))
    return bill(component("container", "rigproof", version), found)


def of_image(image: dict[str, Any], dpkg: str, name: str) -> dict[str, Any]:
    """What is in an image: its distribution's packages, Python's, and the copied tools."""
    place = "ubuntu:24.04" if image["base"].startswith("Ubuntu") else "debian:13"
    found = [
        deb(package, version, place, architecture)
        for package, version, architecture in (line.split("\t") for line in dpkg.splitlines())
    ]
    copied = (pin for pin in image["pins"] if pin["place"] in ("trixie", "sid"))
    found += [deb(pin["name"], pin["used"], pin["place"]) for pin in copied]
    packages = image["python"].items()
    found += [pypi(package, version) for package, version in packages if package != "python"]
    return bill(component("container", "rigproof", name), found)


def check(text: str) -> None:
    """Hold a file against the schema. Raises SystemExit."""
    try:
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
    except ImportError:
        print("rigproof: not held against the schema: no cyclonedx-python-lib", file=sys.stderr)
        return
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"rigproof: no CycloneDX 1.6: {error}")


def main(words: list[str]) -> int:
    """Write one file; returns the exit code."""
    match words:
        case ["wheel", environment, wheel, out]:
            made = of_wheel(json.loads(Path(environment).read_bytes()), Path(wheel))
        case ["recipe", requirements, text, version, out]:
            found = json.loads(Path(requirements).read_bytes())
            made = of_recipe(found, Path(text).read_text(encoding="utf-8"), version)
        case ["image", image, dpkg, name, out]:
            contents = json.loads(Path(image).read_bytes())
            made = of_image(contents, Path(dpkg).read_text(encoding="utf-8"), name)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    check(text)
    Path(out).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
