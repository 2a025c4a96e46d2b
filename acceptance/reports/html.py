"""report.html: one page, offline, without scripts. Verdict first, then every reason for it, then everything measured."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from acceptance.journal import Journal
from acceptance.judge.judgement import Finding, Judged
from acceptance.judge.measurement import number
from acceptance.judge.record import RunStarted, Table, ToolRan
from acceptance.judge.verdict import Verdict
from acceptance.reports import summary, tables, teaching
from acceptance.reports.places import places
from acceptance.reports.text import counted, duration, one_line

GIB = 1 << 30


def parts(finding: Finding) -> list[str]:
    """A finding's text in its clauses and what was looked at, one a line, as a card shows it."""
    return [*one_line(finding.text).replace("; basis:", "\nbasis:").split("\n"), *teaching.notes(finding)]


def value_class(judged: Judged) -> str:
    """How a value's cell is marked: by the worst that is to be said of it."""
    kinds = [finding.kind for finding in judged.findings]
    return next((kind for kind in ("fail", "error", "skip", "warn", "waived") if kind in kinds), "")


def harmless(value: object) -> object:
    """What the page may show of any value: untrusted text on one line, without control characters. Jinja escapes it after that."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@functools.cache  # reading the template takes longer than filling it in
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("acceptance.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        parts=parts,
        advice=teaching.labelled,
        value_class=value_class,
        duration=duration,
        value_text=summary.value_text,
        limit_text=summary.limit_text,
        basis_text=summary.basis_text,
    )
    return environment


def machine_rows(inventory: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The observed machine in a few rows; what was not captured is absent."""
    if not inventory:
        return
    cpu, memory, board = inventory["cpu"], inventory["memory"], inventory["board"]
    counts = [counted(cpu[f"{name}s"], name) for name in ("socket", "core", "thread") if cpu[f"{name}s"] is not None]
    yield "processor", ", ".join([cpu["model"] or "model not shown", *counts])
    yield "memory", f"{number(memory['total_bytes'] / GIB)} GiB"
    for dimm in memory["dimms"] or ():
        size = f"{number(dimm['size_bytes'] / GIB)} GiB" if dimm["size_bytes"] is not None else "size not told"
        rate = f" at {dimm['configured_mts']} MT/s" if dimm["configured_mts"] is not None else ""
        yield f"module {dimm['slot']}", f"{size} {dimm['kind'] or ''}{rate} {dimm['part_number'] or ''}"
    if memory["dimms_unread"]:
        yield "modules", f"not read: {memory['dimms_unread']}"
    for disk in inventory["disks"]:
        yield (
            f"disk {disk['name']}",
            f"{disk['model'] or 'model not shown'}, {disk['size_bytes'] / 1e9:.0f} GB, {disk['kind']}",
        )
    for link in inventory["links"]:
        speed = f", {link['speed_mbps']} Mbit/s" if link["speed_mbps"] else ""
        yield f"network {link['name']}", f"{'up' if link['up'] else 'down'}{speed}, {link['driver'] or 'no driver'}"
    for device in inventory["nvml"]["devices"]:
        yield f"GPU {device['pci_address'] or device['index']}", ", ".join(_gpu(device))
    for function in inventory["pci"]:
        yield f"PCI {function['address']}", f"{function['device_id']}, driver {function['driver'] or 'none'}"
    for key in ("vendor", "name", "bios_version", "kernel", "os", "nvidia_driver"):
        if board[key]:
            yield key.replace("_", " "), board[key]


def _gpu(device: Mapping[str, Any]) -> Iterator[str]:
    """What the driver tells of one GPU, as far as it tells it."""
    traits = device["traits"] or {}
    yield device["name"] or "model not told"
    if device["memory_bytes"] is not None:
        yield f"{number(device['memory_bytes'] / GIB)} GiB"
    for key, label in (("uuid", ""), ("serial", "serial "), ("vbios", "VBIOS ")):
        if device[key] is not None:
            yield f"{label}{device[key]}"
    if traits.get("power_limit_w") is not None:
        yield f"power limit {number(traits['power_limit_w'])} W"
    if traits.get("ecc_enabled") is not None:
        yield f"ECC {'on' if traits['ecc_enabled'] else 'off'}"
    if device["links"]:
        active = sum(link["active"] for link in device["links"])
        yield f"{active} of {counted(len(device['links']), 'NVLink')} active"
    if device["error"] is not None:
        yield device["error"]


def render(verdict: Verdict, found: Journal, inventory: Mapping[str, Any], matrix: Sequence[Sequence[str]] = ()) -> str:
    """The page's text."""
    plan = next(entry.body.plan for entry in found.entries if isinstance(entry.body, RunStarted))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            verdict=verdict,
            places=places(found),
            plan=plan,
            closing=summary.closing_line(verdict),
            host=verdict.provenance.get("host", "this machine"),
            machine=list(machine_rows(inventory)),
            matrix=matrix,
            notes=[*verdict.notes, *found.torn],
            tables=tables.shown(entry.body for entry in found.entries if isinstance(entry.body, Table)),
            tools=[entry.body for entry in found.entries if isinstance(entry.body, ToolRan)],
        )
    )
