"""The image itself, on a real engine.

Builds it where it is not here yet (minutes), so that a run of these tests alone is enough.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from acceptance.__main__ import main
from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.station.image import build, inputs, network, recipe
from acceptance.station.image import engine as image_engine
from acceptance.station.image.base import BOOTSTRAPPED
from acceptance.station.image.engine import BuildEngine
from acceptance.station.image.record import ImageRef

pytestmark = [pytest.mark.docker, pytest.mark.timeout(3600)]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def engine() -> BuildEngine:
    return image_engine.find()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> ImageRef:
    return build.build(
        log_dir=tmp_path_factory.mktemp("logs"), say=print, deadline=Deadline.after(3000.0)
    )


def inside(
    engine: BuildEngine, built: ImageRef, *argv: str, user: str = "12345:12345"
) -> command.ProgramResult:
    grants = [
        "--rm",
        "--network",
        "none",
        "--read-only",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--tmpfs",
        "/tmp",
    ]
    return engine.ask("run", *grants, "--user", user, built.tag, *argv, seconds=120.0)


def test_an_image_that_is_here_is_found_without_a_word(built: ImageRef, tmp_path: Path) -> None:
    said: list[str] = []
    again = build.build(log_dir=tmp_path, say=said.append, deadline=Deadline.after(60.0))
    assert (again.id, again.built, said, list(tmp_path.iterdir())) == (built.id, False, [], [])


def test_every_pin_and_every_proof_is_told(built: ImageRef) -> None:
    pins = inputs.read_pins((ROOT / inputs.PINS).read_text())
    told = {(pin.place, pin.name): pin.pinned for pin in built.pins}
    for pin in pins:
        if pin.place in ("trixie", "sid") or pin.name == "torch":
            assert told[pin.place, pin.name] == pin.version
    assert {
        "gpu-burn",
        "nvbandwidth",
        "deviceQuery",
        "bandwidthTest",
        "p2pBandwidthLatencyTest",
    } <= set(built.contents.proofs)
    assert built.contents.python["torch"] == inputs.pinned_version(pins, "pypi", "torch")


def test_the_harness_and_torch_run_as_any_user_with_nothing_granted(
    engine: BuildEngine, built: ImageRef
) -> None:
    assert inside(engine, built, "rigproof", "--version").stdout.startswith("rigproof ")
    done = inside(
        engine,
        built,
        "python",
        "-c",
        "import getpass, torch; print(torch.version.cuda, getpass.getuser())",
    )
    assert done.stdout.split() == ["12.8", "rigproof"], done.last_lines()


def test_nothing_of_the_building_is_in_the_image(engine: BuildEngine, built: ImageRef) -> None:
    """Certificates, proxy settings, mirrors, package lists, stand-in libraries: neither in its
    history nor in its files.

    The image starts from scratch and no layer takes anything away again, so that its files are all
    there is in its layers. certifi's list of public authorities belongs to the harness's own
    dependencies, and came from PyPI.
    """
    history = engine.ask("history", "--no-trunc", "--format", "{{.CreatedBy}}", built.tag).stdout
    config = engine.ask("image", "inspect", "--format", "{{json .Config}}", built.tag).stdout
    for word in ("proxy", "/build", "ca.crt", "MIRROR", "PIP_", "://"):
        assert word not in history
        assert word not in config
    script = r"""
        grep -rlsF -e '-----BEGIN CERTIFICATE-----' --include='*.crt' --include='*.pem' --include='*.txt' --include='*.conf' \
            --exclude-dir=proc --exclude-dir=sys --exclude-dir=certifi /
        ls -d /build /stubs /etc/apt/sources.list /etc/pip.conf /root/.config /root/.cache /usr/local/cuda*/compat 2>/dev/null
        find /etc/apt/sources.list.d /var/lib/apt/lists /var/cache/apt -type f
        find / -xdev -perm /6000 -type f
        grep -rlsiE '(http|https|no)_proxy *=|Acquire::https?' /etc
        true
    """  # noqa: E501
    assert inside(engine, built, "sh", "-c", script, user="0:0").stdout == ""


def rebuilt(engine: BuildEngine, built: ImageRef, context: Path, tag: str) -> list[str]:
    """Digests of the layers of an image built from this context, as `make image` builds."""
    bases = {
        name: built.base if "trixie" in built.base else other
        for name, other in (("base", built.base), ("tools_base", BOOTSTRAPPED))
    }
    settings = recipe.proxies(os.environ) | recipe.mirrors(os.environ)
    bridge, mtu = engine.bridge_mtu()
    facts = network.NetworkFacts(
        engine.local,
        bridge,
        mtu,
        network.host_mtu(Path("/")),
        network.resolvers(Path("/")),
        recipe.proxies(os.environ),
    )
    argv = recipe.build(
        docker=engine.docker,
        buildkit=engine.buildkit,
        context=context,
        tag=tag,
        **bases,
        network=network.choose(facts)[0],
        handed_in=tuple(settings),
        labels={},
    )
    done = command.run(
        argv,
        deadline=Deadline.after(1700.0),
        env=settings | recipe.builder_environment(engine.buildkit),
    )
    assert done.returncode == 0, done.last_lines()
    layers = engine.ask("image", "inspect", "--format", "{{json .RootFS.Layers}}", tag).stdout
    return layers.strip().strip("[]").split(",")


def test_a_change_of_the_harness_changes_only_its_layers(
    engine: BuildEngine, built: ImageRef, tmp_path: Path
) -> None:
    """Of two builds, one after the other. The image of this checkout is not one of them: the build
    of another checkout since may have taken over its stages, and then all is built anew."""
    context = tmp_path / "context"
    bundle = recipe.ca_bundle(os.environ, Path("/"))
    inputs.lay_out(inputs.files(ROOT), "1.2.3", bundle, context)
    tags = ("rigproof-test:unchanged", "rigproof-test:harness")
    try:
        first = rebuilt(engine, built, context, tags[0])
        changed = context / "source/acceptance/journal/clock.py"
        changed.write_text(changed.read_text() + "# changed\n")
        second = rebuilt(engine, built, context, tags[1])
        assert len(first) == len(second)
        assert [a == b for a, b in zip(first, second, strict=True)] == [True] * 4 + [False] * (
            len(first) - 4
        )
    finally:
        for tag in tags:
            engine.ask("rmi", tag)
        build.tidy(engine, None, print)


@pytest.fixture
def mute_registry() -> Iterator[str]:
    """A registry that takes connections and never answers; its address."""
    held = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                try:
                    held.append(server.accept()[0])
                except TimeoutError:
                    continue

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        over.set()
        thread.join()
        for connection in held:
            connection.close()


def test_a_registry_that_hangs_does_not_hang_us(
    mute_registry: str, tmp_path: Path, built: ImageRef
) -> None:
    began = time.monotonic()
    with pytest.raises(
        SetupError, match="cannot be pulled: the registry did not answer within 2 s"
    ):
        build.build(
            log_dir=tmp_path,
            say=print,
            deadline=Deadline.after(60.0),
            base=f"{mute_registry}/some/base:1",
            answer_s=2.0,
        )
    assert time.monotonic() - began < 30.0


def test_an_engine_that_runs_is_left_as_it_is(engine: BuildEngine) -> None:
    before = engine.ask("info", "--format", "{{.ID}} {{.ServerVersion}}").stdout
    done = command.run([str(ROOT / "scripts/engine")], deadline=Deadline.after(60.0))
    assert done.returncode == 0
    assert done.stderr.startswith("rigproof: the Docker engine ")
    assert len(done.stderr.splitlines()) <= 2
    assert engine.ask("info", "--format", "{{.ID}} {{.ServerVersion}}").stdout == before


def test_no_unnamed_image_of_ours_stays(engine: BuildEngine, built: ImageRef) -> None:
    """Except those that are in use: by a container, or by an image that somebody built on them."""
    if engine.buildkit:
        pytest.skip("BuildKit keeps no stages as images")
    for stage in build.KEPT:
        assert engine.image_id(f"{build.STAGE_NAME}:{stage}"), stage
    for stage in build.STAGES:
        assert engine.images(f"{recipe.LABELS}.stage={stage}", unnamed=True) == (), stage


def test_the_image_goes_through_a_file(
    engine: BuildEngine, built: ImageRef, capsys: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(prefix="rigproof-image-", dir="/var/tmp") as folder:
        file = f"{folder}/image.tar"
        for verb in ("save", "load"):
            assert main(["image", verb, file]) == 0
            assert capsys.readouterr().out == f"{built.tag} {built.id}\n"
    assert engine.image_id(built.tag) == built.id
