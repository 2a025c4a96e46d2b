"""The network of the build's steps: the engine's own, or the host's where that cannot work."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """The facts for the choice.

    `local`: the engine runs on this host, so this host's settings are the engine's. An MTU is in
    bytes.
    """

    local: bool
    bridge: bool
    bridge_mtu: int | None
    host_mtu: int | None
    resolvers: tuple[str, ...]
    proxies: Mapping[str, str]


def choose(facts: NetworkFacts) -> tuple[str | None, str | None]:
    """The network to request (None: the engine's own) and, where it is the host's, the reason."""
    if not facts.local:
        return None, None
    if not facts.bridge:
        return "host", "the engine has no bridge network"
    for name, value in facts.proxies.items():
        if not name.lower().startswith("no") and _loopback(_host(value)):
            return "host", f"the proxy of {name.lower()} listens on this host's loopback address"
    # Engines replace systemd-resolved's address with the servers behind it, and any other loopback
    # address with public servers.
    for address in facts.resolvers:
        if _loopback(address) and address != "127.0.0.53":
            return "host", f"this host's name server is on its loopback address ({address})"
    if facts.bridge_mtu and facts.host_mtu and facts.host_mtu < facts.bridge_mtu:
        return (
            "host",
            (
                f"packets on the engine's bridge may be larger ({facts.bridge_mtu}) than this "
                f"host's way out takes ({facts.host_mtu})"
            ),
        )
    return None, None


def _host(proxy: str) -> str:
    return urlsplit(proxy if "//" in proxy else f"//{proxy}").hostname or ""


def _loopback(host: str) -> bool:
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", host) is not None


def resolvers(root: Path) -> tuple[str, ...]:
    """The name servers in this host's resolv.conf; none where it cannot be read."""
    try:
        text = (root / "etc/resolv.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(re.findall(r"^\s*nameserver\s+(\S+)", text, re.MULTILINE))


def host_mtu(root: Path) -> int | None:
    """The MTU of the interface of the default route; None where there is no such route."""
    try:
        routes = (root / "proc/net/route").read_text(encoding="ascii").splitlines()[1:]
        device = next(words[0] for words in map(str.split, routes) if words[1] == "00000000")
        return int((root / "sys/class/net" / device / "mtu").read_text(encoding="ascii"))
    except (OSError, StopIteration, IndexError, ValueError):
        return None
