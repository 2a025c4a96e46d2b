"""Nodes of a Kubernetes cluster, and the Job that tests one. Pure: kubectl's JSON in and out."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from acceptance.core import plain_text
from acceptance.core.grouping import grouped
from acceptance.core.message import Message, english, known
from acceptance.core.verdict import VerdictWord
from acceptance.fleet.night import Row
from acceptance.wording.errors import WordedError, WordedUserError

GPU = "nvidia.com/gpu"  # the device plugin's name of a GPU
DRIVER = "gpu.nvidia.com"  # the DRA driver's name
NODE = "rigproof/node"  # annotation of our Jobs: the node's name may be longer than a label
VERDICT = "rigproof/verdict"  # label of a node, where asked for
FAILED = "rigproof/failed"  # taint of a node, where asked for
SELECTOR = "app.kubernetes.io/name=rigproof"
PLACEHOLDER = "rigproof"  # the image of deploy/kubernetes, which the site replaces
_NAME = 30  # letters of a node's name in names of at most 63, which the Job and its pod add to
Read = TypeVar("Read")


class _List(Struct, Generic[Read]):
    items: tuple[Read, ...]


class _Condition(Struct):
    type: str
    status: str
    reason: str = ""


class _NodeMeta(Struct):
    name: str


class _Taint(Struct):
    key: str


class _NodeSpec(Struct):
    unschedulable: bool = False
    taints: tuple[_Taint, ...] | None = None


class _NodeStatus(Struct):
    conditions: tuple[_Condition, ...]
    allocatable: dict[str, str]
    capacity: dict[str, str]


class _Node(Struct):
    metadata: _NodeMeta
    spec: _NodeSpec
    status: _NodeStatus


class _JobMeta(Struct):
    name: str
    uid: str
    creationTimestamp: str
    annotations: dict[str, str] = {}


class _JobStatus(Struct):
    conditions: tuple[_Condition, ...] = ()


class _Job(Struct):
    metadata: _JobMeta
    status: _JobStatus


class _SliceSpec(Struct):
    driver: str
    nodeName: str | None = None
    devices: tuple[Any, ...] | None = None


class _Slice(Struct):
    spec: _SliceSpec


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster.

    `obstacle` says why nothing can be tested on it now. `gpus` are those that the device plugin
    lends, `all_gpus` with those that it found unhealthy; 0 without the device plugin. `failed` says
    that it has our taint.
    """

    name: str
    obstacle: Message | None
    gpus: int
    all_gpus: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node that is not tested; `harmless` where that is as it should be."""

    node: str
    why: Message
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """The site's manifest: the Job of one node, and the objects that it needs."""

    job: Mapping[str, Any]
    others: tuple[Mapping[str, Any], ...]

    @property
    def claims(self) -> bool:
        """Whether the GPUs come from the DRA driver, and not from the device plugin."""
        return bool(_pod(self.job).get("resourceClaims"))

    @property
    def namespace(self) -> str | None:
        """The Job's namespace; None is that of the user's context."""
        found: str | None = self.job["metadata"].get("namespace")
        return found


def nodes(text: str) -> tuple[Node, ...]:
    """The nodes that `kubectl get nodes -o json` printed. Raises WordedError."""
    return tuple(_node(one) for one in _decode(text, _Node, "get nodes"))


def _node(found: _Node) -> Node:
    name = found.metadata.name
    ready = next((one for one in found.status.conditions if one.type == "Ready"), None)
    obstacle: Message | None = None
    if ready is None or ready.status != "True":
        why = plain_text.quote(ready.reason or ready.status) if ready else "no condition Ready"
        obstacle = Message(english("kubernetes_not_ready", "it is not ready ({why})"), {"why": why})
    elif found.spec.unschedulable:
        obstacle = Message(english("kubernetes_cordoned", "it is cordoned"))
    return Node(
        name,
        obstacle,
        _count(name, found.status.allocatable),
        _count(name, found.status.capacity),
        any(taint.key == FAILED for taint in found.spec.taints or ()),
    )


def _count(node: str, resources: Mapping[str, str]) -> int:
    text = resources.get(GPU, "0")
    if not (text.isascii() and text.isdigit()):
        why = f"{node}: {GPU} is {plain_text.quote(text)}"
        raise WordedError("kubernetes_unread", what="get nodes", why=why)
    return int(text)


def unfinished(text: str) -> dict[str, str]:
    """The Jobs of ours that have not ended, by node, in what `kubectl get jobs -o json` printed.

    Raises WordedError.
    """
    return {
        one.metadata.annotations[NODE]: one.metadata.name
        for one in _decode(text, _Job, "get jobs")
        if NODE in one.metadata.annotations
        and not any(
            each.type in ("Complete", "Failed") and each.status == "True"
            for each in one.status.conditions
        )
    }


def last_jobs(text: str) -> dict[str, str]:
    """The uid of the newest Job of ours on each node: what `kubectl get jobs -o json` printed.

    Raises WordedError.
    """
    found = [one.metadata for one in _decode(text, _Job, "get jobs")]
    found.sort(key=lambda one: (one.creationTimestamp, one.uid))
    return {one.annotations[NODE]: one.uid for one in found if NODE in one.annotations}


def with_devices(text: str) -> frozenset[str]:
    """The nodes on which the DRA driver has GPUs: `kubectl get resourceslices -o json`.

    Raises WordedError.
    """
    return frozenset(
        one.spec.nodeName
        for one in _decode(text, _Slice, "get resourceslices")
        if one.spec.driver == DRIVER and one.spec.nodeName and one.spec.devices
    )


def manifest(text: str, path: str) -> Manifest:
    """The objects of the site's kustomization, as kubectl prints them: JSON one after the other.

    Raises WordedUserError where there is not one Job that has an image and asks for GPUs, and
    WordedError.
    """
    jobs: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for one in _documents(text):
        (jobs if one.get("kind") == "Job" else others).append(one)
    if len(jobs) != 1:
        raise WordedUserError(
            english(
                "kubernetes_jobs",
                "{path}: holds {count} Jobs in place of one: make it from an overlay of "
                "deploy/kubernetes",
            ),
            path=path,
            count=len(jobs),
        )
    try:
        found = Manifest(jobs[0], tuple(others))
        containers = _pod(found.job)["containers"]
        if any(re.split("[:@]", one["image"])[0] == PLACEHOLDER for one in containers):
            raise WordedUserError(
                english(
                    "kubernetes_no_image",
                    "{path}: names no image: set newName of the image rigproof to that of your "
                    "registry",
                ),
                path=path,
            )
        if not found.claims and not any(_limits(one) for one in containers):
            raise WordedUserError(
                english(
                    "kubernetes_asks_no_gpus",
                    "{path}: its Job asks for no GPUs: add the component device-plugin or dra of "
                    "deploy/kubernetes",
                ),
                path=path,
            )
    except (KeyError, TypeError, AttributeError) as error:
        raise WordedUserError(
            english(
                "kubernetes_no_job",
                "{path}: its Job is none ({why}): make it from an overlay of deploy/kubernetes",
            ),
            path=path,
            why=str(error),
        ) from error
    return found


def choose(
    cluster: Iterable[Node],
    names: Collection[str] | None,
    devices: Collection[str] | None,
    jobs: Mapping[str, str],
    tested: Mapping[str, Row],
) -> tuple[tuple[Node, ...], tuple[Refusal, ...]]:
    """The nodes to test, and those that are not tested with the reason.

    `names` are the nodes that are due; without them, those with GPUs. `devices` are the nodes with
    GPUs of the DRA driver, None where the device plugin counts them. `jobs` are our Jobs that have
    not ended, `tested` the rows of fresh verdicts, both by node.
    """
    chosen: list[Node] = []
    refused: list[Refusal] = []
    there: set[str] = set()
    for node in cluster:
        there.add(node.name)
        has_any = node.name in devices if devices is not None else node.all_gpus > 0
        if node.name not in names if names is not None else not has_any:
            continue
        has_free = has_any if devices is not None else node.gpus > 0
        if node.name in tested:
            row = tested[node.name]
            about = row.proof if row.verdict == "PASS" else None
            why = Message(
                english("kubernetes_fresh", "its fresh verdict is {verdict}[: {about}]"),
                known(verdict=row.verdict, about=about),
            )
            refused.append(Refusal(node.name, why, harmless=True))
        elif node.name in jobs:
            why = Message(
                english("kubernetes_job_there", "the Job {job} has not ended"),
                {"job": jobs[node.name]},
            )
            refused.append(Refusal(node.name, why, harmless=True))
        elif node.obstacle:
            refused.append(Refusal(node.name, node.obstacle))
        elif not has_free:
            refused.append(
                Refusal(
                    node.name,
                    Message(english("kubernetes_no_gpus", "none of its GPUs can be allocated")),
                )
            )
        else:
            chosen.append(node)
    for name in names or ():
        if name not in there:
            refused.append(
                Refusal(
                    name, Message(english("kubernetes_no_node", "the cluster has no such node"))
                )
            )
    return tuple(chosen), tuple(refused)


def labels(
    due: Iterable[str], standings: Mapping[str, VerdictWord]
) -> dict[VerdictWord, tuple[str, ...]]:
    """The nodes by their word; UNJUDGED of a node without a verdict."""
    found = grouped((standings.get(name, "UNJUDGED"), name) for name in due)
    return {word: tuple(named) for word, named in found.items()}


def taints(
    cluster: Iterable[Node], standings: Mapping[str, VerdictWord]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The nodes that get our taint, and those that lose it.

    A FAIL gives it, and a fresh PASS alone takes it away: a repaired node has to show that it is.
    """
    known = tuple(cluster)
    given = [one.name for one in known if not one.failed and standings.get(one.name) == "FAIL"]
    taken = [one.name for one in known if one.failed and standings.get(one.name) == "PASS"]
    return tuple(given), tuple(taken)


def job(found: Manifest, node: Node, last: str | None) -> dict[str, Any]:
    """The Job that tests a node, pinned to it, with all its GPUs.

    `last` is the uid of the node's newest Job, which has ended; None where it had none. The name
    follows from it alone: calls at the same moment make the same Job, which the API has once, and
    the next Job has another name (`kubectl apply` of a name that has ended would do nothing).
    """
    made: dict[str, Any] = copy.deepcopy(dict(found.job))
    short = label(node.name)
    meta, template = made["metadata"], made["spec"]["template"]
    meta["name"] = f"rigproof-{short}-{hashlib.sha256((last or '').encode()).hexdigest()[:8]}"
    for one in (meta, template.setdefault("metadata", {})):
        one["annotations"] = {**one.get("annotations", {}), NODE: node.name}
    pod = template["spec"]
    # rigproof takes it for the machine's id where the image has none: the same every night.
    pod["hostname"] = short
    affinity = pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    field = {"key": "metadata.name", "operator": "In", "values": [node.name]}
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [field]}]
    }
    for container in pod["containers"]:
        if limits := _limits(container):
            limits[GPU] = str(node.gpus)
            if GPU in (requests := container["resources"].get("requests", {})):
                requests[GPU] = str(node.gpus)
    return made


def label(name: str) -> str:
    """A node's name as a DNS label of 30 letters at most, one for each node."""
    plain = name.replace(".", "-")
    if plain == name and len(name) <= _NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:7]
    return f"{plain[: _NAME - 8].rstrip('-')}-{digest}"


def as_list(objects: Iterable[Mapping[str, Any]]) -> str:
    """Objects as one document for `kubectl apply`."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def _pod(found: Mapping[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = found["spec"]["template"]["spec"]
    return pod


def _limits(container: Mapping[str, Any]) -> dict[str, str] | None:
    """The limits of a container that asks the device plugin for GPUs."""
    limits: dict[str, str] = container.get("resources", {}).get("limits", {})
    return limits if GPU in limits else None


def _documents(text: str) -> list[dict[str, Any]]:
    """JSON objects one after the other, and those of Lists. Raises WordedError."""
    decoder, found, place = json.JSONDecoder(), [], 0
    text = text.strip()
    while place < len(text):
        try:
            one, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise WordedError("kubernetes_unread", what="patch --local", why=str(error)) from error
        if not isinstance(one, dict):
            why = f"not an object: {plain_text.quote(text)}"
            raise WordedError("kubernetes_unread", what="patch --local", why=why)
        found.append(one)
        place += len(text[place:]) - len(text[place:].lstrip())
    return found


def _decode(text: str, kind: type[Read], what: str) -> tuple[Read, ...]:
    """The objects of a list that kubectl printed. Raises WordedError."""
    try:
        return msgspec.json.decode(text, type=_List[kind]).items  # type: ignore[valid-type]
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise WordedError("kubernetes_unread", what=what, why=str(error)) from error
