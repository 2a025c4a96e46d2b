"""deploy/kubernetes is what the API takes, and asks for no more than it says."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from kustomized import DEPLOY, Object, build, one, pod, site
from thoroughness import some

from acceptance.reports import verdict_json

# Those that upstream supports, and the older ones in which all but DRA is the same.
VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
DRA = VERSIONS[3:]  # resource.k8s.io/v1
OVERLAYS = ("least", "least-dra", "full", "full-dra")
FOLDERS = (
    "namespace",
    "namespace-full",
    "submit",
    "submit-labels",
    *(f"overlays/{name}" for name in OVERLAYS),
)
HOST_PATHS = {
    # path: whether the pod may write there
    "/dev/kmsg": False,
    "/sys": False,
    "/run/lock": True,
}


def validate(what: Object, version: str) -> None:
    """Hold an object against the API's schema, in which an unknown field is an error."""
    kubernetes_validate.validate(what, version, strict=True)


def versions(folder: str) -> tuple[str, ...]:
    return (*some(DRA if folder.endswith("-dra") else VERSIONS, 2),)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_object_is_what_the_api_takes(folder: str) -> None:
    objects = build(DEPLOY / folder)
    assert objects
    for version in versions(folder):
        for what in objects:
            validate(what, version)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_job_ends_by_itself_and_is_not_repeated(overlay: str) -> None:
    job = one(build(DEPLOY / "overlays" / overlay), "Job")["spec"]
    inside = job["template"]["spec"]
    assert (job["backoffLimit"], inside["restartPolicy"]) == (0, "Never")
    assert job["activeDeadlineSeconds"] > inside["activeDeadlineSeconds"] > 0
    assert inside["terminationGracePeriodSeconds"] >= 60
    assert inside["automountServiceAccountToken"] is False


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_shared_memory_is_memory(overlay: str) -> None:
    inside = pod(build(DEPLOY / "overlays" / overlay))
    mounts = {one["mountPath"]: one["name"] for one in inside["containers"][0]["volumeMounts"]}
    volumes = {one["name"]: one for one in inside["volumes"]}
    assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"


@pytest.mark.parametrize("overlay", ["least", "least-dra"])
def test_least_has_no_privilege(overlay: str) -> None:
    """What the strictest of the Pod Security Standards wants, which the namespace enforces."""
    inside = pod(build(DEPLOY / "overlays" / overlay))
    assert inside["securityContext"]["runAsNonRoot"] is True
    assert inside["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in inside["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
    assert not any("hostPath" in one for one in inside["volumes"])
    assert not {"hostPID", "hostNetwork", "hostIPC"} & set(inside)
    space = one(build(DEPLOY / "namespace"), "Namespace")
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("overlay", ["full", "full-dra"])
def test_full_has_the_host_paths_that_it_names(overlay: str) -> None:
    inside = pod(build(DEPLOY / "overlays" / overlay))
    (container,) = inside["containers"]
    assert container["securityContext"] == {"privileged": True, "readOnlyRootFilesystem": True}
    paths = {one["name"]: one["hostPath"] for one in inside["volumes"] if "hostPath" in one}
    # None is made where it is missing.
    assert {path["type"] for path in paths.values()} <= {"CharDevice", "Directory", "File"}
    writable = {
        paths[mount["name"]]["path"]: not mount.get("readOnly", False)
        for mount in container["volumeMounts"]
        if mount["name"] in paths
    }
    assert writable == HOST_PATHS
    space = one(build(DEPLOY / "namespace-full"), "Namespace")
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_all_gpus_by_device_plugin_or_claim() -> None:
    plugin = pod(build(DEPLOY / "overlays/full"))
    assert plugin["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert "resourceClaims" not in plugin
    objects = build(DEPLOY / "overlays/full-dra")
    inside, claim = pod(objects), one(objects, "ResourceClaimTemplate")
    assert "limits" not in inside["containers"][0]["resources"]
    assert inside["containers"][0]["resources"]["claims"] == [{"name": "gpus"}]
    (asked,) = inside["resourceClaims"]
    assert asked["resourceClaimTemplateName"] == claim["metadata"]["name"]
    (request,) = claim["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}


def test_waves_count_our_pods_which_give_way_to_all_others() -> None:
    space = build(DEPLOY / "namespace")
    priority, waves = one(space, "PriorityClass"), one(space, "ResourceQuota")
    assert priority["value"] < 0
    assert priority["preemptionPolicy"] == "Never"
    (scope,) = waves["spec"]["scopeSelector"]["matchExpressions"]
    assert scope["values"] == [priority["metadata"]["name"]]
    assert set(waves["spec"]["hard"]) == {"pods"}
    inside = pod(build(DEPLOY / "overlays/least"))
    assert inside["priorityClassName"] == priority["metadata"]["name"]
    assert inside["serviceAccountName"] == one(space, "ServiceAccount")["metadata"]["name"]


def test_a_test_has_no_network() -> None:
    policy = one(build(DEPLOY / "namespace"), "NetworkPolicy")["spec"]
    assert set(policy) == {"podSelector", "policyTypes"}  # nothing is allowed
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
    labels = one(build(DEPLOY / "overlays/least"), "Job")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()


def test_who_submits_may_not_change_a_node() -> None:
    rules = [
        rule
        for what in build(DEPLOY / "submit")
        if what["kind"] in ("Role", "ClusterRole")
        for rule in what["rules"]
    ]
    of_nodes = [set(rule["verbs"]) for rule in rules if "nodes" in rule["resources"]]
    assert of_nodes == [{"get", "list"}]
    assert not any("*" in {*rule["verbs"], *rule["resources"]} for rule in rules)


def documented(language: str, first: str) -> str:
    """A block of docs/kubernetes.md that begins with this line, without its indentation."""
    text = (DEPLOY.parents[1] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    (found,) = [textwrap.dedent(block) for _, block in blocks if block.lstrip().startswith(first)]
    return found


def test_the_site_of_the_documentation(tmp_path: Path) -> None:
    (tmp_path / "rigproof").symlink_to(DEPLOY.parents[1])
    (tmp_path / "machine.toml").write_text("schema = 1\n", encoding="utf-8")
    for name in ("kustomization.yaml", "site.yaml"):
        (tmp_path / name).write_text(documented("yaml", f"# {name}"), encoding="utf-8")
    objects = build(tmp_path)
    for what in objects:
        validate(what, VERSIONS[-1])
    inside = pod(objects)
    (container,) = inside["containers"]
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in inside["volumes"]}
    files = {each["metadata"]["name"]: each for each in objects if each["kind"] == "ConfigMap"}
    folder, _, name = container["args"][-1].rpartition("/")
    assert name in files[volumes[mounts[folder]]["configMap"]["name"]]["data"]
    assert container["image"].startswith("registry.example.org/rigproof:")
    # What the site does not patch is there still.
    assert mounts["/verdicts"] == "verdicts"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_folder_of_the_node_in_place_of_the_claim(tmp_path: Path) -> None:
    volumes = yaml.safe_load(documented("yaml", "volumes:"))
    patch = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "rigproof"},
        "spec": {"template": {"spec": volumes}},
    }
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(patch), encoding="utf-8")
    objects = build(site(tmp_path, more="patches: [{path: node.yaml}]\n"))
    validate(one(objects, "Job"), VERSIONS[-1])
    (verdicts,) = [each for each in pod(objects)["volumes"] if each["name"] == "verdicts"]
    assert verdicts["hostPath"] == {"path": "/var/lib/rigproof/verdicts", "type": "Directory"}
    assert "persistentVolumeClaim" not in verdicts


# node-problem-detector's own DaemonSet, but for what the component does not touch.
DETECTOR = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: node-problem-detector, namespace: kube-system}
spec:
  selector: {matchLabels: {app: node-problem-detector}}
  template:
    metadata: {labels: {app: node-problem-detector}}
    spec:
      containers:
        - name: node-problem-detector
          image: registry.k8s.io/node-problem-detector/node-problem-detector:v0.8.18
          volumeMounts:
            - {name: log, mountPath: /var/log, readOnly: true}
      volumes:
        - {name: log, hostPath: {path: /var/log}}
"""


def test_the_plugin_is_mounted_into_node_problem_detector(tmp_path: Path) -> None:
    (tmp_path / "detector.yaml").write_text(DETECTOR, encoding="utf-8")
    folder = site(tmp_path)
    text = (folder / "kustomization.yaml").read_text(encoding="utf-8")
    component = text[text.index("- ") + 2 :].splitlines()[0].replace("overlays/least", "")
    text = f"resources: [detector.yaml]\ncomponents: [{component}node-problem-detector]\n"
    (folder / "kustomization.yaml").write_text(text, encoding="utf-8")
    objects = build(folder)
    inside, files = one(objects, "DaemonSet")["spec"]["template"]["spec"], one(objects, "ConfigMap")
    for what in objects:
        validate(what, VERSIONS[-1])
    mounted = {each["name"]: each["mountPath"] for each in inside["containers"][0]["volumeMounts"]}
    assert mounted["log"] == "/var/log"
    volumes = {each["name"]: each for each in inside["volumes"]}
    assert volumes["rigproof"]["configMap"]["name"] == files["metadata"]["name"]
    plugin = json.loads(files["data"]["rigproof.json"])
    (rule,) = plugin["rules"]
    place, _, name = rule["path"].rpartition("/")
    assert mounted["rigproof"] == place
    assert name in files["data"]
    assert rule["args"][0] == mounted["verdicts"]
    assert [each["type"] for each in plugin["conditions"]] == [rule["condition"]]
    assert plugin["pluginConfig"]["max_output_length"] == 80
    # The detector does not set a condition whose initial status it skipped, and
    # gives the reason of health to an unknown status too.
    assert "skip_initial_status" not in plugin["pluginConfig"]
    assert "Pass" not in plugin["conditions"][0]["reason"]
    reader = (DEPLOY.parent / "slurm" / "verdict").read_text(encoding="utf-8")
    assert files["data"]["verdict"] == reader, "one reader for both engines"
    assert f'"schema": {verdict_json.SCHEMA},' in reader
