"""Messages of drivers and firmware in their several forms, and what must not be taken for one."""

from __future__ import annotations

from cases import each

from acceptance.observe.event import table
from acceptance.observe.kernel_line import kernel_lines
from acceptance.observe.kernel_log import events_of
from acceptance.tools.read import kernel_log as read_kernel_log


def brief(*texts: str) -> list[str]:
    lines = kernel_lines("".join(f"[  100.5] {text}\n" for text in texts))
    return [f"{e.kind} {e.code} {e.component} {e.severity}" for e in events_of(lines)]


@each(
    "line, expected",
    [
        (
            "mlx5_core 0000:5c:00.0: mlx5_health_try_recover:338:(pid 9): health recovery flow "
            "aborted, PCI reads still not working",
            "network fatal 0000:5c:00.0 error",
        ),
        (
            "mlx4_core 0000:5c:00.0: Internal error detected:",
            "network fatal 0000:5c:00.0 error",
        ),
        (
            "mlx5_core 0000:0d:00.0: print_health_info:431:(pid 0): Health issue observed, High "
            "temperature, severity(4) WARNING:",
            "network command 0000:0d:00.0 warning",
        ),
        (
            "mlx5_core 0000:61:00.0: print_health_info:520:(pid 0): synd 0x10: High temperature",
            "thermal network 0000:61:00.0 warning",
        ),
        (
            "mlx5_core 0000:18:00.0 ens1f0np0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed "
            "out 5000 ms",
            "network transmit 0000:18:00.0 warning",
        ),
        (
            "NETDEV WATCHDOG: eth0 (igb): transmit queue 3 timed out",
            "network transmit eth0 warning",
        ),
        (
            "mlx5_core 0000:18:00.0 ens1f0np0: TX timeout detected",
            "network transmit 0000:18:00.0 warning",
        ),
        (
            "igb 0000:03:00.0 eth0: The network adapter was stopped because it overheated",
            "thermal network 0000:03:00.0 error",
        ),
        (
            "bnxt_en 0000:41:00.0 ens2f0np0: Chip temperature has gone above the critical thermal "
            "threshold!",
            "thermal network 0000:41:00.0 error",
        ),
        (
            "bnxt_en 0000:41:00.0 ens2f0np0: Chip temperature has gone above the warning thermal "
            "threshold!",
            "thermal network 0000:41:00.0 warning",
        ),
        (
            "bnx2x 0000:41:00.0 eth2: Fan Failure on Network Controller has caused the driver to "
            "shutdown the card to prevent permanent damage.",
            "thermal network 0000:41:00.0 error",
        ),
        (
            "megaraid_sas 0000:18:00.0: Found FW in FAULT state, will reset adapter scsi0.",
            "disk controller-fault 0000:18:00.0 error",
        ),
        (
            "megaraid_sas: FW detected to be in faultstate, restarting it...",
            "disk controller-fault None error",
        ),
        ("mpt2sas0: fault_state(0x0d04)!", "disk controller-fault mpt2sas0 error"),
        ("mpt3sas_cm1: coredump_state(0x2100)!", "disk controller-fault mpt3sas_cm1 error"),
        (
            "mpt3sas_cm0: SAS host is non-operational !!!!",
            "disk controller-fault mpt3sas_cm0 error",
        ),
        ("aacraid: Host adapter BLINK LED 0xef", "disk controller-fault None error"),
        (
            "smartpqi 0000:64:00.0: controller offline: reason code 0x4 (no controller heartbeat "
            "detected)",
            "disk controller-fault 0000:64:00.0 error",
        ),
        (
            "device-mapper: integrity: Checksum failed at sector 0xe228",
            "disk integrity None error",
        ),
        (
            "device-mapper: crypt: dm-0: INTEGRITY AEAD ERROR, sector 123",
            "disk integrity dm-0 error",
        ),
        ("device-mapper: verity: 8:3: metadata block 5 is corrupted", "disk verity 8:3 error"),
        (
            "pciehp 0000:3d:02.0:pcie004: Slot(1): Power fault",
            "pcie power-fault 0000:3d:02.0 error",
        ),
        ("pci 0000:00:01.1: retraining failed", "pcie retraining 0000:00:01.1 error"),
        (
            "pci 0000:06:00.0: BAR 1: failed to assign [mem size 0x2000000000 64bit pref]",
            "pcie bar 0000:06:00.0 error",
        ),
        (
            "pci 0000:06:00.0: BAR 1: can't assign mem pref (size 0x10000000)",
            "pcie bar 0000:06:00.0 error",
        ),
        (
            "DMAR:[DMA Read] Request device [03:00.0] fault addr ffff0000",
            "iommu dmar 0000:03:00.0 error",
        ),
        (
            "dmar: DMAR:[DMA Read] Request device [03:00.0] fault addr ffff0000",
            "iommu dmar 0000:03:00.0 error",
        ),
        (
            "DMAR: [INTR-REMAP] Request device [0xc9:0x05.0] fault index 0xa00 [fault reason 0x25]",
            "iommu dmar 0000:c9:05.0 error",
        ),
        (
            "AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=0000:c1:00.0 address=0x0000000fffbd40]",
            "iommu amd-vi 0000:c1:00.0 error",
        ),
        (
            "iommu ivhd0: AMD-Vi: Event logged [INVALID_DEVICE_REQUEST device=0000:41:00.0 "
            "pasid=0x00000 address=0xfffffffdf8000000 flags=0x0a00]",
            "iommu amd-vi 0000:41:00.0 error",
        ),
        ("AMD-Vi: Completion-Wait loop timed out", "iommu suppressed None warning"),
        ("dmar_fault: 33 callbacks suppressed", "iommu suppressed None warning"),
        ("ata8: softreset failed (1st FIS failed)", "disk comreset ata8 error"),
        ("ata3.00: qc timeout (cmd 0xec)", "disk identify ata3.00 error"),
        ("ata1.00: error: { ICRC ABRT }", "disk link-errors ata1.00 error"),
        ("ata1.00: error: { ABRT UNC }", "disk media ata1.00 error"),
        (
            "NVRM: GPU0 _kgspRpcRecvPoll: LibOS heartbeat timed out",
            "gpu-hang gsp-heartbeat None error",
        ),
        (
            "NVRM: GPU 0000:41:00.0: GSP RM heartbeat timed out",
            "gpu-hang gsp-heartbeat 0000:41:00.0 error",
        ),
        (
            "NVRM: rpcRmApiAlloc_GSP: GspRmAlloc failed: hClass=0x0000c56f; status=0x00000062",
            "gpu-hang reset-required None error",
        ),
        (
            "NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU currently in full-chip reset "
            "[NV_ERR_GPU_IN_FULLCHIP_RESET] (0x0000000F)",
            "gpu-hang fullchip-reset None error",
        ),
        (
            "NVRM: rpcRmApiFree_GSP: GspRmFree failed: hClient=0xc1d00001; status=0x0000000f",
            "gpu-lost bus None fatal",
        ),
        (
            "NVRM: rpcRmApiAlloc_GSP: GspRmAlloc failed: hClass=0x0000c56f; status=0x00000010",
            "gpu-hang fullchip-reset None error",
        ),
        (
            "nvme nvme0: resetting controller due to persistent internal error",
            "disk controller nvme0 error",
        ),
        ("nvme nvme0: resetting controller due to AER", "disk controller nvme0 error"),
        (
            "ata1.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen",
            "disk ata ata1.00 error",
        ),
        (
            "ata1: exception Emask 0x10 SAct 0x0 SErr 0x4040000 action 0xe frozen",
            "disk ata ata1 error",
        ),
        (
            "NVRM: GPU 0000:41:00.0: FB_IFACE disable for fullchip reset failed.",
            "gpu-hang fullchip-reset 0000:41:00.0 error",
        ),
        (
            "NVRM: GPU0 kgspHealthCheck_TU102: ********* GSP-CrashCat Report *********",
            "gpu-hang gsp-core-dump None error",
        ),
    ],
)
def test_the_forms_of_a_message(line: str, expected: str) -> None:
    assert brief(line) == [expected]


@each(
    "line",
    [
        "mlx5_core 0000:18:00.0: Port module event: module 0, Cable plugged",
        "mlx5_core 0000:18:00.0: firmware version: 28.39.1002",
        "ngbe 0000:03:00.0: adapter restart because not over heated",
        "megaraid_sas 0000:18:00.0: FW now in Ready state",
        "zio pool=tank vdev=/dev/sdb1 error=95 type=6 offset=270336 size=8192 flags=721601",
        "pci 0000:01:00.0: BAR 5 [io  size 0x0080]: failed to assign",
        "pci 0000:08:00.0: VF BAR 0 [mem size 0x00400000 64bit pref]: failed to assign",
        "pci 0000:01:00.0: unknown header type 00, ignoring device",
        "DMAR: DRHD: handling fault status reg 3",
        "net_ratelimit: 12 callbacks suppressed",
        "ata5: SATA link down (SStatus 0 SControl 300)",
        "ata1.00: error: { ABRT }",
        "NVRM: Assertion failed: (status == NV_OK) || (status == NV_ERR_GPU_IN_FULLCHIP_RESET)",
        "early_memtest: # of tests: 4",
    ],
)
def test_what_is_no_event(line: str) -> None:
    assert brief(line) == []


XID45 = "NVRM: Xid (PCI:0000:dc:00): 45, pid=9, name=x, Ch 1 caused by previous Xid {}"


@each("cause, severity", [(149, "error"), (145, "error"), (13, "warning"), (79, "fatal")])
def test_an_xid_counts_as_that_which_caused_it(cause: int, severity: str) -> None:
    assert brief(XID45.format(cause)) == [f"xid {cause} 0000:dc:00.0 {severity}"]


def test_an_unknown_cause_is_an_error() -> None:
    assert "999" not in table("xid")["xid"]
    assert brief(XID45.format(999)) == ["xid 999 0000:dc:00.0 error"]


NO_MEMORY = "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x51:1941)"
NOT_STARTED = "NVRM: GPU 0000:{}:00.0: RmInitAdapter failed! (0x24:0x65:1436)"


@each(
    "texts, outcome",
    [
        ((NO_MEMORY,), "error"),
        (
            (
                NO_MEMORY,
                *["usb 1-1: new device"] * 9,
                "NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0",
            ),
            "error",
        ),
        ((NO_MEMORY, NOT_STARTED.format("41")), "fail"),
        ((NO_MEMORY.replace("0x51", "0x52"),), "fail"),
        (("NVRM: API mismatch: the client has the version 1", NOT_STARTED.format("41")), "error"),
    ],
)
def test_a_host_without_memory_proves_nothing_of_a_gpu(
    texts: tuple[str, ...], outcome: str
) -> None:
    text = "".join(f"[  100.5] {text}\n" for text in texts)
    assert read_kernel_log.parse(text).outcome == outcome
