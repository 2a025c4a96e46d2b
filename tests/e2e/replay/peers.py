"""Stands in for p2pBandwidthLatencyTest of the CUDA samples."""

from __future__ import annotations

from collections.abc import Callable

import seen

Cell = Callable[[seen.Gpu, seen.Gpu], float]
NOTE = """
***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal memcopy procedure.
So you can see lesser Bandwidth (GB/s) and unstable Latency (us) in those cases.

P2P Connectivity Matrix
"""  # noqa: E501


def table(label: str, gpus: list[seen.Gpu], cell: Cell, form: str = "{:6.02f}") -> str:
    rows = [f"{label}" + "".join(f"{index:6d} " for index in range(len(gpus)))]
    for index, first in enumerate(gpus):
        rows.append(
            f"{index:6d} " + "".join(form.format(cell(first, second)) + " " for second in gpus)
        )
    return "\n".join(rows) + "\n"


def main() -> None:
    machine, how = seen.machine(), seen.fault("p2pBandwidthLatencyTest")
    seen.misbehave(how)
    gpus = seen.gpus(machine)

    def rate(on: bool, both: bool) -> Cell:
        def cell(a: seen.Gpu, b: seen.Gpu) -> float:
            if a is b:
                return seen.wobble(1.95 * seen.figures(a).local, a.index, int(on))
            if on and how == "dead pair" and gpus.index(b) == seen.SICK:
                return 0.0
            found = (
                seen.peer_rate(machine, a, b)
                if on and how != "gains nothing"
                else seen.staged_rate(a, b)
            )
            found *= 3.0 if how == "is too fast" and on else 1.0
            if how == "takes the long way":
                found = 0.5 * seen.staged_rate(a, b)
            return seen.wobble(
                found * (1.9 if on and both else 1.4 if both else 1.0), a.index, b.index, int(on)
            )

        return cell

    def latency(on: bool) -> Cell:
        def cell(a: seen.Gpu, b: seen.Gpu) -> float:
            return (
                1.4
                if a is b
                else 2.1
                if on and seen.peers(machine, a, b)
                else seen.wobble(14.0, a.index, b.index)
            )

        return cell

    parts = ["[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"]
    for index, gpu in enumerate(gpus):
        domain, bus, slot = (
            int(part, 16) for part in gpu.readings["pci_bus_id"].partition(".")[0].split(":")
        )
        parts.append(
            f"Device: {index}, {gpu.readings['name']}, pciBusID: {bus:x}, pciDeviceID: "
            f"{slot:x}, pciDomainID:{domain:x}\n"
        )
    for a in gpus:
        for b in gpus:
            if a is not b:
                can = "CAN" if seen.peers(machine, a, b) else "CANNOT"
                parts.append(f"Device={gpus.index(a)} {can} Access Peer Device={gpus.index(b)}\n")
    parts += [
        NOTE,
        table(
            "     D\\D", gpus, lambda a, b: float(a is b or seen.peers(machine, a, b)), "{:6.0f}"
        ),
    ]
    for title, on, both in (
        ("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)", False, False),
        ("Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)", True, False),
        ("Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)", False, True),
        ("Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", True, True),
    ):
        parts += [f"{title}\n", table("   D\\D", gpus, rate(on, both))]
    for title, on in (
        ("P2P=Disabled Latency Matrix (us)", False),
        ("P2P=Enabled Latency (P2P Writes) Matrix (us)", True),
    ):
        parts += [
            f"{title}\n",
            table("   GPU", gpus, latency(on)),
            "\n",
            table("   CPU", gpus, lambda a, b: 2.0 + 3.2 * (a is not b)),
        ]
    text = "".join(parts)
    seen.leave(text[: len(text) // 2] if how == "is truncated" else text)


if __name__ == "__main__":
    main()
