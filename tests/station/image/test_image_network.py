from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from acceptance.station.image import network
from acceptance.station.image.network import NetworkFacts

PLAIN = NetworkFacts(
    local=True, bridge=True, bridge_mtu=1500, host_mtu=1500, resolvers=("10.0.0.1",), proxies={}
)


@pytest.mark.parametrize(
    "facts",
    [
        PLAIN,
        replace(PLAIN, resolvers=("127.0.0.53",)),
        replace(PLAIN, host_mtu=9000),
        replace(PLAIN, bridge_mtu=None, host_mtu=None),
        replace(
            PLAIN,
            proxies={"http_proxy": "http://proxy.example:3128", "no_proxy": "localhost,127.0.0.1"},
        ),
        replace(
            PLAIN,
            local=False,
            bridge=False,
            host_mtu=1280,
            proxies={"http_proxy": "http://127.0.0.1:1"},
        ),
    ],
)
def test_the_engines_own_network_where_nothing_speaks_against_it(facts: NetworkFacts) -> None:
    assert network.choose(facts) == (None, None)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(PLAIN, bridge=False), "no bridge network"),
        (
            replace(PLAIN, host_mtu=1400),
            r"may be larger \(1500\) than this host's way out takes \(1400\)",
        ),
        (replace(PLAIN, resolvers=("10.0.0.1", "127.0.0.1")), r"name server .* \(127.0.0.1\)"),
        (replace(PLAIN, resolvers=("::1",)), r"name server .* \(::1\)"),
        (
            replace(PLAIN, proxies={"https_proxy": "http://u:p@127.0.0.1:3128"}),
            "proxy of https_proxy",
        ),
        (replace(PLAIN, proxies={"http_proxy": "localhost:3128"}), "proxy of http_proxy"),
        (replace(PLAIN, proxies={"http_proxy": "http://[::1]:3128/"}), "proxy of http_proxy"),
    ],
)
def test_the_hosts_network_where_the_engines_cannot_work(facts: NetworkFacts, why: str) -> None:
    chosen, said = network.choose(facts)
    assert chosen == "host"
    assert said is not None
    assert re.search(why, said)


def test_the_hosts_facts_are_read(tmp_path: Path) -> None:
    for name, text in {
        "etc/resolv.conf": "# x\nsearch a.b\nnameserver 10.0.0.1\n nameserver fd00::1\n",
        "proc/net/route": (
            "Iface\tDestination\tGateway\neth1\t0002000A\t0\neth0\t00000000\t0102000A\n"
        ),
        "sys/class/net/eth0/mtu": "1400\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert network.resolvers(tmp_path) == ("10.0.0.1", "fd00::1")
    assert network.host_mtu(tmp_path) == 1400


@pytest.mark.parametrize(
    "routes",
    [None, "Iface\n", "Iface\neth1\t0002000A\t0\n", "Iface\neth9\t00000000\n", "Iface\nx\n"],
)
def test_facts_that_cannot_be_read_are_absent(tmp_path: Path, routes: str | None) -> None:
    if routes is not None:
        (tmp_path / "proc/net").mkdir(parents=True)
        (tmp_path / "proc/net/route").write_text(routes)
    assert network.resolvers(tmp_path) == ()
    assert network.host_mtu(tmp_path) is None
