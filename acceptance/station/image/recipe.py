"""Command lines for the image, and the host's settings that enter it.

Pure, except that it looks for files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# pip's own variable first, because pip needs the certificates most
_CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
_CA_FILES = (
    "etc/ssl/certs/ca-certificates.crt",
    "etc/pki/tls/certs/ca-bundle.crt",
    "etc/ssl/ca-bundle.pem",
)
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
MIRRORS = ("DEBIAN_MIRROR", "DEBIAN_SID_MIRROR", "UBUNTU_MIRROR", "PIP_INDEX_URL")
LABELS = "org.rigproof"
# Sizes of a cold build, measured (containers/README.md); a new harness alone takes little.
DOWNLOAD_BYTES = 4.4e9
IMAGE_BYTES = 8e9
STAGES_BYTES = 10e9
REBUILD_BYTES = 2e9


def ca_bundle(environment: Mapping[str, str], root: Path) -> Path | None:
    """The host's file of trusted certificates; None where there is no such file.

    The file that the user named for pip, requests, curl or OpenSSL, else the distribution's. A
    variable that names a missing file is ignored here; the programs that use it complain
    themselves.
    """
    named = [Path(environment[name]) for name in _CA_VARIABLES if environment.get(name)]
    return next(
        (path for path in [*named, *(root / name for name in _CA_FILES)] if path.is_file()), None
    )


def proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """The host's proxy settings in both spellings.

    apt reads only the lower-case one, other programs either.
    """
    settings = {}
    for name in _PROXIES:
        if value := environment.get(name) or environment.get(name.upper()):
            settings[name] = settings[name.upper()] = value
    return settings


def mirrors(environment: Mapping[str, str]) -> dict[str, str]:
    """The mirrors that the user named, by build argument."""
    return {name: environment[name] for name in MIRRORS if environment.get(name)}


def build(
    *,
    docker: str,
    buildkit: bool,
    context: Path,
    tag: str,
    base: str,
    tools_base: str,
    network: str | None,
    handed_in: tuple[str, ...],
    labels: Mapping[str, str],
) -> list[str]:
    """The build's command line.

    `handed_in` are names of variables whose values the engine's client takes from its environment:
    a proxy's password or a mirror's token is then in no process list.
    """
    argv = [docker, "build", "--tag", tag, "--file", str(context / "containers" / "Dockerfile")]
    # Attestations would turn the image into an index, and record the build arguments.
    argv += (
        ["--progress", "plain", "--provenance", "false", "--load"] if buildkit else ["--force-rm"]
    )
    argv += ["--network", network] if network else []
    argv += ["--build-arg", f"BASE={base}", "--build-arg", f"TOOLS_BASE={tools_base}"]
    for name in handed_in:
        argv += ["--build-arg", name]
    for key, value in labels.items():
        argv += ["--label", f"{key}={value}"]
    return [*argv, str(context)]


def builder_environment(buildkit: bool) -> dict[str, str]:
    """The environment that selects the builder, whatever the user's own setting."""
    return {"DOCKER_BUILDKIT": "1" if buildkit else "0"}


def labels(*, inputs: str, pins: str, base: str, commit: str | None) -> dict[str, str]:
    """The image's labels; an unknown commit is absent."""
    known = {
        f"{LABELS}.inputs": inputs,
        f"{LABELS}.pins": pins,
        f"{LABELS}.base": base,
        "org.opencontainers.image.title": "rigproof",
        "org.opencontainers.image.revision": commit,
    }
    return {key: value for key, value in known.items() if value is not None}


def bootstrap(debootstrap: str, target: Path, mirror: str | None) -> list[str]:
    """The command line for a minimal Debian trixie, always with its signatures checked."""
    argv = [debootstrap, "--force-check-gpg", "--variant=minbase", "trixie", str(target)]
    return [*argv, mirror] if mirror else argv
