"""What drivers and kernels of several versions say, and what event each message is."""

from __future__ import annotations

import tomllib

import pytest
from cases import each
from event_lint import BOOK, problems
from kernel_texts import brief, lines

from acceptance import resources
from acceptance.observe import kernel_log
from acceptance.observe.event import RANK, table
from acceptance.observe.kernel_line import kernel_lines
from acceptance.tools.read import kernel_log as read_kernel_log

# Xid


@each(
    "line, expected",
    [
        (
            (
                "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 13, pid=9, name=a.out, Graphics SM Warp "
                "Exception"
            ),
            "xid 13 0000:3b:00.0 warning",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:0 GPU-CI:1): 43, pid=9, Ch 00000008",
            "xid 43 0000:3b:00.0 warning",
        ),
        ("NVRM: Xid (0000:3b:00): 62, 1b3f(2ab4) 00000000 00000000", "xid 62 0000:3b:00.0 fatal"),
        ("NVRM: Xid (003b:00): 8, Channel 0000001c", "xid 8 0000:3b:00.0 warning"),
        (
            "Xid (PCI:0000:3b:00): 48, pid=4, name=x, An uncorrectable double bit error (DBE)",
            "xid 48 0000:3b:00.0 fatal",
        ),
        (
            (
                "NVRM: Xid (PCI:00000000:3b:00): 64, Row Remapper Error: (0x10) - All reserved "
                "rows for bank are remapped"
            ),
            "xid 64 0000:3b:00.0 fatal",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 45, pid='<unknown>', name=<unknown>, Ch 00000008",
            "xid 45 0000:3b:00.0 warning",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 68, pid=1234, name=ffmpeg, Ch 00000010, engmask 00020100",
            "xid 68 0000:3b:00.0 warning",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:3b:00): 69, pid=1234, name=Xorg, Class Error: ChId 0010, "
                "Class 0000c5c0"
            ),
            "xid 69 0000:3b:00.0 warning",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 61, 0b82(3108) 00000000 00000000",
            "xid 61 0000:3b:00.0 error",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:3b:00): 63, Dynamic Page Retirement: New page retired, "
                "reload the driver"
            ),
            "xid 63 0000:3b:00.0 error",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 92, pid=1, High single-bit ECC error rate detected.",
            "xid 92 0000:3b:00.0 error",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 120, pid=7, GSP task timeout @ pc:0x187f8f6, task: 1",
            "xid 120 0000:3b:00.0 fatal",
        ),
        (
            "NVRM: Xid (PCI:0009:01:00): 121, pid=7, name=x, C2C Link corrected error on link 1",
            "xid 121 0009:01:00.0 warning",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 136, NVLink: Link training failed for links 0x8",
            "xid 136 0000:3b:00.0 error",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 137, pid=9, name=py, NVLINK: fault MMU Type: 0x1",
            "xid 137 0000:3b:00.0 warning",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:3b:00): 140, pid=7, unrecoverable ECC error detected "
                "(DRAM:0, SRAM:1)"
            ),
            "xid 140 0000:3b:00.0 fatal",
        ),
        ("NVRM: Xid (PCI:0000:3b:00): 143, Failed to initialize", "xid 143 0000:3b:00.0 fatal"),
        (
            (
                "NVRM: Xid (PCI:0018:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x0 0x0 "
                "0x0 0x0 0x0)"
            ),
            "xid 149 0018:01:00.0 fatal",
        ),
        (
            (
                "NVRM: Xid (PCI:0018:01:00): 149, pid=4, name=fatal, NETIR_BER_EVENT Nonfatal "
                "XC0 i0 Link 03"
            ),
            "xid 149 0018:01:00.0 warning",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 74, pid=4, NVLink: Link 5 went to an unexpected state",
            "xid 74 0000:3b:00.0 error",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 158, pid=4, name=x, GPU fatal timeout",
            "xid 158 0000:3b:00.0 fatal",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 171, An uncorrectable DRAM error",
            "xid 171 0000:3b:00.0 fatal",
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 191, something of a later driver",
            "xid 191 0000:3b:00.0 error",
        ),
    ],
)
def test_xid(line: str, expected: str) -> None:
    assert brief(lines(line)) == [expected]
    assert brief(lines(line, line)) == [expected] * 2


@pytest.mark.parametrize("stamp", ["[ 1843.308145] ", "Nov 20 10:11:12 n kernel: "])
def test_one_message_of_several_indented_lines(stamp: str) -> None:
    text = (
        f"{stamp}NVRM: The NVIDIA GPU 0000:b3:00.0\n{' ' * len(stamp)}NVRM: (PCI ID: 10de:26b5) "
        "installed in this system has\n"
        f"{' ' * len(stamp)}NVRM: fallen off the bus and is not responding to commands.\n"
    )
    assert brief(text) == ["gpu-lost bus 0000:b3:00.0 fatal"]
    assert read_kernel_log.events(text)[0].time == (
        1843.308145 if stamp.startswith("[") else "Nov 20 10:11:12"
    )


def test_an_xid_names_the_board() -> None:
    text = lines(
        "NVRM: GPU at PCI:0000:3b:00: GPU-00112233-4455-6677-8899-aabbccddeeff",
        "NVRM: GPU Board Serial Number: 1650000000001",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "NVRM: GPU 0000:5e:00.0: GPU has fallen off the bus.",
        "NVRM: GPU 0000:5e:00.0: GPU serial number is 1650000000002.",
        "NVRM: A GPU crash dump has been created. If possible, please run",
        "NVRM: nvidia-bug-report.sh as root to collect this data before",
        "NVRM: the NVIDIA kernel module is unloaded.",
    )
    first, second = read_kernel_log.events(text)
    assert first.text.endswith(
        "; GPU-00112233-4455-6677-8899-aabbccddeeff, board serial 1650000000001"
    )
    assert (second.kind, str(second.component)) == ("gpu-lost", "0000:5e:00.0")
    assert second.text.endswith("; board serial 1650000000002")


def test_complaints_before_an_xid_79_are_the_same_incident() -> None:
    text = lines(
        (
            "NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus "
            "[NV_ERR_GPU_IS_LOST] (0x0000000F) returned from x @ y.c:1"
        ),
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    )
    assert brief(text) == ["xid 79 0000:3b:00.0 fatal"]
    far = text.replace("\n", "\n" + lines("x") * 50, 1)
    assert brief(far) == ["gpu-lost bus None fatal", "xid 79 0000:3b:00.0 fatal"]


def test_severity_follows_the_catalog() -> None:
    rule = {
        "warning": {"IGNORE", "RESTART_APP", "WORKFLOW_XID_45", "UPDATE_SWFW"},
        "error": {"CONTACT_SUPPORT", "CHECK_MECHANICALS", "CHECK_UVM", "RESTART_VM", "XID_154"}
        | {"WORKFLOW_NVLINK_ERR", "WORKFLOW_NVLINK5_ERR"},
        "fatal": {"RESET_GPU", "RESTART_BM", "WORKFLOW_XID_48"},
    }
    for code, entry in table("xid")["xid"].items():
        assert ("immediate" in entry) == (int(code) < 162), code
        if "immediate" in entry:
            assert (entry["immediate"] in rule.get(entry["severity"], ())) == (
                "differs" not in entry
            ), code
    (event,) = read_kernel_log.events(
        "NVRM: Xid (PCI:0000:3b:00): 119, Timeout after 6s of waiting for RPC response"
    )
    assert event.advice.endswith("NVIDIA's catalog: RESET_GPU, then INVESTIGATE_SW.")
    (later,) = read_kernel_log.events("NVRM: Xid (PCI:0000:3b:00): 169, SEC2 halt")
    assert "catalog" not in later.advice


# NVSwitch


@each(
    "line, expected",
    [
        (
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 28 LTSSM Fault Up",
            "sxid 20034 0000:c1:00.0 fatal",
        ),
        (
            (
                "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 19084, Non-fatal, Link 29 AN1 "
                "Heartbeat Timeout Error (First)"
            ),
            "sxid 19084 0000:c1:00.0 error",
        ),
        (
            (
                "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 22013, Non-fatal, Link 60 Minion "
                "Link DLREQ interrupt"
            ),
            "sxid 22013 0000:c1:00.0 warning",
        ),
        (
            "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 12023, Non-fatal, Link 3 ECC limit",
            "sxid 12023 0000:c1:00.0 warning",
        ),
        (
            "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 23005, Non-fatal, x",
            "sxid 23005 0000:c1:00.0 fatal",
        ),
        (
            "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 31999, Non-fatal, x",
            "sxid 31999 0000:c1:00.0 warning",
        ),
        (
            "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): 31999, Fatal, x",
            "sxid 31999 0000:c1:00.0 fatal",
        ),
    ],
)
def test_sxid(line: str, expected: str) -> None:
    assert brief(lines(line)) == [expected]


def test_sxid_advice() -> None:
    def action(code: int, word: str) -> str:
        (event,) = read_kernel_log.events(
            f"nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): {code}, {word}, Link 3"
        )
        return event.action

    assert action(23005, "Fatal").startswith("Reboot")
    assert action(31999, "Non-fatal").startswith("None at once")
    assert action(31999, "Fatal").startswith("Reset all GPUs and NVSwitches")
    assert {
        group["action"] for group in [*table("sxid")["class"], *table("sxid")["sxid"].values()]
    } <= set(table("sxid")["action"])


# A GPU that does not start


@each(
    "text, expected",
    [
        (
            lines(
                "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x56:1463)",
                "NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0",
                "NVRM: GPU 0000:5e:00.0: RmInitAdapter failed! (0x26:0x56:1463)",
                "NVRM: GPU 0000:5e:00.0: rm_init_adapter failed, device minor number 1",
            ),
            ["rm-init adapter 0000:3b:00.0 error", "rm-init adapter 0000:5e:00.0 error"],
        ),
        (
            lines(
                "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x40:2168)",
                "NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0",
            )
            * 3,
            ["rm-init adapter 0000:3b:00.0 error"] * 3,
        ),
        (
            lines(
                "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b06) installed in this system "
                "has "
                "fallen off the bus and is not responding to commands.",
                "nvidia: probe of 0000:01:00.0 failed with error -1",
            ),
            ["gpu-lost bus 0000:01:00.0 fatal", "rm-init adapter 0000:01:00.0 error"],
        ),
        (
            lines(
                "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1180)",
                "NVRM: installed in this system is not supported by the",
                "NVRM: NVIDIA 535.54.03 driver release.",
            ),
            ["driver unsupported 0000:01:00.0 error"],
        ),
        (
            lines(
                "NVRM: GPU 0000:01:00.0 is already bound to nouveau.",
                "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
            ),
            ["driver bound 0000:01:00.0 error"],
        ),
        (
            lines(
                "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
                "NVRM: This can occur when a driver such as:",
                "NVRM: nouveau, rivafb, nvidiafb or rivatv",
                "NVRM: was loaded and obtained ownership of the NVIDIA device(s).",
            ),
            ["driver bound None error"],
        ),
        (lines("NVRM: No NVIDIA GPU found."), ["rm-init none None error"]),
        (
            lines(
                "NVRM: GPU 0000:01:00.0: GPU does not have the necessary power cables connected."
            ),
            ["rm-init power 0000:01:00.0 error"],
        ),
        (
            lines(
                "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
                "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)",
            ),
            ["rm-init bar 0000:01:00.0 error"],
        ),
        (
            lines(
                "NVRM: API mismatch: the client has the version 550.54.14, but",
                "NVRM: this kernel module has the version 535.183.01.  Please",
                "NVRM: make sure that this kernel module and all NVIDIA driver",
                "NVRM: components have the same version.",
            ),
            ["driver mismatch None error"],
        ),
    ],
)
def test_a_gpu_that_does_not_start(text: str, expected: list[str]) -> None:
    assert brief(text) == expected


# PCIe


@each(
    "text, expected",
    [
        (
            lines(
                (
                    "pcieport 0000:00:01.1: AER: Multiple Corrected error message received from "
                    "0000:01:00.0"
                ),
                (
                    "nvidia 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical "
                    "Layer, (Receiver ID)"
                ),
                "nvidia 0000:01:00.0:   device [10de:2684] error status/mask=00000001/0000a000",
                "nvidia 0000:01:00.0:    [ 0] RxErr                  (First)",
            ),
            ["aer corrected 0000:01:00.0 warning"],
        ),
        (
            lines(
                "nvidia 0000:17:00.0: AER: aer_uncor_status: 0x00000020",
                "nvidia 0000:17:00.0: PCIe Bus Error: of a later kernel",
            ),
            ["aer unknown 0000:17:00.0 error"] * 2,
        ),
        (
            lines(
                "pcieport 0000:00:01.1: AER: Multiple Uncorrectable (Fatal) error message "
                "received from 0000:01:00.0"
            ),
            ["aer fatal 0000:00:01.1 fatal"],
        ),
        (
            lines(
                "pcieport 0000:00:01.1: AER: Correctable error message received from 0000:01:00.0",
                "pcieport 0000:00:01.1: AER: found no error details for 0000:01:00.0",
            ),
            ["aer corrected 0000:00:01.1 warning"],
        ),
        (
            lines(
                "pcieport 0000:00:03.0: DPC: containment event, status:0x1f01 source:0x0000",
                "pcieport 0000:00:03.0: DPC: unmasked uncorrectable error detected",
                (
                    "pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrectable (Fatal), "
                    "type=Transaction Layer, (Receiver ID)"
                ),
                "pcieport 0000:00:03.0:    [ 5] SDES                   (First)",
                "nvidia 0000:04:00.0: AER: can't recover (no error_detected callback)",
                "pcieport 0000:00:03.0: AER: device recovery failed",
            ),
            [
                "aer dpc 0000:00:03.0 fatal",
                "aer fatal 0000:00:03.0 fatal",
                "aer unrecovered 0000:04:00.0 error",
                "aer unrecovered 0000:00:03.0 error",
            ],
        ),
        (
            lines(
                "nvidia 0000:17:00.0: AER: aer_status: 0x00000040, aer_mask: 0x00002000",
                "nvidia 0000:17:00.0: AER:    [ 6] BadTLP",
                "nvidia 0000:17:00.0: AER: aer_layer=Data Link Layer, aer_agent=Receiver ID",
            ),
            ["aer corrected 0000:17:00.0 warning"],
        ),
        (
            lines(
                "nvidia 0000:17:00.0: AER: aer_status: 0x00000020, aer_mask: 0x00000000",
                "nvidia 0000:17:00.0: AER:    [ 5] SDES                   (First)",
                "nvidia 0000:17:00.0: AER: aer_layer=Transaction Layer, aer_agent=Receiver ID",
                "nvidia 0000:17:00.0: AER: aer_uncor_severity: 0x00062030",
                "nvidia 0000:18:00.0: AER: aer_status: 0x00004000, aer_mask: 0x00000000",
                "nvidia 0000:18:00.0: AER:    [14] CmpltTO                (First)",
                "nvidia 0000:18:00.0: AER: aer_uncor_severity: 0x00062030",
                "nvidia 0000:19:00.0: AER: aer_status: 0x00004000, aer_mask: 0x00000000",
                "nvidia 0000:19:00.0: AER:    [14] CmpltTO                (First)",
                "nvidia 0000:1a:00.0: AER: aer_uncor_severity: 0x00062030",
            ),
            [
                "aer fatal 0000:17:00.0 fatal",
                "aer non-fatal 0000:18:00.0 error",
                "aer unknown 0000:19:00.0 error",
            ],
        ),
        (
            lines(
                "pcieport 0000:40:01.1: pciehp: Slot(4): Link Down",
                "pcieport 0000:40:01.1: pciehp: Slot(4): Card not present",
            ),
            ["pcie link-down 0000:40:01.1 error"] * 2,
        ),
        (
            lines(
                "pci 0000:3b:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe "
                "x4 link at "
                "0000:3a:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)"
            ),
            ["pcie bandwidth 0000:3b:00.0 warning"],
        ),
    ],
)
def test_pcie(text: str, expected: list[str]) -> None:
    assert brief(text) == expected


# Memory and processors


@each(
    "text, expected, counts",
    [
        (
            lines(
                "EDAC MC0: 32 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 "
                "(channel:0 slot:0 page:0x1)"
            ),
            ["edac CE dimm:CPU_SrcID#0_MC#0_Chan#0_DIMM#0 warning"],
            [32],
        ),
        (
            lines(
                "EDAC skx MC1: HANDLING MCE MEMORY ERROR",
                "EDAC skx MC1: CPU 28: Machine Check Event: 0x0 Bank 7: 0x8c00004000010090",
                "EDAC skx MC1: TSC 0x1 ",
                "EDAC skx MC1: ADDR 0x1 ",
                (
                    "EDAC MC1: 1 CE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0 "
                    "(channel:0 slot:0)"
                ),
            ),
            ["edac CE dimm:CPU_SrcID#1_MC#0_Chan#0_DIMM#0 warning"],
            [1],
        ),
        (
            lines(
                "EDAC sbridge MC0: CPU 0: Machine Check Exception: 0 Bank 5: 8c00004000010090",
                "EDAC sbridge MC0: TSC 0 ",
            ),
            ["mce bank5 cpu0 warning"],
            [1],
        ),
        (
            lines(
                "EDAC MC0: 1 UE on mc#0csrow#2channel#0 or mc#0csrow#3channel#0 (csrow:2 channel:0)"
            ),
            ["edac UE dimm:mc#0csrow#2channel#0 or mc#0csrow#3channel#0 fatal"],
            [1],
        ),
        (
            lines("EDAC MC0: 2 CE Single-bit ECC on P0 CHANNEL A (node:0 card:0)"),
            ["edac CE dimm:P0 CHANNEL A warning"],
            [2],
        ),
        (
            lines("EDAC MC0: 1 CE Single-bit ECC on unknown memory (node:0)"),
            ["edac CE mc0 warning"],
            [1],
        ),
        (
            lines("EDAC MC0: 1 UE Multi-bit ECC on any memory (page:0x0)"),
            ["edac UE mc0 fatal"],
            [1],
        ),
        (
            lines(
                "EDAC MC0: CE page 0x1, offset 0x2, grain 8, syndrome 0x3, row 3, channel 1, "
                'label "DIMM_B2": i5000'
            ),
            ["edac CE dimm:DIMM_B2 warning"],
            [1],
        ),
        (
            lines("EDAC MC0: UE - no information available: e752x UE log memory write"),
            ["edac UE mc0 fatal"],
            [1],
        ),
        (lines("EDAC MC3: 1 memory rea", "x"), ["edac None mc3 error"], [1]),
        (
            lines("EDAC MC0: 5 CE memory re", "firmware: word", "ad error on DIMM_A1 (channel:0)"),
            ["edac CE dimm:DIMM_A1 warning"],
            [5],
        ),
        (
            lines(
                "EDAC MC0: 5 CE memory re",
                "EDAC MC0: 1 CE memory read error on DIMM_A1 (channel:0)",
            ),
            ["edac CE mc0 warning", "edac CE dimm:DIMM_A1 warning"],
            [5, 1],
        ),
        (
            lines(
                "[Hardware Error]: MC4 Error (node 2): DRAM ECC error detected on the NB.",
                "EDAC MC2: 1 CE on mc#2csrow#3channel#1 (csrow:3 channel:1 page:0x1)",
                "[Hardware Error]: Error Status: Corrected error, no action required.",
                (
                    "[Hardware Error]: CPU:16 (15:1:2) MC4_STATUS[Over|CE|MiscV|-|AddrV|CECC]: "
                    "0xdc4ec00000080a13"
                ),
                "[Hardware Error]: MC4_ADDR: 0x0000000000000001",
            ),
            ["edac CE dimm:mc#2csrow#3channel#1 warning", "mce bank4 cpu16 warning"],
            [1, 1],
        ),
        (
            lines("[Hardware Error]: MC4 Error (node 2): DRAM ECC error detected on the NB."),
            ["mce unknown None error"],
            [1],
        ),
        (
            lines(
                "mce: [Hardware Error]: Machine check events logged",
                "[Hardware Error]: Deferred error, no action required.",
                (
                    "[Hardware Error]: CPU:0 (19:1:1) "
                    "MC18_STATUS[-|-|MiscV|AddrV|-|-|SyndV|UECC|Deferred|-|Scrub]: "
                    "0x8c2040000000011b"
                ),
            ),
            ["mce bank18 cpu0 error"],
            [1],
        ),
        (
            lines(
                (
                    "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 0: "
                    "be00000000800400"
                ),
                "mce: [Hardware Error]: RIP !INEXACT! 10:<ffffffff81000000> {x+0x1/0x2}",
                "mce: [Hardware Error]: TSC 1 ADDR 2 ",
                (
                    "mce: [Hardware Error]: PROCESSOR 0:50657 TIME 1 SOCKET 0 APIC 18 microcode "
                    "5003604"
                ),
                "Kernel panic - not syncing: Fatal local machine check",
            ),
            ["mce bank0 cpu12 fatal", "mce panic None fatal"],
            [1, 1],
        ),
        (
            lines(
                "{7}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 5",
                "{7}[Hardware Error]: event severity: recoverable",
                "{7}[Hardware Error]:  Error 0, type: recoverable",
                "{7}[Hardware Error]:   section_type: PCIe error",
                "{7}[Hardware Error]:   device_id: 0000:3b:00.0",
            ),
            ["apei PCIe error 0000:3b:00.0 error"],
            [1],
        ),
        (
            lines(
                (
                    "Memory failure: 0x10c0de0: Sending SIGBUS to python:123 due to hardware "
                    "memory corruption"
                ),
                "Memory failure: 0x10c0de1: recovery action for dirty LRU page: Recovered",
                "Memory failure: 0x10c0de0: recovery action for reserved kernel page: Failed",
            ),
            ["memory-failure 0x10c0de1 None error", "memory-failure 0x10c0de0 None fatal"],
            [1, 1],
        ),
        (
            lines("Memory failure: 0x10c0de0: recovery action for dirty LRU page: Recovered"),
            ["memory-failure 0x10c0de0 None error"],
            [1],
        ),
        (
            lines(
                "mce: CPU11: Package temperature is above threshold, cpu clock is throttled "
                "(total events = 3)"
            ),
            ["thermal Package cpu11 warning"],
            [1],
        ),
    ],
)
def test_memory_and_processors(text: str, expected: list[str], counts: list[int]) -> None:
    assert brief(text) == expected
    assert [event.count for event in read_kernel_log.events(text)] == counts


FOLDER = resources.locate("events")
LINES = tomllib.loads(BOOK.read_text(encoding="utf-8"))["kernel"]


def test_the_tables_weigh_events_as_their_sources_do() -> None:
    assert list(problems(FOLDER)) == []


@each("line", LINES)
def test_each_message_of_the_kernel_comes_to_its_weight(line: dict[str, object]) -> None:
    (event,) = read_kernel_log.events(f"[   12.345678] {line['line']}\n")
    severity = line.get("elsewhere", line["severity"])
    assert (event.severity, event.hardware) == (severity, line["hardware"])
    assert event.severity in RANK


@each("line", LINES)
def test_a_message_after_one_without_a_stamp_is_not_glued_to_it(line: dict[str, object]) -> None:
    xid = "NVRM: Xid (PCI:0000:01:00): 13, pid=9, name=a.out, Graphics SM Warp Exception"
    events = read_kernel_log.events(f"{xid}\n{str(line['line']).strip()}\n")
    assert len(events) == 2
    assert events[0].code == 13


@each("line", LINES)
@each("stamp", ["2026-11-20T10:11:12.123456789Z ", "Nov 20 10:11:12 ", "Nov 20 10:11:12 kernel: "])
def test_a_message_after_a_time_alone_is_the_kernels(line: dict[str, object], stamp: str) -> None:
    assert len(read_kernel_log.events(f"{stamp}{str(line['line']).strip()}\n")) == 1


MESSAGES = table("kernel")["message"]
WITH_CAPTURE = [message for message in MESSAGES if "harmless" in message]


def test_every_message_names_its_source() -> None:
    assert [message["pattern"] for message in MESSAGES if not message.get("source")] == []


@each("message", WITH_CAPTURE)
def test_what_sound_machines_print_is_no_fault(message: dict[str, str]) -> None:
    assert message["from"]
    assert read_kernel_log.parse(message["harmless"]).outcome == "pass"


def test_a_message_that_sound_machines_print_has_their_text_beside_it() -> None:
    weighed = [one for one in MESSAGES if "elsewhere" in one]
    assert [one["pattern"] for one in weighed if "harmless" not in one] == []


@each("message", [message for message in MESSAGES if "elsewhere" in message])
def test_its_capture_holds_the_message_or_one_of_its_kind(message: dict[str, str]) -> None:
    kinds = {event.kind for event in kernel_log.events_of(kernel_lines(message["harmless"]))}
    assert message["code"] == "smmu" or message["kind"] in kinds
