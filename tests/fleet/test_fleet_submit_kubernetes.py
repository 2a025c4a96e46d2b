"""`rigproof fleet submit --kubernetes`: through kubectl, of which only the cluster is made up."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from clusters import Object, as_list, created, devices, job, node
from command import assert_refused, printed
from executable import executable
from fleet_verdicts import Call, hold
from kustomized import KUBECTL, site

from acceptance.core.verdict import VerdictWord
from acceptance.process import command

# What needs no cluster is kubectl's own.
FAKE = """\
#!/bin/sh
cd {folder} || exit 9
echo "$*" >>calls
case $1 in
get) cat "$2.json" ;;
apply) cp "$3" applied.json ;;
label | taint) ;;
patch) cd "$OLDPWD" && exec {kubectl} "$@" ;;
*) exit 9 ;;
esac
"""


class Cluster:
    """A made-up cluster and what was applied to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.holds("nodes", [])
        self.holds("jobs", [])
        self.holds("resourceslices", [])

    def holds(self, kind: str, items: Iterable[Object]) -> None:
        (self.folder / f"{kind}.json").write_text(as_list(items), encoding="utf-8")

    @property
    def applied(self) -> list[Object]:
        path = self.folder / "applied.json"
        found: list[Object] = (
            json.loads(path.read_text(encoding="utf-8"))["items"] if path.exists() else []
        )
        return found

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    folder = tmp_path / "cluster"
    folder.mkdir()
    fake = executable(
        tmp_path / "bin" / "kubectl",
        FAKE.format(folder=shlex.quote(str(folder)), kubectl=shlex.quote(str(KUBECTL))),
    )
    monkeypatch.setenv("PATH", os.pathsep.join([str(fake.parent), os.environ["PATH"]]))
    monkeypatch.setattr(command, "under_reaper", list)  # the script leaves nothing running
    return Cluster(folder)


@pytest.fixture
def call(fleet: Call) -> Call:
    return partial(fleet, "submit")


def kinds(objects: list[Object]) -> list[str]:
    return [one["kind"] for one in objects]


def nodes_of(objects: list[Object]) -> list[str]:
    return [
        one["metadata"]["annotations"]["rigproof/node"] for one in objects if one["kind"] == "Job"
    ]


def test_a_job_a_node_is_applied(call: Call, cluster: Cluster, tmp_path: Path) -> None:
    cluster.holds("nodes", [node("gpu-1"), node("gpu-2", 7, all_gpus=8), node("cpu-1", 0)])
    lines = printed(call("--kubernetes", str(site(tmp_path / "site"))))
    assert lines == [
        "submitted: gpu-1",
        "submitted: gpu-2",
        "gpu-2: 7 of its 8 GPUs can be allocated: the device plugin holds the others back",
        "2 nodes submitted, 0 not",
    ]
    assert kinds(cluster.applied) == ["ConfigMap", "Job", "Job"]
    assert nodes_of(cluster.applied) == ["gpu-1", "gpu-2"]
    for one in cluster.applied:
        kubernetes_validate.validate(one, "1.37", strict=True)
    assert any(one.endswith("-n rigproof") for one in cluster.calls if "get jobs" in one)


def test_what_is_not_submitted_is_named(call: Call, cluster: Cluster, tmp_path: Path) -> None:
    cluster.holds(
        "nodes", [node("gpu-1"), node("gpu-2", cordoned=True), node("gpu-3", ready="Unknown")]
    )
    lines = printed(call("--kubernetes", str(site(tmp_path / "site"))), 3)
    assert lines == [
        "not submitted: gpu-2: it is cordoned",
        "not submitted: gpu-3: it is not ready (KubeletReady)",
        "submitted: gpu-1",
        "1 node submitted, 2 not",
    ]
    assert nodes_of(cluster.applied) == ["gpu-1"]


def test_a_node_with_a_fresh_word_is_not_tested_again(
    call: Call, cluster: Cluster, tmp_path: Path
) -> None:
    verdicts: dict[str, tuple[VerdictWord, float]] = {
        "passed": ("PASS", 3),
        "failed": ("FAIL", 3),
        "stopped": ("UNJUDGED", 3),
        "old": ("PASS", 40),
        "failed-long-ago": ("FAIL", 40),
    }
    for name, (word, hours) in verdicts.items():
        hold(tmp_path / "verdicts", name, word, hours)
    cluster.holds("nodes", [node(name) for name in (*verdicts, "new")])
    argv = ("--kubernetes", str(site(tmp_path / "site")), "--verdicts", str(tmp_path / "verdicts"))
    lines = printed(call(*argv))
    assert lines[:2] == [
        "not submitted: passed: its fresh verdict is PASS: nightly",
        "not submitted: failed: its fresh verdict is FAIL",
    ]
    assert nodes_of(cluster.applied) == ["stopped", "old", "failed-long-ago", "new"]
    call(*argv, "--fresh", "60")
    assert nodes_of(cluster.applied) == ["stopped", "new"]
    (tmp_path / "key.pub").write_text("ssh-ed25519 AAAA nobody\n", encoding="utf-8")
    call(*argv, "--signer", "key.pub")
    # An unsigned FAIL stays one; that it failed is in doubt, so it is tested again.
    tested = ["passed", "failed", "stopped", "old", "failed-long-ago", "new"]
    assert nodes_of(cluster.applied) == tested


def runs(folder: Path, name: str, *history: tuple[VerdictWord, float]) -> None:
    """Runs of a node that began some hours ago; one of hours below 0 has no verdict."""
    for word, hours in history:
        run = hold(folder, name, word, abs(hours))
        if hours < 0:
            (folder / name / run / "verdict.json").unlink()


def test_a_fail_stands_until_a_newer_pass(call: Call, cluster: Cluster, tmp_path: Path) -> None:
    """Labels, taints and what is tested again all go by the one rule."""
    held = tmp_path / "verdicts"
    runs(held, "stands", ("FAIL", 5), ("UNJUDGED", 3))
    runs(held, "old", ("FAIL", 50), ("UNJUDGED", 3))
    runs(held, "repaired", ("FAIL", 5), ("PASS", 3))
    runs(held, "died", ("PASS", 5), ("UNJUDGED", -3))
    runs(held, "doubt", ("FAIL", 5), ("UNJUDGED", -3))
    waiting = [node(name, taint="rigproof/failed") for name in ("repaired", "died")]
    nodes = [node("stands"), node("old"), node("doubt"), node("cpu-1", 0), *waiting]
    cluster.holds("nodes", nodes)
    argv = ("--kubernetes", str(site(tmp_path / "site")), "--verdicts", str(held))

    def marks() -> list[str]:
        return [one for one in cluster.calls if one.startswith(("label", "taint"))]

    assert (call(*argv)[0], marks()) == (0, []), "only where they are asked for"
    code, lines, _ = call(*argv, "--label", "--taint", "--dry-run")
    assert (code, marks()) == (0, [])
    assert kinds(list(yaml.safe_load_all("\n".join(lines))))[1:] == ["Job"] * 3
    assert call(*argv, "--label", "--taint")[0] == 0
    assert nodes_of(cluster.applied) == ["old", "doubt", "died"]
    asked = [one.removeprefix("# kubectl ") for one in lines if one.startswith("#")]
    assert marks() == asked
    assert asked == [
        "label nodes stands old doubt rigproof/verdict=FAIL --overwrite",
        "label nodes repaired rigproof/verdict=PASS --overwrite",
        "label nodes died rigproof/verdict=UNJUDGED --overwrite",
        "taint nodes stands old doubt rigproof/failed=:NoSchedule",
        "taint nodes repaired rigproof/failed:NoSchedule-",
    ]


def test_a_node_is_not_submitted_twice(call: Call, cluster: Cluster, tmp_path: Path) -> None:
    cluster.holds("nodes", [node("gpu-1"), node("gpu-2")])
    call("--kubernetes", str(site(tmp_path / "site")))
    jobs = [created(one) for one in cluster.applied if one["kind"] == "Job"]
    cluster.holds("jobs", [*jobs[:1], job("last-night", "gpu-2", ended="Failed")])
    _, lines, _ = call("--kubernetes", str(site(tmp_path / "site")))
    assert lines[0] == f"not submitted: gpu-1: the Job {jobs[0]['metadata']['name']} has not ended"
    assert nodes_of(cluster.applied) == ["gpu-2"]


def test_calls_at_the_same_moment_make_the_same_jobs(
    call: Call, cluster: Cluster, tmp_path: Path
) -> None:
    """The API has each once; after it has ended, the next Job is another."""
    cluster.holds("nodes", [node("gpu-1"), node("gpu-2")])
    cluster.holds("jobs", [job("last-night", "gpu-2", ended="Failed")])

    def names() -> set[str]:
        assert call("--kubernetes", str(site(tmp_path / "site")))[0] == 0
        return {one["metadata"]["name"] for one in cluster.applied if one["kind"] == "Job"}

    first = names()
    assert names() == first
    assert len(first) == 2
    ended = [created(one, ended="Complete") for one in cluster.applied if one["kind"] == "Job"]
    cluster.holds("jobs", ended)
    assert not names() & first


def test_by_claim_the_drivers_nodes_are_tested(
    call: Call, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.holds("nodes", [node("gpu-1", 0), node("cpu-1", 0)])
    cluster.holds("resourceslices", [devices("gpu-1")])
    printed(call("--kubernetes", str(site(tmp_path / "site", "least-dra"))))
    assert kinds(cluster.applied) == ["ConfigMap", "ResourceClaimTemplate", "Job"]
    assert nodes_of(cluster.applied) == ["gpu-1"]


def test_a_dry_run_prints_yaml_and_applies_nothing(
    call: Call, cluster: Cluster, tmp_path: Path
) -> None:
    # A name that YAML takes for a number where it is not quoted.
    cluster.holds("nodes", [node("1e3"), node("gpu-2", cordoned=True), node("gpu-3")])
    code, lines, error = call("--kubernetes", str(site(tmp_path / "site")), "--dry-run")
    assert code == 3
    assert error == "rigproof: not submitted: gpu-2: it is cordoned\n"
    objects = list(yaml.safe_load_all("\n".join(lines)))
    assert kinds(objects) == ["ConfigMap", "Job", "Job"]
    assert nodes_of(objects) == ["1e3", "gpu-3"]
    for one in objects:
        kubernetes_validate.validate(one, "1.37", strict=True)
    assert not cluster.applied


def test_the_nodes_of_a_file(call: Call, cluster: Cluster, tmp_path: Path) -> None:
    cluster.holds("nodes", [node("gpu-1"), node("gpu-2")])
    (tmp_path / "nodes.txt").write_text("node/gpu-2\ngone\n", encoding="utf-8")
    lines = printed(call("--kubernetes", str(site(tmp_path / "site")), "--due", "nodes.txt"), 3)
    assert lines[0] == "not submitted: gone: the cluster has no such node"
    assert nodes_of(cluster.applied) == ["gpu-2"]


def test_a_cluster_without_gpus_is_no_success(call: Call, cluster: Cluster, tmp_path: Path) -> None:
    cluster.holds("nodes", [node("cpu-1", 0)])
    code, lines, _ = call("--kubernetes", str(site(tmp_path / "site")), "--selector", "gpu=yes")
    assert (code, len(lines)) == (3, 1)
    assert lines[0].startswith("no node of the cluster has GPUs")
    assert not cluster.applied
    assert "get nodes -o json -l gpu=yes" in cluster.calls


@pytest.mark.parametrize("option", ["--label", "--taint", "--signer", "--fresh"])
def test_what_goes_by_verdicts_needs_their_folder(
    call: Call, cluster: Cluster, tmp_path: Path, option: str
) -> None:
    value = {"--signer": ["key.pub"], "--fresh": ["60"]}.get(option, [])
    (tmp_path / "key.pub").write_text("ssh-ed25519 AAAA nobody\n", encoding="utf-8")
    code, out, error = call("--kubernetes", str(site(tmp_path / "site")), option, *value)
    cure = "name their folder with --verdicts FOLDER"
    assert (code, out, error) == (2, [], f"rigproof: {option} goes by verdicts: {cure}\n")
    assert not cluster.applied


def test_bad_input_is_one_sentence(call: Call, cluster: Cluster, tmp_path: Path) -> None:
    assert_refused(
        call("--kubernetes", str(tmp_path / "nowhere")),
        2,
        "nowhere: holds no kustomization.yaml: give the folder of your kustomization",
    )
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "kustomization.yaml").write_text("resources: [none.yaml]\n", encoding="utf-8")
    code, _, error = call("--kubernetes", str(broken))
    assert (code, error.count("\n")) == (3, 1)
    assert error.startswith("rigproof: kubectl patch --local failed (")
    (tmp_path / "cluster" / "nodes.json").write_text("Unauthorized", encoding="utf-8")
    assert_refused(
        call("--kubernetes", str(site(tmp_path / "site"))),
        3,
        "what kubectl get nodes printed is not understood",
    )
    assert not cluster.applied


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--drain"], "--drain is an option of --slurm: leave it out with --kubernetes"),
        (["--out", "runs"], "--out is an option of --slurm: leave it out with --kubernetes"),
        (["--", "--profile", "smoke"], "stand in your kustomization: leave out what follows --"),
    ],
)
def test_options_of_slurm_are_refused(
    call: Call, cluster: Cluster, tmp_path: Path, arguments: list[str], said: str
) -> None:
    code, out, error = call("--kubernetes", str(site(tmp_path / "site")), *arguments)
    assert (code, out) == (2, [])
    assert said in error
    assert error.count("\n") == 1
    assert not cluster.applied


def test_a_folder_of_verdicts_that_is_not_there_submits_nothing(
    call: Call, cluster: Cluster, tmp_path: Path
) -> None:
    """Every node would be tested again, and labelled UNJUDGED."""
    wrong = str(tmp_path / "typo")
    assert_refused(
        call("--kubernetes", str(site(tmp_path / "site")), "--verdicts", wrong), 2, "typo"
    )
    assert not cluster.applied
