"""Logs as they come in practice: other drivers, kernels and programs that print, and what people
do to a text before they send it.
"""

from __future__ import annotations

import json

from cases import each
from kernel_texts import brief, lines
from refusal import assert_raises

from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import kernel_log

# How a log is printed

REPORT = (
    "pcieport 0000:5d:02.0: AER: Uncorrected (Non-Fatal) error received: 0000:5e:00.0",
    (
        "nvidia 0000:5e:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction "
        "Layer, (Requester ID)"
    ),
    "nvidia 0000:5e:00.0:   device [10de:2330] error status/mask=00004000/00000000",
    "nvidia 0000:5e:00.0:    [14] CmpltTO                (First)",
    (
        "NVRM: Xid (PCI:0000:5e:00): 31, pid=77, name=trainer, Ch 0000000b, intr 00000000. MMU "
        "Fault: ENGINE CE2"
    ),
    (
        "EDAC MC2: 4 CE memory scrubbing error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0 (channel:0 "
        "slot:0 page:0x0 offset:0x0 grain:32)"
    ),
)
CORRECTED = (
    "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)"
)
EVENTS = [
    "aer non-fatal 0000:5e:00.0 error",
    "xid 31 0000:5e:00.0 warning",
    "edac CE dimm:CPU_SrcID#1_MC#0_Chan#0_DIMM#0 warning",
]


@each(
    "stamp",
    [
        "[  100.500000] ",
        "[100.500000] [    C17] ",
        "<3>[  100.500000] ",
        "4,1234,100500000,-;",
        "kern  :warn  : [  100.500000] ",
        "kern  :err   : [Fri Nov 20 10:11:12 2026] ",
        "[Fri Nov 20 10:11:12 2026] ",
        "[Fr Nov 20 10:11:12 2026] ",
        "[五 11月 20 10:11:12 2026] ",
        "2026-11-20T10:11:12,123456+01:00 ",
        "Nov 20 10:11:12 rack7-n03 kernel: ",
        "Nov  2 10:11:12 rack7-n03 kernel: ",
        "Nov 20 10:11:12.123456 rack7-n03 kernel: ",
        "Nov 20 10:11:12 rack7-n03 kernel: [  100.500000] ",
        "Nov 20 10:11:12 rack7-n03 kernel[0]: ",
        "11月 20 10:11:12 rack7-n03 kernel: ",
        "2026-11-20T10:11:12+0100 rack7-n03 kernel: ",
        "2026-11-20T10:11:12.123456+01:00 rack7-n03 kernel: [  100.500000] ",
        "Fri 2026-11-20 10:11:12 CET rack7-n03 kernel: ",
        "Fri 2026-11-20 10:11:12.123456 CET rack7-n03 kernel: ",
        "[  100.500000] rack7-n03 kernel: ",
        "1795169472.123456 rack7-n03 kernel: ",
        "<4>1 2026-11-20T10:11:12.123456+01:00 rack7-n03 kernel - - - ",
        "kernel: ",
        "Nov 20 10:11:12 kernel: ",
        "Nov 20 10:11:12.123456 kernel: [  100.500000] ",
        "2026-11-20T10:11:12+0100 kernel: ",
        "Fri 2026-11-20 10:11:12 CET kernel: ",
        "1795169472.123456 kernel: ",
        "Nov 20 10:11:12 ",
        "2026-11-20T10:11:12.123456789Z ",
        "2026-11-20T10:11:12.123456789Z [  100.500000] ",
        "Nov 20 10:11:12 rack7-n03 kern.err kernel: [  100.500000] ",
        "Fri Nov 20 10:11:12 2026 kern.warn kernel: [  100.500000] ",
        "192.168.11.19: kern: warning: [2026-11-20T10:11:12.123456789Z]: ",
        "n03.example.org: kern:     err: [2026-11-20T10:11:12.123456789Z]: ",
        "fd00::7: kern: err: [2026-11-20T10:11:12.123456789Z]: ",
        "n03: [  100.500000] ",
        "n03 login: [  100.500000] ",
        "1234:[  100.500000] ",
        "/var/log/kern.log:Nov 20 10:11:12 rack7-n03 kernel: [  100.500000] ",
        "/var/log/kern.log-2026-11-20T10:11:12.123456+01:00 rack7-n03 kernel: ",
        "> [  100.500000] ",
        "- [  100.500000] ",
        "`[  100.500000] ",
        "    ",
        "",
    ],
)
def test_every_printer(stamp: str) -> None:
    text = lines(*REPORT, stamp=stamp)
    assert brief(text) == EVENTS
    assert brief(f"here it begins\n{text}and here it ends\n") == EVENTS
    assert kernel_log.parse(text.replace("\n", "\r\n")).outcome == "fail"


@each(
    "stamp, foreign",
    [
        ("Nov 20 10:11:12 ", "Nov 20 10:11:12 sshd[12]: "),
        ("Nov 20 10:11:12 n03 ", "Nov 20 10:11:12 n03 sshd[12]: "),
        ("2026-11-20T10:11:12+0100 ", "2026-11-20T10:11:12+0100 sudo[1]: "),
    ],
)
def test_another_program_s_line_is_not_the_kernel_s(stamp: str, foreign: str) -> None:
    assert brief(f"{stamp}kernel: {REPORT[-1]}\n{foreign}{REPORT[-1]}\n") == EVENTS[-1:]


def test_code_marks_around_a_line() -> None:
    assert [
        event.text
        for event in kernel_log.events("- `[ 1.5] NVRM: Xid (PCI:0000:5e:00): 79, gone`\n")
    ] == ["NVRM: Xid (PCI:0000:5e:00): 79, gone"]


def test_a_terminal_breaks_within_words() -> None:
    text = "".join(f"[  100.500000] {each}\n" for each in REPORT)
    broken = "\n".join(
        line[at : at + 80] for line in text.splitlines() for at in range(0, len(line), 80)
    )
    assert brief(broken) == EVENTS
    assert "Transaction Layer" in kernel_log.events(broken)[0].text


ARM = "{1}[Hardware Error]:"
CONTAINED = "NVRM: Xid (PCI:0000:5e:00): 94, pid=1, name=x, Contained: SM (0x1). RST: No, D-RST: No"


@each(
    "text, events",
    [
        (
            "[ 7.5] NVRM: Xid (PCI:0000:5e:00): 154, GPU recovery action changed from 0x0\n"
            "(None) to 0x2 (Node Reboot Required)\n"
            "[ 8.5] EDAC MC0: 1 UE memory read error on\n"
            "CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)\n",
            [
                "xid 154 0000:5e:00.0 fatal",
                "edac UE dimm:CPU_SrcID#0_MC#0_Chan#1_DIMM#0 fatal",
            ],
        ),
        # Made up after arch/arm64/kernel/traps.c and arch/arm64/mm/fault.c.
        (
            "I/O error, dev nvme1n1, sector 8 op 0x0:(READ) flags 0x0\n"
            "SError Interrupt on CPU17, code 0x00000000be000011 -- SError\n"
            "Kernel panic - not syncing: Asynchronous SError Interrupt\n"
            "Internal error: synchronous external abort: 0000000096000410 [#1] SMP\n"
            "Unable to handle kernel paging request at virtual address ffff80001234\n"
            "Mem abort info:\n  ESR = 0x0000000096000005\nCall trace:\n dump_backtrace+0x0/0x1e0\n",
            [
                "disk io nvme1n1 error",
                "kernel serror cpu17 fatal",
                "kernel panic None fatal",
                "kernel oops None error",
                "kernel oops None error",
            ],
        ),
        # Made up after drivers/firmware/efi/cper-arm.c.
        (
            lines(
                f"{ARM} Hardware error from APEI Generic Hardware Error Source: 2",
                f"{ARM} event severity: recoverable",
                f"{ARM}  Error 0, type: recoverable",
                f"{ARM}   section_type: ARM processor error",
                f"{ARM}   MIDR: 0x00000000414fd4f0",
                f"{ARM}   running state: 0x1",
                f"{ARM}   Error info structure 0:",
                f"{ARM}    error_type: 0x02: cache error",
                "Memory failure: 0x7740c0: recovery action for dirty LRU page: Recovered",
            ),
            ["apei ARM processor error None error", "memory-failure 0x7740c0 None error"],
        ),
        (
            "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15\nI/O error, dev nvme1n1, "
            "sector 8 op 0x0:(READ) flags 0x0\n"
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
            "critical medium error, dev sdc, "
            "sector 16\n",
            ["disk io nvme1n1 error", "hung-task rcu None warning", "disk io sdc error"],
        ),
        (
            "Nov 20 10:11:12 n kernel: [ 100.5] NVRM: Xid (PCI:0000:5e:00): 13, pid=7, Graphics "
            "Exception\n"
            "Nov 20 10:11:13 n kernel: message repeated 3 times: [ [ 101.5] NVRM: Xid "
            "(PCI:0000:5e:00): 13, pid=7, Graphics Exception]\n"
            "Nov 20 10:11:14 n kernel: message repeated 2 times: [ pcieport 0000:00:01.0: AER: "
            "Corrected error received: 0000:00:01.0]\n",
            ["xid 13 0000:5e:00.0 warning"] * 4 + ["aer corrected 0000:00:01.0 warning"] * 2,
        ),
        (
            f"Nov 20 10:11:12 n kernel: {CONTAINED}\nNov 20 10:11:13 n monitor[812]: {CONTAINED}\n",
            ["xid 94 0000:5e:00.0 error"],
        ),
        (f"Nov 20 10:11:13 n monitor[812]: {CONTAINED}\n", ["xid 94 0000:5e:00.0 error"]),
    ],
    told=[
        "a mail breaks between words",
        "Arm messages without stamps stand alone",
        "an Arm processor error that the firmware reports is one event",
        "messages without stamps stand alone",
        "a syslog that counts repetitions",
        "what an agent quotes from the kernel is told once",
        "and where the kernel's own line is missing",
    ],
)
def test_each_message_is_told_by_itself_and_once(text: str, events: list[str]) -> None:
    assert brief(text) == events


# What is no event


@each(
    "line",
    [
        "NVRM: GPU at PCI:0000:3b:00: GPU-00112233-4455-6677-8899-aabbccddeeff",
        "NVRM: GPU Board Serial Number: 1650000000001",
        "NVRM: A GPU crash dump has been created. If possible, please run",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build",
        (
            "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:3b:00 (printing 1 of "
            "every 30).  The GPU likely needs to be reset."
        ),
        "nvidia: loading out-of-tree module taints kernel.",
        (
            "nvidia: module verification failed: signature and/or required key missing - "
            "tainting kernel"
        ),
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
        "nvidia-nvswitch0: open (major=504)",
        "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  570.86.15",
        "nvidia 0000:3b:00.0: enabling device (0140 -> 0142)",
        (
            "nvidia 0000:3b:00.0: vgaarb: VGA decodes changed: "
            "olddecodes=io+mem,decodes=none:owns=none"
        ),
        (
            "nvidia_uvm: module uses symbols nvUvmInterfaceDisableAccessCntr from proprietary "
            "module nvidia, inheriting taint."
        ),
        "[drm] [nvidia-drm] [GPU ID 0x00003b00] Loading driver",
        "nvidia-gpu 0000:01:00.3: i2c timeout error e0000000",
        "nvidia-gpu: probe of 0000:01:00.3 failed with error -110",
        "nvidia-gpu 0000:01:00.3: probe with driver nvidia-gpu failed with error -110",
        "nouveau 0000:01:00.0: NVIDIA AD102 (192000a1)",
        "nouveau 0000:01:00.0: fb: 24576 MiB GDDR6X",
        "pcieport 0000:00:01.1: AER: enabled with IRQ 122",
        "pcieport 0000:00:01.1: PME: Signaling with IRQ 122",
        "pcieport 0000:00:01.1: DPC: enabled with IRQ 122",
        (
            "pcieport 0000:00:01.1: DPC: error containment capabilities: Int Msg #0, RPExt+ "
            "PoisonedTLP+ SwTrigger+"
        ),
        (
            "pcieport 0000:00:01.1: pciehp: Slot #4 AttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- "
            "HotPlug+ Surprise+ Interlock- NoCompl+"
        ),
        "pcieport 0000:00:01.1: pciehp: Slot(4): Card present",
        "pcieport 0000:00:01.1: pciehp: Slot(4): Link Up",
        "pcieport 0000:00:01.1: AER: device recovery successful",
        "pci 0000:3b:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)",
        (
            "acpi PNP0A08:00: _OSC: OS now controls [PCIeHotplug SHPCHotplug PME AER "
            "PCIeCapability LTR DPC]"
        ),
        "EDAC MC: Ver: 3.0.0",
        (
            "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: "
            "DEV 0000:64:0a.0 (INTERRUPT)"
        ),
        "EDAC amd64: F19h_M10h detected (node 0).",
        "EDAC MC: UMC0 chip selects:",
        "mce: CPU supports 32 MCE banks",
        "mce: [Firmware Bug]: Ignoring request to disable invalid MCA bank 10.",
        "MCE: In-kernel MCE decoding enabled.",
        "mce: CPU11: Package temperature/speed normal",
        "GHES: APEI firmware first mode is enabled by APEI bit and WHEA _OSC.",
        "HEST: Table parsing has been initialized.",
        "BERT: Boot Error Record Table not found",
        "RAS: Correctable Errors collector initialized.",
        "thermal thermal_zone0: Trip point 1 temperature 95000",
        "Xid_handler+0x1a/0x20 [nvidia]",
        'audit: type=1400 msg=audit(1.1:2): comm="Xid"',
    ],
)
def test_no_event(line: str) -> None:
    assert brief(lines(line)) == []
    assert kernel_log.parse(lines(line)).outcome == "pass"


def test_a_storm_is_counted_by_the_second() -> None:
    stamps = (f"Nov 20 10:11:12.{each}00000 n kernel: " for each in (1, 4, 9))
    assert kernel_log.parse("".join(f"{stamp}{CORRECTED}\n" for stamp in stamps)).outcome == "fail"
    later = (
        f"Nov 20 10:11:12.1 n kernel: {CORRECTED}\nNov 20 10:11:13.1 n kernel: message "
        "repeated "
        f"9 times: [{CORRECTED}]\n"
    )
    output = kernel_log.parse(later)
    assert (output.outcome, len(output.events)) == (
        "pass",
        10,
    )  # of when the nine came, the log says nothing


def test_a_journal_as_json() -> None:
    records = [
        {
            "__REALTIME_TIMESTAMP": "1795169472123456",
            "_TRANSPORT": "kernel",
            "MESSAGE": text,
            "PRIORITY": "3",
        }
        for text in REPORT
    ]
    agent = {
        "__REALTIME_TIMESTAMP": "1795169473123456",
        "SYSLOG_IDENTIFIER": "some agent",
        "MESSAGE": REPORT[-1],
    }
    text = "".join(f"{json.dumps(record)}\n" for record in [*records, agent])
    assert brief(text) == EVENTS
    assert kernel_log.events(text)[0].time == "1795169472.123456"
    as_bytes = json.dumps({"_TRANSPORT": "kernel", "MESSAGE": list(f"one\n{REPORT[-1]}".encode())})
    assert brief(as_bytes) == EVENTS[-1:]


def test_dmesg_as_json() -> None:
    records = [{"pri": 3, "time": 100.5, "msg": text} for text in REPORT]
    assert brief(json.dumps({"dmesg": records}, indent=3)) == EVENTS
    assert kernel_log.events(json.dumps({"dmesg": records}))[0].time == 100.5
    assert brief(json.dumps({"dmesg": [{"msg": REPORT[-1]}]})) == EVENTS[-1:]


@each(
    "text",
    [
        '{"MESSAGE": 5}\n',
        '{"MESSAGE": [1, 999]}\n',
        '{"dmesg": ["x"]}\n',
        '{"MESSAGE": "x"}\n[1]\n',
        '{"a": 1}{\n',
        '{"MESSAGE": "EDAC MC0: 1 UE x on L (y)"}\n',
        '{"a":' * 100_000,
        '{"SYSLOG_IDENTIFIER": "sshd", "MESSAGE": "hello"}\n',  # a journal without the kernel
    ],
)
def test_other_json_is_no_kernel_log(text: str) -> None:
    assert_raises(UnreadableOutput, kernel_log.parse, text)
