"""The record of a local image: for reports, and to find it again."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from acceptance.core.message import SetupError
from acceptance.station.image import recipe
from acceptance.station.image.engine import BuildEngine

RECORD = "/opt/rigproof/image.json"


class InstalledItem(msgspec.Struct, frozen=True):
    """One component of the image: its pinned version (None: not pinned) and the one used."""

    place: str
    name: str
    pinned: str | None
    used: str


class Contents(msgspec.Struct, frozen=True):
    """The content of image.json, which the last step of the build writes."""

    base: str
    pins: tuple[InstalledItem, ...]
    python: dict[str, str]
    proofs: dict[str, str]


@dataclass(frozen=True, slots=True)
class ImageRef:
    """A rigproof image.

    `tag` is the requested reference, `id` the engine's id, `base` the reference of its base image.
    `commit` is absent where the image was built outside a checkout. `built`: this call built it, in
    `seconds`.
    """

    tag: str
    id: str
    base: str
    inputs: str
    pins_digest: str
    commit: str | None
    contents: Contents
    built: bool = False
    seconds: float = 0.0

    @property
    def pins(self) -> tuple[InstalledItem, ...]:
        """The versions in the image."""
        return self.contents.pins

    def provenance(self) -> dict[str, str]:
        """Provenance for reports: text by key.

        A version other than the pinned one is shown with both.
        """
        used = ", ".join(f"{pin.name} {pin.used}{_instead(pin)}" for pin in self.pins)
        known = {
            "image": self.tag,
            "image_id": self.id,
            "image_base": f"{self.base} ({self.contents.base})",
            "image_commit": self.commit,
            "image_inputs": self.inputs,
            "image_pins_digest": self.pins_digest,
            "image_versions": used,
        }
        return {key: value for key, value in known.items() if value}


def _instead(pin: InstalledItem) -> str:
    """A remark on a version that is not the pinned one."""
    if pin.pinned is None:
        return " (not pinned)"
    same = pin.used == pin.pinned or (
        pin.pinned.endswith("*") and pin.used.startswith(pin.pinned[:-1])
    )
    return "" if same else f" (pinned: {pin.pinned})"


def inspect(engine: BuildEngine, reference: str) -> ImageRef:
    """The record of a local image.

    Raises SetupError for one that is not here or is not rigproof's.
    """
    labels = engine.labels(reference)
    key = f"{recipe.LABELS}."
    try:
        inputs, pins, base = (labels[key + name] for name in ("inputs", "pins", "base"))
    except KeyError as error:
        raise SetupError(
            f"{reference} is no image of rigproof: it has no label {error}: without --image "
            "(make: IMAGE=) rigproof builds its own"
        ) from error
    done = engine.ask(
        "run", "--rm", "--network", "none", "--entrypoint", "cat", reference, RECORD, seconds=120.0
    )
    try:
        contents = msgspec.json.decode(done.stdout, type=Contents)
    except msgspec.DecodeError as error:
        raise SetupError(
            f"{reference} does not tell what is in it ({error}): {done.last_lines(1)}"
        ) from error
    identity = engine.image_id(reference)
    if identity is None:
        raise SetupError(
            f"{reference} was removed while it was looked at: start again, and it is built"
        )
    commit = labels.get("org.opencontainers.image.revision")
    return ImageRef(reference, identity, base, inputs, pins, commit, contents)
