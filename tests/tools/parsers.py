"""The parser of every tool in the recordings' index."""

from __future__ import annotations

from acceptance.tools import TOOLS
from acceptance.tools.read import topo

# The index tells the two matrices apart, which `rigproof read topo` takes both.
PARSERS = {tool.name: tool.parse for tool in TOOLS if tool.name != "topo"} | {
    "topo-m": topo.parse,
    "topo-p2p": topo.parse_p2p,
}
