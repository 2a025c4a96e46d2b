from __future__ import annotations

import json

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from kernel_texts import brief
from refusal import assert_raises, raised
from thoroughness import some

from acceptance.cli.read import json_object
from acceptance.observe.event import RANK, KernelEvent, Severity, clean, pci_function, table, worse
from acceptance.observe.kernel_line import LONGEST, kernel_lines, strip_stamps
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.read import kernel_log as read_kernel_log
from acceptance.wording import words

XID79 = "NVRM: Xid (PCI:0000:0a:00): 79, pid=1, name=x, GPU has fallen off the bus."


def one(text: str) -> KernelEvent:
    (event,) = read_kernel_log.events(text)
    return event


# Stamps


@each(
    "raw, time",
    [
        ("{}", None),
        ("[  123.456789] {}", 123.456789),
        ("[123.5] [ T1946] {}", 123.5),
        ("[    5.000001][    C3] {}", 5.000001),
        ("<4>[  123.5] {}", 123.5),
        ("[Sun Feb 23 16:24:18 2025] {}", "Sun Feb 23 16:24:18 2025"),
        ("[2023-06-22 21:55:31.352444][5975153.869131] {}", 5975153.869131),
        ("[2023-06-22 21:55:31] {}", "2023-06-22 21:55:31"),
        ("3,4113,81230441950,-;{}", 81230.44195),
        ("3,4113,81230441950,-,caller=T1;{}", 81230.44195),
        ("Sep 19 16:18:02 bubz kernel: [68183.615790] {}", 68183.61579),
        ("Sep  9 16:18:02 bubz kernel: {}", "Sep  9 16:18:02"),
        ("2025-02-23T16:24:18.123456+0000 node kernel: {}", "2025-02-23T16:24:18.123456+0000"),
        ("2025-02-23T16:24:18+01:00 node kernel: {}", "2025-02-23T16:24:18+01:00"),
        ("2025-02-23T16:24:18,123456+00:00 {}", "2025-02-23T16:24:18,123456+00:00"),
        ("Sun 2025-02-23 16:24:18 UTC node kernel: {}", "Sun 2025-02-23 16:24:18 UTC"),
        ("1740327858.123456 node kernel: {}", "1740327858.123456"),
        ("[68183.615790] node kernel: {}", 68183.61579),
        ("kern  :warn  : [   12.5] {}", 12.5),
        ("[Feb23 16:24] {}", None),
        ("[  +0.000123] {}", None),
        ("kernel: {}", None),
        ("**Nov 22 14:56:44 host kernel: [94555.5] {}**", 94555.5),
        ("diff:371;{}", None),
    ],
)
def test_every_stamp(raw: str, time: float | str | None) -> None:
    event = one(raw.format(XID79))
    assert (event.kind, event.code, str(event.component), event.severity) == (
        "xid",
        79,
        "0000:0a:00.0",
        "fatal",
    )
    assert event.time == time
    assert event.text == XID79


@each(
    "line, stamped, foreign",
    [
        ("[  1.0] x", True, False),
        ("Sep 19 16:18:02 h kernel: x", True, False),
        ("Sep 19 16:18:02 h sshd[12]: x", False, True),
        ("[2023-06-22 21:55:31] x", False, False),
        ("plain", False, False),
    ],
)
def test_who_wrote_it(line: str, stamped: bool, foreign: bool) -> None:
    found = strip_stamps(line)
    assert (found.text.strip(), found.stamped, found.foreign) == (
        "x" if line != "plain" else "plain",
        stamped,
        foreign,
    )


def test_wrapped_records_are_joined() -> None:
    text = (
        "[ 234.0] pci 0000:09:00.0: 8.000 Gb/s available PCIe bandwidth,\n"
        "limited by 2.5 GT/s PCIe x4 link\nat 0000:05:01.0\n[ 235.0] x\n"
    )
    assert [line.text for line in kernel_lines(text)][1] == "x"
    assert one(text).code == "bandwidth"
    assert (
        one(
            "NVRM: Xid (PCI:0000:02:00): 154, GPU recovery action changed from 0x0 (None)\n "
            "to 0x2 (Node Reboot Required)\n"
        ).severity
        == "fatal"
    )


def test_joining_has_an_end() -> None:
    text = "[ 1.0] x\n" + "words and words\n" * 200
    assert max(len(line.text) for line in kernel_lines(text)) < 1100


def test_kmsg_escapes_and_dictionary_lines() -> None:
    text = (
        "6,1,1000000,-;first\\x0aNVRM: Xid (PCI:0000:0a:00): 79, caf\\xc3\\xa9\n"
        " SUBSYSTEM=pci\n DEVICE=+pci:0000:0a:00.0\n6,2,2000000,-;bad \\xff\n"
    )
    assert [line.text for line in kernel_lines(text)] == [
        "first",
        "NVRM: Xid (PCI:0000:0a:00): 79, café",
        "bad ÿ",
    ]


# NVIDIA


@each(
    "text, expected",
    [
        ("NVRM: Xid (0000:01:00): 13, 0005 00000000", "xid 13 0000:01:00.0 warning"),
        ("NVRM: Xid (0001:00): 8, Channel 00000000", "xid 8 0000:01:00.0 warning"),
        ("NVRM: Xid (PCI:0000:B3:00.0): 79, gone", "xid 79 0000:b3:00.0 fatal"),
        (
            "NVRM: Xid (PCI:0004:01:00): 48, pid='<unknown>', name=<unknown>, DBE",
            "xid 48 0004:01:00.0 fatal",
        ),
        (
            "NVRM: Xid (PCI:0000:43:00 GPU-I:05): 43, pid=1, Ch 00000001",
            "xid 43 0000:43:00.0 warning",
        ),
        (
            "NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 02",
            "xid 145 0000:5f:00.0 warning",
        ),
        (
            "NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP Fatal XC0 i0 Link 02",
            "xid 145 0000:5f:00.0 fatal",
        ),
        ("NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP", "xid 145 0000:5f:00.0 error"),
        ("NVRM: Xid (PCI:0000:5f:00): 9999, something new", "xid 9999 0000:5f:00.0 error"),
        ("NVRM: Xid (PCI:0000:5f:00): abc, pid=1", "xid None 0000:5f:00.0 error"),
        ("NVRM: Xid (PCI:zz:00): 79, x", "xid None None error"),
        ("NVRM: Xid (PCI:0.0): 79, x", "xid 79 None fatal"),
        (
            (
                "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x1 (GPU "
                "Reset) to 0x0 (None)"
            ),
            "xid 154 0000:5f:00.0 info",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x0 (None) to "
                "0x1 (PF FLR)"
            ),
            "xid 154 0000:5f:00.0 error",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x0 (None) to "
                "0x2 (OS Reboot)"
            ),
            "xid 154 0000:5f:00.0 fatal",
        ),
        (
            (
                "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x0 (None) to "
                "0x77 (New)"
            ),
            "xid 154 0000:5f:00.0 error",
        ),
        ("NVRM: Xid (PCI:0000:5f:00): 154, garbled", "xid 154 0000:5f:00.0 error"),
        (
            (
                "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress "
                "non-posted PRIV error"
            ),
            "sxid 12028 0000:05:00.0 warning",
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 24007, Fatal, Link 30 sourcetrack timeout",
            "sxid 24007 0000:05:00.0 fatal",
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 11004, Non-fatal, Link 30",
            "sxid 11004 0000:05:00.0 error",
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 31000, Link 30",
            "sxid 31000 0000:05:00.0 error",
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 24007, Severity 1 Engine instance 30",
            "sxid 24007 0000:05:00.0 fatal",
        ),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 29999, Data {0x00000000}",
            "sxid 29999 0000:05:00.0 error",
        ),
        ("NVRM: GPU 0000:09:00.0: GPU has fallen off the bus.", "gpu-lost bus 0000:09:00.0 fatal"),
        (
            "NVRM: GPU 0000:09:00.0: RmInitAdapter failed! (0x62:0xffffffff:1089)",
            "rm-init adapter 0000:09:00.0 error",
        ),
        (
            (
                "NVRM: RmInitAdapter failed! (0x62:0xffffffff:1089)\nNVRM: rm_init_adapter "
                "failed for device bearing minor number 0"
            ),
            "rm-init adapter None error",
        ),
        (
            "nvidia 0000:01:00.0: probe with driver nvidia failed with error -1",
            "rm-init adapter 0000:01:00.0 error",
        ),
        (
            "nvidia: probe of 0000:01:00.0 failed with error -1",
            "rm-init adapter 0000:01:00.0 error",
        ),
        (
            "NVRM: API mismatch: the client has the version 550.54.14, but",
            "driver mismatch None error",
        ),
    ],
)
def test_nvidia(text: str, expected: str) -> None:
    assert brief(text) == [expected]


@each(
    "text",
    [
        "NVRM:     -1    103  GSP_RM_ALLOC          0x0000000000002080 0x0000000000000004",
        "NVRM: GPU4 RPC history (CPU -> GSP):",
        "[ 1.0]  Xid_handler+0x1a/0x20 [nvidia]",
        "# dmesg | grep Xid",
        "Fault_Detail:xid 95 Uncontained ECC error occurred",
        "NVRM: GPU at PCI:0000:02:00: GPU-566b96ce-1c0e-55a2-e739-301b62e223b8",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context",
        "nvidia 0000:02:00.0: device has no AER-aware driver",
    ],
)
def test_a_mention_is_no_event(text: str) -> None:
    assert read_kernel_log.events(text) == ()


GONE = (
    f"{XID79}\nNVRM: GPU 0000:0a:00.0: GPU has fallen off the bus.\nNVRM: nvAssert: GPU lost "
    "from the bus [NV_ERR_GPU_IS_LOST]\n"
)


@each(
    "text, events",
    [
        (GONE, ["xid 79 0000:0a:00.0 fatal"]),
        (
            f"NVRM: GPU 0000:0b:00.0: GPU has fallen off the bus.\n{GONE}",
            ["gpu-lost bus 0000:0b:00.0 fatal", "xid 79 0000:0a:00.0 fatal"],
        ),
        (
            "[ 1.0] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
            "[ 1.0] NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
            "[ 1.0] NVRM: fallen off the bus and is not responding to commands.\n",
            ["gpu-lost bus 0000:b3:00.0 fatal"],
        ),
        (
            "x\nNVRM: fallen off the bus and is not responding to commands.",
            ["gpu-lost bus None fatal"],
        ),
        (f"Sep 19 16:18:02 h agent[7]: saw {XID79}", ["xid 79 0000:0a:00.0 fatal"]),
    ],
    told=[
        "three messages of one GPU",
        "and one of another",
        "over three lines",
        "the last line of three",
        "an Xid that another program quotes still counts",
    ],
)
def test_a_gpu_that_is_gone_is_told_once(text: str, events: list[str]) -> None:
    assert brief(text) == events


# The host


@each(
    "text, expected",
    [
        (
            "CPU3: Core temperature above threshold, cpu clock throttled (total events = 1)",
            "thermal Core cpu3 warning",
        ),
        (
            (
                "mce: CPU0: Package temperature above threshold, cpu clock throttled (total "
                "events = 9)"
            ),
            "thermal Package cpu0 warning",
        ),
        (
            "thermal thermal_zone0: acpitz: critical temperature reached, shutting down",
            "thermal critical thermal_zone0 fatal",
        ),
        (
            "pcieport 0000:00:01.0: DPC: containment event, status:0x1f01 source:0x0000",
            "aer dpc 0000:00:01.0 fatal",
        ),
        (
            "pcieport 0000:00:01.0: AER: device recovery failed",
            "aer unrecovered 0000:00:01.0 error",
        ),
        ("pcieport 0000:00:01.0: AER: device recovery successful", None),
        ("pcieport 0000:00:01.0: AER: enabled with IRQ 28", None),
        (
            (
                "pci 0000:09:00.0: Unable to change power state from unknown to D0, device "
                "inaccessible"
            ),
            "pcie inaccessible 0000:09:00.0 error",
        ),
        (
            "pcieport 0000:40:01.1: pciehp: Slot(1-2): Link Down",
            "pcie link-down 0000:40:01.1 error",
        ),
        (
            "Memory failure: 0x7740c0: recovery action for dirty page: Recovered",
            "memory-failure 0x7740c0 None error",
        ),
        (
            "Memory failure: 0x7740c0: recovery action for reserved kernel page: Failed",
            "memory-failure 0x7740c0 None fatal",
        ),
        ("Memory: 3218172K/25165432K available", None),
        (
            "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
            "disk controller nvme0 error",
        ),
        ("nvme nvme0: I/O 12 QID 3 timeout, aborting", "disk timeout nvme0 warning"),
        ("nvme nvme0: I/O 12 QID 3 timeout, reset controller", "disk reset nvme0 error"),
        (
            "nvme nvme0: I/O tag 12 (100c) opcode 0x2 (Read) QID 3 timeout, disable controller",
            "disk reset nvme0 error",
        ),
        ("nvme nvme0: frozen state error detected, reset controller", "disk reset nvme0 error"),
        ("nvme nvme0: I/O 9 QID 1 timeout, completion polled", "disk timeout nvme0 warning"),
        (
            "nvme0n1: Read(0x2) @ LBA 2048, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) ",
            "disk media nvme0n1 error",
        ),
        ("nvme0n1: Read(0x2) @ LBA 2048, 8 blocks, Aborted (sct 0x0 / sc 0x7) ", None),
        ("recoverable transport error, dev sdb, sector 8", "disk io sdb error"),
        ("device offline error, dev sdb, sector 8 op 0x1:(WRITE)", "disk io sdb error"),
        ("ata3: limiting SATA link speed to 3.0 Gbps", "disk link ata3 warning"),
        ("ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)", None),
        ("sd 2:0:0:0: [sda] tag#7 Sense Key : Medium Error [current]", "disk sense sda error"),
        ("sd 2:0:0:0: [sda] tag#7 Sense Key : Illegal Request [current]", None),
        ("sd 2:0:0:0: rejecting I/O to offline device", "disk offline 2:0:0:0 error"),
        (
            "sd 2:0:0:0: Device offlined - not ready after error recovery",
            "disk offline 2:0:0:0 error",
        ),
        ("md/raid1:md0: Disk failure on sdb1, disabling device.", "disk raid md0 error"),
        ("md/raid:md127: Disk failure on nvme1n1p1, disabling device.", "disk raid md127 error"),
        ("md/raid1:md0: active with 1 out of 2 mirrors", "disk degraded None warning"),
        ("md/raid1:md0: active with 2 out of 2 mirrors", None),
        (
            "md/raid:md0: raid level 5 active with 2 out of 3 devices, algorithm 2",
            "disk degraded None warning",
        ),
        ("md: kicking non-fresh sdb1 from array!", "disk degraded None warning"),
        (
            "md/raid1:md0: read error corrected (8 sectors at 2048 on sdb1)",
            "disk corrected md0 warning",
        ),
        ("device-mapper: multipath: 253:0: Failing path 8:16.", "disk path None warning"),
        (
            "EXT4-fs error (device sda1 state EA): ext4_journal_check_start:83: x",
            "disk filesystem None error",
        ),
        (
            "BTRFS error (device sda1: state EA): bdev /dev/sda1 errs: wr 0, rd 1",
            "disk filesystem None error",
        ),
        (
            "EXT4-fs warning (device sda1): ext4_end_bio:343: I/O error 10 writing to inode 12",
            "disk filesystem-io None error",
        ),
        ("Aborting journal on device sda1-8.", "disk filesystem-io None error"),
        (
            "JBD2: Detected IO errors while flushing file data on sda1-8",
            "disk filesystem-io None error",
        ),
        ("XFS (dm-0): log I/O error -5", "disk filesystem-io None error"),
        (
            "XFS (dm-0): Log I/O Error (0x2) detected at x.  Shutting down filesystem.",
            "disk filesystem-io None error",
        ),
        (
            "BTRFS warning (device sda1): csum failed root 5 ino 257 off 0",
            "disk filesystem-io None error",
        ),
        ("EXT4-fs (sda1): Remounting filesystem read-only", "disk read-only None error"),
        ("BTRFS info (device sda1: state EA): forced readonly", "disk read-only None error"),
        ("EXT4-fs (sda1): re-mounted 5c-4f r/w.", None),
        ("nvme nvme0: 96/0/0 default/read/poll queues", None),
        (
            "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0",
            "disk io sda error",
        ),
        ("I/O error, dev nvme0n1, sector 0 op 0x0:(READ) flags 0x0", "disk io nvme0n1 error"),
        ("critical medium error, dev sdb, sector 12", "disk io sdb error"),
        # Linux 4.14 to 5.1, and before 4.0
        ("print_req_error: I/O error, dev nvme0n1, sector 7", "disk io nvme0n1 error"),
        ("print_req_error: critical medium error, dev sda, sector 7", "disk io sda error"),
        ("print_req_error: I/O error, dev loop5, sector 0", "disk io loop5 warning"),
        ("end_request: I/O error, dev sda, sector 7", "disk io sda error"),
        ("Buffer I/O error on device sda1, logical block 0", "disk io sda1 error"),
        # a sound disk that does not know the command
        (
            "blk_update_request: critical target error, dev sda, sector 2048 op 0x3:(DISCARD) "
            "flags 0x800 phys_seg 1 prio class 0",
            None,
        ),
        ("critical target error, dev sda, sector 8 op 0x9:(WRITE_ZEROES) flags 0x800", None),
        ("critical target error, dev sda, sector 8 op 0x1:(WRITE) flags 0x0", "disk io sda error"),
        ("I/O error, dev sda, sector 8 op 0x3:(DISCARD) flags 0x800", "disk io sda error"),
        # an NVMe disk with several ways
        (
            "nvme0c0n1: Read(0x2) @ LBA 8, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) ",
            "disk media nvme0c0n1 error",
        ),
        (
            "XFS (sda1): Metadata CRC error detected at xfs_agf_read_verify+0xd4/0x100 [xfs], x",
            "disk filesystem None error",
        ),
        (
            "BTRFS: error (device sda1: state A) in btrfs_run_delayed_refs: errno=-5 IO failure",
            "disk filesystem None error",
        ),
        # a domain of Intel's VMD has five digits
        (
            "pcieport 10000:e0:06.0: DPC: containment event, status:0x1f11 source:0x0000",
            "aer dpc 10000:e0:06.0 fatal",
        ),
        (
            "pcieport 10000:e0:06.0: pciehp: Slot(173): Link Down",
            "pcie link-down 10000:e0:06.0 error",
        ),
        (
            "nvidia 0000:01:00.0: can't change power state from D3hot to D0 (config space "
            "inaccessible)",
            "pcie inaccessible 0000:01:00.0 error",
        ),
        ("nvidia 0000:01:00.0: not ready 1023ms after bus reset; waiting", None),
        (
            "nvidia 0000:01:00.0: not ready 65535ms after bus reset; giving up",
            "pcie inaccessible 0000:01:00.0 error",
        ),
        (
            "NMI: IOCK error (debug interrupt?) for reason 61 on CPU 4.",
            "kernel nmi cpu4 error",
        ),
        ("NMI watchdog: BUG: soft lockup - CPU#3 stuck for 22s!", "kernel lockup None error"),
        ("INFO: rcu_sched self-detected stall on CPU { 3}", "hung-task rcu None warning"),
        ("Kernel panic - not syncing: Fatal hardware error!", "mce panic None fatal"),
        ("Buffer I/O error on dev sda1, logical block 0", "disk io sda1 error"),
        ("blk_update_request: I/O error, dev fd0, sector 0", "disk io fd0 warning"),
        ("ata1.00: failed command: READ FPDMA QUEUED", "disk ata ata1.00 error"),
        ("ata3: SATA link down (SStatus 0 SControl 300)", None),
        (
            "EXT4-fs error (device sda1): ext4_lookup:1234: deleted inode",
            "disk filesystem None error",
        ),
        ("EXT4-fs (sda1): mounted filesystem", None),
        ("Out of memory: Killed process 4242 (python) total-vm:1kB", "oom 4242 None warning"),
        ("Memory cgroup out of memory: Killed process 7 (x)", "oom 7 None warning"),
        (
            "INFO: task jbd2/sda1-8:321 blocked for more than 120 seconds.",
            "hung-task jbd2/sda1-8 None warning",
        ),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "hung-task rcu None warning"),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [x:1]", "kernel lockup None error"),
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 5", "kernel lockup None error"),
        ("BUG: unable to handle page fault for address: ffff", "kernel oops None error"),
        ("Kernel panic - not syncing: VFS: Unable to mount root fs", "kernel panic None fatal"),
        ("Kernel panic - not syncing: Fatal machine check", "mce panic None fatal"),
        ("** 123 printk messages dropped **", "lost dropped None warning"),
        (
            "Sep 19 16:18:02 h systemd-journald[300]: Missed 12 kernel messages",
            "lost dropped None warning",
        ),
        ("Sep 19 16:18:02 h app[300]: I/O error, dev sda, sector 1", None),
        ("Sep 19 16:18:02 h app[300]: EDAC MC0: 1 UE x on L (y)", None),
        (
            "Sep 19 16:18:02 h app[300]: pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected",
            None,
        ),
        ("Sep 19 16:18:02 h app[300]: mce: [Hardware Error]: Machine check events logged", None),
        (
            "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (x)",
            "edac UE dimm:CPU_SrcID#0_MC#0_Chan#1_DIMM#0 fatal",
        ),
        (
            (
                "EDAC MC1: CE page 0x1, offset 0x2, grain 8, syndrome 0x3, row 3, channel 1, "
                'label "": amd64_edac'
            ),
            "edac CE mc1 warning",
        ),
        ("EDAC amd64 MC0: CE ERROR_ADDRESS= 0x1", "edac CE mc0 warning"),
        ("EDAC MC0: Giving out device to module i10nm_edac", None),
        ("EDAC MC: Ver: 3.0.0", None),
        ("mce: CPU supports 10 MCE banks", None),
        ("CMCI storm detected: switching to poll mode", "mce storm None error"),
        (
            "mce: Uncorrected hardware memory error in user-access at 118cb9000",
            "mce uncorrected None fatal",
        ),
        (
            "mce: [Hardware Error]: Machine check: Processor context corrupt",
            "mce uncorrected None fatal",
        ),
        (
            "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: 9c00000000020e0f",
            "mce bank5 cpu0 warning",
        ),
        (
            "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be00000000800400",
            "mce bank5 cpu0 fatal",
        ),
        (
            "mce: [Hardware Error]: CPU 7: Machine Check: 0 Bank 5: bc00000000800400",
            "mce bank5 cpu7 error",
        ),
        (
            "mce: [Hardware Error]: CPU 7: Machine Check Exception: 5 Bank 5: 9c00000000800400",
            "mce bank5 cpu7 error",
        ),
        (
            "[Hardware Error]: CPU:2 (17:1:1) MC1_STATUS[-|CE|MiscV|-|-]: 0x9820000000000150",
            "mce bank1 cpu2 warning",
        ),
        (
            "[Hardware Error]: Uncorrected, software restartable error.",
            "mce Uncorrected None error",
        ),
        ("[Hardware Error]: System Fatal error.", "mce System Fatal error None fatal"),
        ("[Hardware Error]: words of a later kernel", "mce unknown None error"),
        ("mce: [Hardware Error]: Machine check events logged", "mce logged None error"),
        (
            "pcieport 0000:00:02.0: AER: Corrected error received: id=0010",
            "aer corrected 0000:00:02.0 warning",
        ),
        (
            (
                "pcieport 0000:00:02.0: AER: Multiple Uncorrected (Non-Fatal) error received: "
                "0000:01:00.0"
            ),
            "aer non-fatal 0000:00:02.0 error",
        ),
        (
            (
                "nvidia 0000:01:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), "
                "type=Physical Layer, (Receiver ID)"
            ),
            "aer fatal 0000:01:00.0 fatal",
        ),
        (
            "nvidia 0000:01:00.0: PCIe Bus Error: severity=Uncorrected, type=Inaccessible",
            "aer non-fatal 0000:01:00.0 error",
        ),
        (
            "nvidia 0000:01:00.0: AER: aer_status: 0x00000040, aer_mask: 0x00002000",
            "aer unknown 0000:01:00.0 error",
        ),
    ],
)
def test_host(text: str, expected: str | None) -> None:
    assert brief(text) == ([expected] if expected else [])


AER = "[ 1.0] pcieport 0000:00:02.0: AER: Corrected error received: id=0010\n"
BITS = (
    "[ 1.0] pcieport 0000:00:02.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, "
    "id=0010(Transmitter ID)\n"
    "[ 1.0] pcieport 0000:00:02.0:   device [8086:6f04] error status/mask=00001000/00002000\n"
    "[ 1.0] pcieport 0000:00:02.0:    [12] Replay Timer Timeout  \n"
    "[ 1.0] pcieport 0000:00:02.0:    [ 6] BadTLP                (First)\n"
)
CORRECTED = "aer corrected 0000:00:02.0 warning"
APEI = (
    "[ 1.0] {N}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1\n"
    "[ 1.0] {N}[Hardware Error]: It has been corrected by h/w and requires no further action\n"
    "[ 1.0] {N}[Hardware Error]: event severity: corrected\n"
    "[ 1.0] {N}[Hardware Error]:   section_type: memory error\n"
)


def test_an_aer_report_has_its_bits() -> None:
    assert one(AER + BITS).text.endswith("; Replay Timer Timeout, BadTLP")


@each(
    "text, events",
    [
        (
            AER.replace("Corrected", "Uncorrected (Fatal)") + BITS,
            ["aer fatal 0000:00:02.0 fatal", CORRECTED],
        ),
        (AER + BITS + AER + BITS, [CORRECTED] * 2),
        (AER + AER + BITS, [CORRECTED] * 2),
        (
            "[ 1.0] [Hardware Error]: Deferred error, no action required.\n"
            "[ 1.0] an unrelated message\n"
            "[ 1.0] [Hardware Error]: CPU:12 (19:11:1) MC17_STATUS[Over|-|MiscV]: "
            "0xdc2040000000011b\n"
            "[ 1.0] [Hardware Error]: Error Addr: 0x000000003f2b1c40\n",
            ["mce bank17 cpu12 error"],
        ),
        (
            APEI.replace("{N}", "{1}") + APEI.replace("{N}", "{2}"),
            ["apei memory error None warning"] * 2,
        ),
        ((APEI + APEI).replace("{N}", "{1}"), ["apei memory error None warning"] * 2),
        (
            "[ 1.0] {1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1",
            ["apei None None error"],
        ),
        (
            "BERT: Error records from previous boot:\n[Hardware Error]: event severity: "
            "fatal\n[Hardware Error]:   section_type: PCIe error",
            ["apei PCIe error None fatal"],
        ),
    ],
    told=[
        "a head of another severity",
        "two reports",
        "two heads",
        "a record of AMD's",
        "two records of APEI's",
        "of one number",
        "the head of one",
        "one of the boot before",
    ],
)
def test_each_report_and_record_is_one_event(text: str, events: list[str]) -> None:
    assert brief(text) == events


NOTICE = "[ 100.0] mce: [Hardware Error]: Machine check events logged\n"


@each(
    "text, count",
    [
        (NOTICE, 1),
        (NOTICE + "[ 100.1] EDAC MC0: 1 CE memory read error on A (x)\n", 0),
        (
            (
                "[ 99.9] mce: CPU0: Core temperature above threshold, cpu clock throttled (total "
                "events = 1)\n"
            )
            + NOTICE,
            0,
        ),
        (NOTICE + "[ 200.1] EDAC MC0: 1 CE memory read error on A (x)\n", 1),
        (NOTICE + "EDAC MC0: 1 CE memory read error on A (x)\n", 0),
        (NOTICE + "[ 100.1] I/O error, dev sda, sector 1\n", 1),
    ],
)
def test_a_machine_check_that_nothing_explains_is_an_error(text: str, count: int) -> None:
    assert sum(event.code == "logged" for event in read_kernel_log.events(text)) == count


def test_the_log_order_is_kept() -> None:
    assert [event.kind for event in read_kernel_log.events(NOTICE + f"[ 300.0] {XID79}")] == [
        "mce",
        "xid",
    ]


# Words


def test_a_message_is_cut_and_what_can_be_printed_stays() -> None:
    assert clean("x" * 500) == "x" * 400
    assert clean("café \\n\x1b[1m") == "café \\n\\x1b[1m"
    assert clean("a \x00b\n  c") == "a \\x00b c"


@each(
    "order",
    [("info", "warning"), ("warning", "error"), ("error", "fatal"), ("warning", "fatal")],
)
def test_the_order_of_severities(order: tuple[Severity, Severity]) -> None:
    assert worse(*order) == worse(*order[::-1]) == order[1]


# What it is worth


def corrected(stamp: str) -> str:
    return (
        f"{stamp} pcieport 0000:00:03.1: PCIe Bus Error: severity=Corrected, type=Data Link "
        "Layer, (Receiver ID)\n"
    )


@each(
    "text, outcome, told",
    [
        ("[ 1.0] Linux version 6.1.0\n", "pass", "no fault"),
        (
            "[ 1.0] NVRM: Xid (PCI:0000:01:00): 13, x\n",
            "pass",
            "1 warnings, the first: xid 13 on 0000:01:00.0",
        ),
        (
            f"[ 1.0] NVRM: Xid (PCI:0000:01:00): 63, x\n[ 2.0] {XID79}\n",
            "fail",
            "xid 79 on 0000:0a:00.0: The GPU no longer answers",
        ),
        ("[ 1.0] Kernel panic - not syncing: VFS\n", "error", "proves no fault of the hardware"),
        ("** 123 printk messages dropped **\n", "error", "lost dropped"),
        (f"** 123 printk messages dropped **\n{XID79}\n", "fail", "xid 79"),
        (
            corrected("[ 1.0]") + corrected("[ 1.4]") + corrected("[ 2.0]"),
            "fail",
            "0000:00:03.1 corrected 3 or more PCIe errors within 1 s",
        ),
        (corrected("[ 1.0]") + corrected("[ 1.4]") + corrected("[ 2.1]"), "pass", "3 warnings"),
        (corrected("Sep 19 16:18:02 h kernel:") * 3, "fail", "0000:00:03.1 corrected"),
        (
            corrected("Sep 19 16:18:02 h kernel:") * 2 + corrected("Sep 19 16:18:09 h kernel:"),
            "pass",
            "3 warnings",
        ),
        (corrected("") * 5, "pass", "5 warnings"),
        (
            "NVRM: The NVIDIA GPU 0000:01:00.0 requires use of the NVIDIA open kernel modules.\n"
            "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)\n",
            "error",
            "driver open-modules",
        ),
        ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)\n", "fail", "rm-init"),
        # at the end of a long line
        (f"[    1.000000] {'a' * LONGEST} {XID79}", "fail", "xid 79"),
        # a long line of another program is no gap in the kernel's log
        (
            f"Jan  1 00:00:00 host dockerd[1]: {'a ' * LONGEST}\nJan  1 00:00:01 host kernel: usb "
            "1-1: new device\n",
            "pass",
            "no fault",
        ),
        # of no place
        (
            "[ 1.0] Kernel panic - not syncing: VFS: x\n",
            "error",
            "kernel panic: The kernel stopped.",
        ),
    ],
)
def test_read(text: str, outcome: str, told: str) -> None:
    output = read_kernel_log.parse(text)
    reason = words.text(output.reason)
    assert (output.outcome, told in reason) == (outcome, True), reason


@each(
    "text",
    [
        "",
        " \n\r\n",
        "hello\n",
        "Sep 19 16:18:02 h nginx[1]: GET /\n",
        '{"MESSAGE": "x"}\n',
        "stress-ng: info: [1] x",
    ],
)
def test_what_is_no_kernel_log_is_unreadable(text: str) -> None:
    assert "kernel-log" in raised(UnreadableOutput, read_kernel_log.parse, text)


def test_json_object() -> None:
    output = json_object(
        read_kernel_log.parse(f"[ 5.5] {XID79}\n[ 6.0] EDAC MC0: 3 CE memory read error on A (x)\n")
    )
    assert json.loads(json.dumps(output))["events"][0] == {
        "kind": "xid",
        "code": 79,
        "component": "0000:0a:00.0",
        "severity": "fatal",
        "time": 5.5,
        "text": XID79,
        "meaning": "The GPU no longer answers on the PCIe bus.",
        "action": "Power the machine off and on, reseat the card and its power cables; if it "
        "comes back, replace the GPU. "
        "NVIDIA's catalog: RESTART_BM, then CONTACT_SUPPORT.",
        "count": 1,
    }
    assert output["readings"] == {
        "edac_corrected": {"unit": "count", "values": {"dimm:A": 3.0}},
        "kernel_fatal": {"unit": "count", "values": {"machine": 1.0}},
        "kernel_error": {"unit": "count", "values": {"machine": 0.0}},
        "kernel_warning": {"unit": "count", "values": {"machine": 1.0}},
    }


# Values and tables


@each(
    "text, address",
    [
        ("0000:01:00", "0000:01:00.0"),
        ("00000000:01:00.0", "0000:01:00.0"),
        ("0004:0A:1c.7", "0004:0a:1c.7"),
        ("01:00.0", "0000:01:00.0"),
        ("0001:00", "0000:01:00.0"),
        ("x", None),
    ],
)
def test_pci_address(text: str, address: str | None) -> None:
    found = pci_function(text)
    assert (None if found is None else str(found)) == address


def test_the_tables_are_sound() -> None:
    xid = table("xid")
    assert set(xid["xid"]) == {str(code) for code in range(1, 173)}
    for entry in [
        *xid["xid"].values(),
        *table("sxid")["sxid"].values(),
        *table("kernel")["message"],
    ]:
        assert entry["severity"] in RANK
        assert entry["meaning"].endswith(".")
    assert set(xid["recovery_action"].values()) <= set(RANK)
    assert all(entry["action"].endswith(".") for entry in xid["xid"].values())


PIECES = st.sampled_from(
    [
        "[ 1.0] ",
        "6,1,2,-;",
        "NVRM: Xid (",
        "PCI:0000:01:00",
        "): ",
        "79",
        ", x",
        "SXid (",
        "pcieport 0000:00:02.0: ",
        "AER: ",
        "\n",
        "\r",
        "\\x0a",
        "PCIe Bus Error: severity=",
        "Corrected",
        "[Hardware Error]: ",
        "event severity: fatal",
        "EDAC MC0: 1 CE ",
        "CPU 1: Machine Check: 0 Bank 1: ",
        "be00000000800400",
        "Machine check events logged",
        "9" * 30,
        "NVRM: ",
        "fallen off the bus",
        "Sep 19 16:18:02 h kernel: ",
        "{1}",
        "{",
        "}",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
def test_nothing_makes_it_crash(text: str) -> None:
    try:
        output = read_kernel_log.parse(text)
    except UnreadableOutput:
        return
    json.dumps(json_object(output))


@given(st.lists(PIECES).map("".join))
def test_no_text_around_it_hides_an_xid_79(text: str) -> None:
    assert read_kernel_log.parse(f"{text}\n[ 9.0] {XID79}\n{text}").outcome == "fail"


def test_json_that_is_nested_too_deep_in_a_later_line_is_no_crash() -> None:
    assert_raises(UnreadableOutput, read_kernel_log.parse, '{"MESSAGE": "x"}\n' + "[" * 100000)
    for depth in range(200, 1000, 40):
        deep = '{"MESSAGE": "x", "__REALTIME_TIMESTAMP": ' + "[" * depth + "]" * depth + "}"
        assert_raises(UnreadableOutput, read_kernel_log.parse, deep)


@pytest.mark.sweep
@pytest.mark.timeout(100)
@each(
    "line",
    some(
        [
            "[1.0] " * 20_000,
            "[1.0] " + "mce: " * 20_000,
            "[1.0] EDAC MC0: 1 CE x" + " on a" * 20_000,
            "[1.0] [Hardware Error]: " + "CPU:1 MC1_STATUS[" * 10_000,
            "[1.0] " + "Xid (1 " * 20_000,
            "[1.0] NVRM: Xid (PCI:0000:01:00): 154, " + "recovery action changed from " * 5000,
            "[1.0] pci 0000:00:01.0: aer_status: 0x1\n[1.0] pci 0000:00:01.0:    [ 1] a"
            + " " * 100_000
            + "b",
            "[1.0] mce: Machine check events logged\n" * 3000,
            "[1.0] NVRM: API mismatch\n" * 5000,
            "[1.0] NVRM: NV_ERR_GPU_IS_LOST\n[1.0] NVRM: Xid (PCI:0000:01:00): 79, x\n" * 2000,
            "Jan 12 08:14:02 n kernel: message repeated 999 times: [ x]\n" * 2000,
        ],
        5,
    ),
    told=lambda line: f"{line[:60]}...",
)
def test_no_line_and_no_number_of_lines_takes_long(line: str) -> None:
    assert read_kernel_log.parse(line).outcome in {"pass", "fail", "error"}


@each(
    "repeated",
    ["NVRM: ", "kernel: ", "[Hardware Error]: ", "AER: Corrected error received: 0000:00:01.0 "],
)
def test_a_line_longer_than_any_of_the_kernels_is_read_in_pieces_and_proves_no_health(
    repeated: str,
) -> None:
    """Patterns see no piece longer than LONGEST, so the time for a text grows as the text does;
    what stood at a cut is not read.
    """
    text = repeated * (100_000 // len(repeated))
    assert max(len(line.text) for line in kernel_lines(text)) <= LONGEST
    assert read_kernel_log.parse(f"[    1.000000] {text}").outcome != "pass"
    assert "cut" in {event.code for event in read_kernel_log.events(text)}


def test_an_event_of_no_part_has_none_as_its_component() -> None:
    (event,) = read_kernel_log.events("[    1.000000] Out of memory: Killed process 1 (x)\n")
    assert event.component is None
    assert event.to_json_object()["component"] is None
