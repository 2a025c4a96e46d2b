"""A `docker` that keeps its images as files of a folder, and a `debootstrap`, for tests: put on
PATH, started through `command`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from acceptance.station.image.record import ImageRef

Build = Callable[..., ImageRef]

DOCKER = r"""#!/bin/sh
# $0's folder holds what it answers: images/NAME (labels as JSON), and switches by file name.
here=${0%/*}
name() { (IFS=/:; set -f; set -- $1; IFS=_; echo "$*"); }
echo "$*" >>"$here/calls"
case "$1 $2" in
"version "*)
    [ ! -f "$here/down" ] || { cat "$here/down" >&2; exit 1; }
    [ ! -f "$here/mute" ] || exec sleep 60
    echo 20.10 ;;
"buildx version") [ -f "$here/has-buildx" ] ;;
"context inspect") echo unix:///run/docker.sock ;;
"network inspect") [ ! -f "$here/no-bridge" ] && echo 1500 ;;
"image inspect")
    file=$here/images/$(name "$5")
    [ -f "$file" ] || { echo "No such image: $5" >&2; exit 1; }
    case "$4" in *Size*) cat "$here/size"; exit ;; *Labels*) cat "$file" ;; *) echo "sha256:$(name "$5")" ;; esac ;;
"info "*) cat "$here/info" ;;
"system df") cat "$here/df" ;;
"images "*)
    # unnamed/STAGE holds an id a line
    for word; do case "$word" in
        *.stage=*) cat "$here/unnamed/${word##*=}" 2>/dev/null ;;
        *.inputs) cat "$here/unnamed/finals" 2>/dev/null ;;
        *.pins=*) [ ! -f "$here/earlier" ] || echo sha256:earlier ;;
    esac; done
    exit 0 ;;
"history "*) case "$5" in *derived*) echo "CMD [x]" ;; *) echo "/bin/sh -c #(nop)  LABEL org.rigproof.pins=p" ;; esac ;;
"tag "*)
    for file in "$here"/unnamed/*; do
        if grep -qx "$2" "$file"; then grep -vx "$2" "$file" >"$file.new"; mv "$file.new" "$file"; fi
    done
    echo null >"$here/images/$(name "$3")" ;;
"image rm")
    [ ! -f "$here/in-use" ] || { echo null >"$here/images/$(name "$3")"; exit 1; }
    for file in "$here"/unnamed/*; do
        if grep -qx "$3" "$file"; then grep -vx "$3" "$file" >"$file.new"; mv "$file.new" "$file"; fi
    done ;;
"save "*)
    printf '[{"RepoTags":["%s"]}]' "$4" >"$here/manifest.json"
    tar -C "$here" -cf "$3" manifest.json; [ ! -f "$here/save-fails" ] || { echo "no space left" >&2; exit 1; } ;;
"load "*)
    tag=$(tar -xOf "$4" manifest.json | sed 's/.*\["\(.*\)"\].*/\1/')
    cp "$here/labels" "$here/images/$(name "$tag")" ;;
"pull "*)
    if [ -f "$here/registry-hangs" ]; then exec sleep 60; fi
    if [ ! -f "$here/registry" ]; then echo "no such host" >&2; exit 1; fi
    echo "1: Pulling from $2"; echo null >"$here/images/$(name "$2")" ;;
"import "*) [ ! -f "$here/import-fails" ] || exit 1; tar -tf "$2" >/dev/null && echo null >"$here/images/$(name "$3")" ;;
"build "*)
    echo "Step 1/1 : RUN something"
    if [ -f "$here/build-fails" ]; then echo "E: the last line" >&2; exit 1; fi
    env | sort >"$here/environment"
    cp "$here/labels" "$here/images/$(name "$3")" ;;
"run "*) cat "$here/image.json" ;;
*) exit 64 ;;
esac
"""  # noqa: E501
DEBOOTSTRAP = r"""#!/bin/sh
echo "I: Retrieving"
[ ! -f "$(dirname "$0")/no-mirror" ] || exit 1
mkdir -p "$4" && echo x >"$4/file"
"""
LABELS = {"org.rigproof.inputs": "i", "org.rigproof.pins": "p", "org.rigproof.base": "some/base:1"}
CONTENTS = {
    "base": "Debian GNU/Linux 13 (trixie)",
    "pins": [
        {"place": "trixie", "name": "gpu-burn", "pinned": "1.0-1", "used": "1.0-1"},
        {"place": "sid", "name": "nvbandwidth", "pinned": "0.9-1", "used": "0.10-1"},
        {
            "place": "ubuntu:24.04",
            "name": "python3",
            "pinned": "3.12.3-*",
            "used": "3.12.3-0ubuntu2",
        },
        {"place": "ubuntu:26.04", "name": "stress-ng", "pinned": None, "used": "1.2"},
    ],
    "python": {"torch": "2.10.0"},
    "proofs": {"gpu-burn": "Usage: "},
}


def install(folder: Path) -> Path:
    """Put both programs into a folder; answers it."""
    (folder / "images").mkdir(parents=True)
    (folder / "unnamed").mkdir()
    (folder / "info").write_text("")
    (folder / "df").write_text("")
    (folder / "size").write_text("7800000000")
    (folder / "labels").write_text(json.dumps(LABELS))
    (folder / "image.json").write_text(json.dumps(CONTENTS))
    programs = {"docker": DOCKER, "debootstrap": DEBOOTSTRAP}
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def calls(stub: Path, verb: str) -> list[str]:
    """The calls of one verb that the client got."""
    return [
        line for line in (stub / "calls").read_text().splitlines() if line.startswith(f"{verb} ")
    ]
