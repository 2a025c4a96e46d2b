"""report.html: one page, offline, without scripts. Verdict first, then every reason for it, then everything measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jinja2

from acceptance.journal import Journal
from acceptance.judge.measurement import number
from acceptance.judge.record import RunStarted, ToolRan
from acceptance.judge.verdict import Verdict
from acceptance.reports import summary
from acceptance.reports.text import clean, duration, one_line

GIB = 1 << 30


def parts(text: str) -> list[str]:
    """A finding's text in its clauses, one a line, as a card shows it."""
    return [one_line(part) for part in clean(text).replace("; basis:", "\nbasis:").split("\n")]


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("acceptance.reports"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters.update(
        parts=parts,
        one_line=one_line,
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
    counts = [f"{cpu[name]} {name}" for name in ("sockets", "cores", "threads") if cpu[name] is not None]
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
    for function in inventory["pci"]:
        yield f"PCI {function['address']}", f"{function['device_id']}, driver {function['driver'] or 'none'}"
    for key in ("vendor", "name", "bios_version", "kernel", "os", "nvidia_driver"):
        if board[key]:
            yield key.replace("_", " "), board[key]


def render(verdict: Verdict, found: Journal, inventory: Mapping[str, Any]) -> str:
    """The page's text."""
    plan = next(entry.body.plan for entry in found.entries if isinstance(entry.body, RunStarted))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            verdict=verdict,
            plan=plan,
            closing=summary.closing_line(verdict),
            host=one_line(verdict.provenance.get("host", "this machine")),
            machine=list(machine_rows(inventory)),
            notes=[*verdict.notes, *found.torn],
            tools=[entry.body for entry in found.entries if isinstance(entry.body, ToolRan)],
        )
    )
