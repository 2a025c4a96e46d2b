"""deploy/kubernetes, built by kustomize, and sites made from it."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy" / "kubernetes"
# The test extra brings kubectl into the environment of the tests.
KUBECTL = Path(sys.executable).with_name("kubectl")
SITE = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - {overlay}
images:
  - name: rigproof
    newName: registry.example.org/rigproof
    newTag: "1"
"""
Object = dict[str, Any]


def build(folder: Path) -> list[Object]:
    """The objects of a kustomization."""
    return list(yaml.safe_load_all(_built(folder)))


@functools.cache
def _built(folder: Path) -> str:
    argv = [str(KUBECTL), "kustomize", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def site(folder: Path, overlay: str = "least", more: str = "") -> Path:
    """A site's kustomization of an overlay, with the image of its registry."""
    folder.mkdir(parents=True, exist_ok=True)
    path = os.path.relpath(DEPLOY / "overlays" / overlay, folder.resolve())
    text = SITE.format(overlay=path) + more
    (folder / "kustomization.yaml").write_text(text, encoding="utf-8")
    return folder


def one(objects: list[Object], kind: str) -> Object:
    """The only object of a kind."""
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def pod(objects: list[Object]) -> Object:
    """The pod's specification of the only Job."""
    found: Object = one(objects, "Job")["spec"]["template"]["spec"]
    return found
