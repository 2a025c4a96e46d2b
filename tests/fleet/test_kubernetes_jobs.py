"""Which nodes are tested, and the Job of each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import kubernetes_validate
import pytest
from clusters import as_list, created, devices, job, node
from hypothesis import given
from hypothesis import strategies as st
from kustomized import DEPLOY, build, site

from acceptance.fleet import kubernetes
from acceptance.fleet.kubernetes import Manifest
from acceptance.fleet.night import Row
from acceptance.wording.errors import WordedError, WordedUserError

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
LETTERS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=40)
NAMES = st.lists(
    LETTERS.filter(lambda text: text[0] != "-" and text[-1] != "-"), min_size=1, max_size=6
).map(".".join)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Manifest]:
    folder = tmp_path_factory.mktemp("sites")
    return {
        overlay: kubernetes.manifest(printed(site(folder / overlay, overlay)), overlay)
        for overlay in ("least", "full-dra")
    }


def printed(folder: Path) -> str:
    """As kubectl prints the objects of a kustomization: one after the other."""
    return "\n".join(json.dumps(one, indent=4) for one in build(folder))


def refusals(
    *cluster: dict[str, object],
    names: tuple[str, ...] | None = None,
    lent: frozenset[str] | None = None,
    jobs: dict[str, str] | None = None,
    tested: dict[str, Row] | None = None,
) -> tuple[list[str], dict[str, str], list[str]]:
    """The nodes that are chosen, why the others are not, and which of these are harmless."""
    found = kubernetes.nodes(as_list(cluster))
    chosen, refused = kubernetes.choose(found, names, lent, jobs or {}, tested or {})
    return (
        [one.name for one in chosen],
        {one.node: one.why.code for one in refused},
        [one.node for one in refused if one.harmless],
    )


def test_nodes_that_cannot_be_tested_are_named() -> None:
    chosen, refused, harmless = refusals(
        node("gpu-1"),
        node("gpu-2", cordoned=True),
        node("gpu-3", ready="False"),
        node("gpu-4", ready="Unknown", cordoned=True),
        node("gpu-5", 0, all_gpus=8),
        node("cpu-1", 0),
    )
    assert chosen == ["gpu-1"]
    assert refused == {
        "gpu-2": "kubernetes_cordoned",
        "gpu-3": "kubernetes_not_ready",
        "gpu-4": "kubernetes_not_ready",
        "gpu-5": "kubernetes_no_gpus",
    }
    assert harmless == []


def test_a_node_without_a_condition_is_not_ready() -> None:
    silent = node("gpu-1")
    silent["status"]["conditions"] = []
    assert refusals(silent)[1] == {"gpu-1": "kubernetes_not_ready"}


def test_a_tested_node_and_one_with_a_job_are_left_alone() -> None:
    chosen, refused, harmless = refusals(
        node("gpu-1"),
        node("gpu-2", cordoned=True),
        node("gpu-3"),
        jobs={"gpu-3": "rigproof-gpu-3"},
        tested={
            "gpu-1": Row("gpu-1", "PASS", profile="accept", caveats=("no GPU declared",)),
            "gpu-2": Row("gpu-2", "FAIL"),
        },
    )
    assert (chosen, harmless) == ([], ["gpu-1", "gpu-2", "gpu-3"])
    assert refused["gpu-3"] == "kubernetes_job_there"


def test_the_nodes_that_are_named_are_due() -> None:
    chosen, refused, harmless = refusals(
        node("gpu-1"), node("gpu-2"), node("cpu-1", 0), names=("gpu-2", "cpu-1", "gone")
    )
    assert chosen == ["gpu-2"]
    assert refused == {"cpu-1": "kubernetes_no_gpus", "gone": "kubernetes_no_node"}
    assert harmless == []


def test_with_claims_the_driver_says_which_nodes_have_gpus() -> None:
    slices = as_list(
        [devices("gpu-1"), devices("nic-1", "dra.net"), devices(None), devices("gpu-3", count=0)]
    )
    lent = kubernetes.with_devices(slices)
    assert lent == {"gpu-1"}
    chosen, refused, _ = refusals(node("gpu-1", 0), node("nic-1", 0), node("gpu-3", 8), lent=lent)
    assert (chosen, refused) == (["gpu-1"], {})


def test_jobs_that_have_ended_do_not_count() -> None:
    text = as_list(
        [
            job("a", "gpu-1"),
            job("b", "gpu-2", ended="Complete"),
            job("c", "gpu-3", ended="Failed"),
            job("d", None),
        ]
    )
    assert kubernetes.unfinished(text) == {"gpu-1": "a"}


@pytest.mark.parametrize("text", ["", "{}", '{"items": [{}]}', '{"items": [{"metadata": {}}]}'])
def test_an_answer_of_another_form_is_no_answer(text: str) -> None:
    for read in (kubernetes.nodes, kubernetes.unfinished, kubernetes.with_devices):
        with pytest.raises(WordedError, match="is not understood"):
            read(text)


def test_a_count_that_is_no_number_is_not_read() -> None:
    odd = node("gpu-1")
    odd["status"]["allocatable"]["nvidia.com/gpu"] = "8k"
    with pytest.raises(WordedError, match=r"gpu-1: nvidia[.]com/gpu is 8k"):
        kubernetes.nodes(as_list([odd]))


def test_a_job_is_pinned_and_takes_the_gpus_that_are_lent(manifests: dict[str, Manifest]) -> None:
    (chosen,) = kubernetes.nodes(as_list([node("gpu-1.example.org", 7, all_gpus=8)]))
    before = json.dumps(manifests["least"].job)
    made = kubernetes.job(manifests["least"], chosen, None)
    assert json.dumps(manifests["least"].job) == before
    inside = made["spec"]["template"]["spec"]
    assert inside["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "7"}
    assert inside["containers"][0]["image"] == "registry.example.org/rigproof:1"
    terms = inside["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms == {
        "nodeSelectorTerms": [
            {
                "matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["gpu-1.example.org"]}
                ]
            }
        ]
    }
    assert "node-of-this-job" not in json.dumps(made)
    assert kubernetes.unfinished(as_list([created(made)])) == {
        "gpu-1.example.org": made["metadata"]["name"]
    }


def test_a_request_is_the_limit(tmp_path: Path) -> None:
    """The API refuses GPUs whose request and limit differ."""
    objects = build(site(tmp_path))
    for one in objects:
        if one["kind"] == "Job":
            resources = one["spec"]["template"]["spec"]["containers"][0]["resources"]
            resources["requests"]["nvidia.com/gpu"] = "8"
    manifest = kubernetes.manifest("".join(map(json.dumps, objects)), "site")
    (chosen,) = kubernetes.nodes(as_list([node("gpu-1", 4)]))
    made = kubernetes.job(manifest, chosen, None)["spec"]["template"]["spec"]["containers"][0]
    assert made["resources"]["requests"]["nvidia.com/gpu"] == "4"
    assert made["resources"]["limits"]["nvidia.com/gpu"] == "4"
    assert made["resources"]["requests"]["cpu"] == "1"


@pytest.mark.parametrize("overlay", ["least", "full-dra"])
@pytest.mark.parametrize("version", ["1.34", "1.35", "1.36", "1.37"])
def test_a_rendered_job_is_what_the_api_takes(
    manifests: dict[str, Manifest], overlay: str, version: str
) -> None:
    (chosen,) = kubernetes.nodes(as_list([node("1e3")]))
    made = kubernetes.job(manifests[overlay], chosen, None)
    kubernetes_validate.validate(made, version, strict=True)
    limits = made["spec"]["template"]["spec"]["containers"][0]["resources"].get("limits")
    assert limits == (None if overlay == "full-dra" else {"nvidia.com/gpu": "8"})


def test_the_name_of_a_job_follows_from_the_job_before_it(manifests: dict[str, Manifest]) -> None:
    """Calls at the same moment make the same Job; the next one is another."""
    nodes = kubernetes.nodes(as_list([node("gpu-1"), node("gpu-2")]))
    names = [
        kubernetes.job(manifests["least"], one, last)["metadata"]["name"]
        for one in nodes
        for last in (None, "uid-a", "uid-b", None)
    ]
    assert len(set(names)) == 6
    assert (names[0], names[4]) == (names[3], names[7])


def test_the_last_job_of_a_node_is_the_newest() -> None:
    text = as_list(
        [
            job("b", "gpu-1", ended="Failed", at="2026-11-26T01:00:00Z"),
            job("a", "gpu-1", ended="Complete", at="2026-11-27T01:00:00Z"),
            job("c", "gpu-1", at="2026-11-25T01:00:00Z"),
            job("d", None),
            job("e", "gpu-2"),
        ]
    )
    assert kubernetes.last_jobs(text) == {"gpu-1": "uid-a", "gpu-2": "uid-e"}


@given(st.lists(NAMES, min_size=2, max_size=5, unique=True))
def test_names_are_labels_and_never_shared(names: list[str]) -> None:
    labels = [kubernetes.label(name) for name in names]
    assert len(set(labels)) == len(names)
    for one in labels:
        whole = f"rigproof-{one}-{'0' * 8}"
        # The Job's controller adds a dash and five letters for the pod.
        assert len(whole) + 6 <= 63
        assert DNS_LABEL.fullmatch(whole)
        assert DNS_LABEL.fullmatch(one)


def without_gpus(folder: Path) -> str:
    bare = build(site(folder))
    for one in bare:
        if one["kind"] == "Job":
            del one["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    return "".join(map(json.dumps, bare))


def test_a_manifest_without_a_job_of_ours_is_refused(tmp_path: Path) -> None:
    for text, error, said in (
        (printed(DEPLOY / "namespace"), WordedUserError, "holds 0 Jobs"),
        (printed(DEPLOY / "overlays/least"), WordedUserError, "names no image"),
        (without_gpus(tmp_path), WordedUserError, "asks for no GPUs"),
        ('{"kind": "Job", "metadata": {}}', WordedUserError, "its Job is none"),
        ('{"kind": "Job"} torn', WordedError, "is not understood"),
        ("[1]", WordedError, "what kubectl patch --local printed"),
        ("1", WordedError, "what kubectl patch --local printed"),
        ('{"a":' * 100_000, WordedError, "what kubectl patch --local printed"),
    ):
        with pytest.raises(error, match=said):
            kubernetes.manifest(text, "site")
