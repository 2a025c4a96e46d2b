"""`rigproof fleet pairs` with torch over gloo, between nodes that are containers of the image in
networks of their own, with bad nodes and links among them.

RIGPROOF_TORCH_PYTHON=PATH, a Python with torch, numpy and msgspec, runs the same without an engine:
then a node is a network alone.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import network_nodes
import pytest
from network_nodes import Network

from acceptance.process.deadline import Deadline
from acceptance.station.image import build
from acceptance.station.image import engine as image_engine

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("RIGPROOF_TORCH_PYTHON")
# Pairs side by side, so that the slow link and the silent node are waited for beside the others;
# not all, as twelve nodes that load torch at once take seconds from the turns of the first.
AT_ONCE = 3


@contextmanager
def network(count: int, folder: Path) -> Iterator[Network]:
    """A network of so many nodes."""
    if why := network_nodes.missing():
        pytest.fail(why)
    with ExitStack() as stack:
        if PYTHON is not None:
            made = Network(count, folder)
        else:
            engine = image_engine.find()
            built = build.build(log_dir=folder, say=print, deadline=Deadline.after(3000.0))

            def started(node: str) -> int:
                run = ("run", "--detach", "--rm", "--network", "none", "--name", node)
                done = engine.ask(*run, built.tag, "sleep", "1800", seconds=60.0)
                assert done.returncode == 0, done.stderr
                stack.callback(engine.ask, "rm", "--force", node, seconds=60.0)
                pid = engine.ask("inspect", "--format", "{{.State.Pid}}", node, seconds=60.0)
                return int(pid.stdout)

            made = Network(count, folder, (engine.docker, "exec"), started)
        stack.callback(made.leave)
        yield made


def outcome(made: Network) -> tuple[int, dict[str, Any]]:
    """The exit code, and what the file says."""
    nodes, addresses = made.files()
    argv = [sys.executable, "-m", "acceptance", "fleet", "pairs", str(nodes)]
    launch = shlex.join([sys.executable, str(made.launcher())])
    argv += ["--launch", f"{launch} {{node}}", "--backend", "gloo"]
    argv += ["--python", PYTHON or "python", "--locations", str(addresses)]
    argv += ["--most", "2097152", "--at-once", str(AT_ONCE), "--out", str(made.folder)]
    environ = network_nodes.ENVIRONMENT
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=environ, timeout=1700)
    assert done.returncode in (0, 1, 3), done.stderr
    print(done.stdout)
    found: dict[str, Any] = json.loads((made.folder / "pairs.json").read_text())
    return done.returncode, found


def test_sound_nodes_pass_in_one_round(tmp_path: Path) -> None:
    with network(6, tmp_path) as made:
        code, found = outcome(made)
    assert (code, found["verdict"], len(found["tests"])) == (0, "PASS", 3)
    for one in found["tests"]:
        # In GB/s: what the wire and its bucket carry, not what two processes of a host exchange.
        wire = network_nodes.WIRE_MBIT / 8 / 1000
        assert all(0 < rate < 1.01 * wire for rate in one["rates"].values())


def test_a_node_and_two_links_are_named(tmp_path: Path) -> None:
    """One link is slow, one goes down in the middle, and one node has a wrong result."""
    with network(12, tmp_path) as made:
        nodes = made.nodes
        made.link(nodes[2], nodes[3], network_nodes.SLOW_MBIT)
        made.more[nodes[4]] = ("inject=wrong",)
        made.link(nodes[6], nodes[7], network_nodes.WIRE_MBIT)
        made.cut.append(nodes[6])
        code, found = outcome(made)
    assert (code, found["verdict"]) == (1, "FAIL")
    assert found["bad_nodes"] == [nodes[4]]
    assert found["bad_links"] == [list(nodes[2:4]), list(nodes[6:8])]
    assert len(found["tests"]) <= 12 / 2 + 2 * 3
    first = {tuple(one["nodes"]): one for one in found["tests"] if one["round"] == 1}
    assert {one["rate"] for one in first[nodes[2:4]]["slow"]} == {
        *("all_reduce", "all_gather", "first->second", "second->first")
    }
    assert first[nodes[4:6]]["wrong"] == [1, 0]
    assert first[nodes[6:8]]["began"]
    assert all(first[nodes[6:8]]["reasons"])
    assert [found[kind] for kind in ("not_reached", "unattributed", "not_tested")] == [[], [], []]
