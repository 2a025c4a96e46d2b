"""Made-up clusters, as `kubectl get ... -o json` prints them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]
CREATED = "2026-11-26T01:00:00Z"


def node(
    name: str,
    gpus: int = 8,
    *,
    all_gpus: int | None = None,
    ready: str = "True",
    cordoned: bool = False,
    taint: str | None = None,
) -> Object:
    """A node with GPUs of the device plugin; `gpus` are those that it lends."""
    counts = (gpus, gpus if all_gpus is None else all_gpus)
    allocatable, capacity = (
        {"cpu": "64"} | ({"nvidia.com/gpu": str(count)} if count else {}) for count in counts
    )
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {
            "podCIDR": "10.0.0.0/24",
            **({"unschedulable": True} if cordoned else {}),
            **({"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {}),
        },
        "status": {
            "allocatable": allocatable,
            "capacity": capacity,
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasMemory"},
                {"type": "Ready", "status": ready, "reason": "KubeletReady"},
            ],
            "images": [],
        },
    }


def job(name: str, node: str | None, *, ended: str | None = None, at: str = CREATED) -> Object:
    """A Job with our label; `ended` is the condition that ended it, `at` when it was made."""
    conditions = [{"type": ended, "status": "True"}] if ended else []
    notes = {"rigproof/node": node} if node else {}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": at,
            "annotations": notes,
        },
        "spec": {},
        "status": {"conditions": [{"type": "Suspended", "status": "False"}, *conditions]},
    }


def created(applied: Object, *, ended: str | None = None) -> Object:
    """What the API makes of a Job that is applied."""
    made = job(applied["metadata"]["name"], None, ended=ended)
    return {**made, **applied, "metadata": {**made["metadata"], **applied["metadata"]}}


def devices(node: str | None, driver: str = "gpu.nvidia.com", count: int = 8) -> Object:
    """A ResourceSlice of the DRA driver."""
    spec: Object = {"driver": driver, "devices": [{"name": f"gpu-{n}"} for n in range(count)]}
    return {"metadata": {"name": "s"}, "spec": spec | ({"nodeName": node} if node else {})}


def as_list(items: Iterable[Object]) -> str:
    """What kubectl prints of these objects."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
