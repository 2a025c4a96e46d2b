from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import each

from acceptance.station.image import recipe


def build(
    *, buildkit: bool = False, network: str | None = None, handed_in: tuple[str, ...] = ()
) -> list[str]:
    return recipe.build(
        docker="/usr/bin/docker",
        buildkit=buildkit,
        context=Path("/ctx"),
        tag="rigproof:0123",
        base="some/base:1",
        tools_base="debian:x",
        network=network,
        handed_in=handed_in,
        labels={"org.rigproof.inputs": "abc"},
    )


_HEAD = [
    "/usr/bin/docker",
    "build",
    "--tag",
    "rigproof:0123",
    "--file",
    "/ctx/containers/Dockerfile",
]
_ARGS = ["--build-arg", "BASE=some/base:1", "--build-arg", "TOOLS_BASE=debian:x"]
_END = ["--label", "org.rigproof.inputs=abc", "/ctx"]


@each(
    "asked, options, names",
    [
        ({}, ["--force-rm"], []),
        ({"buildkit": True}, ["--progress", "plain", "--provenance", "false", "--load"], []),
        (
            {"network": "host", "handed_in": ("http_proxy", "PIP_INDEX_URL")},
            ["--force-rm", "--network", "host"],
            ["--build-arg", "http_proxy", "--build-arg", "PIP_INDEX_URL"],
        ),
    ],
)
def test_what_the_builder_is_asked(
    asked: dict[str, Any], options: list[str], names: list[str]
) -> None:
    """No value that is handed in is on the command line."""
    assert build(**asked) == [*_HEAD, *options, *_ARGS, *names, *_END]


@pytest.mark.parametrize(("buildkit", "value"), [(True, "1"), (False, "0")])
def test_the_builder_is_chosen_by_us(buildkit: bool, value: str) -> None:
    assert recipe.builder_environment(buildkit) == {"DOCKER_BUILDKIT": value}


def test_proxies_are_handed_in_under_both_spellings() -> None:
    environment = {
        "HTTPS_PROXY": "http://p:1",
        "no_proxy": "localhost",
        "http_proxy": "",
        "OTHER": "x",
    }
    assert recipe.proxies(environment) == {
        "https_proxy": "http://p:1",
        "HTTPS_PROXY": "http://p:1",
        "no_proxy": "localhost",
        "NO_PROXY": "localhost",
    }
    assert recipe.proxies({}) == {}


def test_the_small_spelling_wins_as_it_does_in_curl() -> None:
    assert recipe.proxies({"http_proxy": "a", "HTTP_PROXY": "b"}) == {
        "http_proxy": "a",
        "HTTP_PROXY": "a",
    }


def test_only_mirrors_that_were_named_are_handed_in() -> None:
    assert recipe.mirrors(
        {"DEBIAN_MIRROR": "http://m/debian", "UBUNTU_MIRROR": "", "HOME": "/"}
    ) == {"DEBIAN_MIRROR": "http://m/debian"}


def test_the_users_certificates_come_before_the_distributions(tmp_path: Path) -> None:
    own, other = tmp_path / "own.pem", tmp_path / "other.pem"
    system = tmp_path / "etc/ssl/certs/ca-certificates.crt"
    system.parent.mkdir(parents=True)
    for path in (own, other, system):
        path.write_text("x")
    assert recipe.ca_bundle({"SSL_CERT_FILE": str(other), "PIP_CERT": str(own)}, tmp_path) == own
    assert recipe.ca_bundle({"SSL_CERT_FILE": str(other)}, tmp_path) == other
    assert recipe.ca_bundle({"PIP_CERT": str(tmp_path / "gone.pem")}, tmp_path) == system
    system.unlink()
    assert recipe.ca_bundle({}, tmp_path) is None


def test_a_commit_that_is_not_known_has_no_label() -> None:
    known = recipe.labels(inputs="i", pins="p", base="b", commit="c")
    assert known["org.opencontainers.image.revision"] == "c"
    assert recipe.labels(inputs="i", pins="p", base="b", commit=None) == {
        "org.rigproof.inputs": "i",
        "org.rigproof.pins": "p",
        "org.rigproof.base": "b",
        "org.opencontainers.image.title": "rigproof",
    }


def test_debian_is_bootstrapped_with_its_signatures_checked() -> None:
    argv = ["/usr/sbin/debootstrap", "--force-check-gpg", "--variant=minbase", "trixie", "/x"]
    assert recipe.bootstrap("/usr/sbin/debootstrap", Path("/x"), None) == argv
    assert recipe.bootstrap("/usr/sbin/debootstrap", Path("/x"), "http://m/debian") == [
        *argv,
        "http://m/debian",
    ]
