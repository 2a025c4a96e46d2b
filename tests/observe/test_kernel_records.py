"""Where a record of several messages ends: what still belongs to it, and what is told by itself.

At each bound, and one beyond it.
"""

from __future__ import annotations

import pytest
from cases import each
from kernel_texts import brief, lines

from acceptance.observe.event import KernelEvent
from acceptance.tools.read import kernel_log as read_kernel_log


def others(count: int) -> tuple[str, ...]:
    """So many messages that are nobody's."""
    return ("usb 1-1: new device",) * count


def first(text: str) -> KernelEvent:
    return read_kernel_log.events(text)[0]


# --- PCI Express ---

STATUS = "nvidia 0000:17:00.0: AER: aer_status: 0x00000040, aer_mask: 0x00002000"
BIT = "nvidia 0000:17:00.0: AER:    [ 6] BadTLP"
HEADER = "pcieport 0000:17:00.0: AER: Corrected error received: id=0010"
BUS = (
    "pcieport 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)"
)


@each(
    "name",
    [
        *(
            "RxErr",
            "BadTLP",
            "BadDLLP",
            "Rollover",
            "Timeout",
            "NonFatalErr",
            "CorrIntErr",
            "HeaderOF",
        ),
        *("Receiver Error", "Bad TLP", "Bad DLLP", "RELAY_NUM Rollover", "REPLAY_NUM Rollover"),
        *("Replay Timer Timeout", "Advisory Non-Fatal", "Advisory Non-Fatal Error"),
        *("Corrected Internal Error", "Header Log Overflow"),
    ],
)
def test_every_name_of_a_correctable_bit_is_known(name: str) -> None:
    assert brief(lines(STATUS, f"nvidia 0000:17:00.0:    [ 1] {name}    (First)")) == [
        "aer corrected 0000:17:00.0 warning"
    ]


def test_a_report_ends_where_the_next_begins() -> None:
    assert first(lines(HEADER)).text == HEADER
    bit = "pcieport 0000:17:00.0:    [ 6] BadTLP"
    texts = [event.text for event in read_kernel_log.events(lines(BUS, BUS, bit))]
    assert texts == [BUS, f"{BUS}; BadTLP"]


@each(
    "bits, told",
    [
        ("00004000", "aer fatal 0000:17:00.0 fatal"),
        ("ffffbfff", "aer non-fatal 0000:17:00.0 error"),
    ],
)
def test_which_bits_are_fatal_is_read_bit_by_bit(bits: str, told: str) -> None:
    text = lines(
        "nvidia 0000:17:00.0: AER: aer_status: 0x00004000, aer_mask: 0x00000000",
        "nvidia 0000:17:00.0: AER:    [14] CmpltTO                (First)",
        f"nvidia 0000:17:00.0: AER: aer_uncor_severity: 0x{bits}",
    )
    assert brief(text) == [told]


@each(
    "severity, meaning, action",
    [
        ("Corrected", "recovered", "If it repeats: reseat the card and its riser, shorten"),
        (
            "Uncorrected (Non-Fatal)",
            "the link itself still works",
            "Reseat the card and its riser; try",
        ),
        (
            "Uncorrected (Fatal)",
            "The link failed.",
            "Reseat the card, its riser and its power cables",
        ),
        ("of a later kernel", "does not class", "Look at the line itself."),
    ],
)
def test_what_each_class_means_and_asks_for(severity: str, meaning: str, action: str) -> None:
    found = first(lines(f"nvidia 0000:17:00.0: PCIe Bus Error: severity={severity}"))
    assert meaning in found.meaning
    assert found.action.startswith(action)


# --- NVIDIA's driver ---

XID = "NVRM: Xid (PCI:0000:0a:00): 79, pid=1, name=x, GPU has fallen off the bus."
OTHER_XID = XID.replace("79,", "13,")
RECOVERY = (
    "NVRM: Xid (PCI:0000:5f:00): 154, GPU recovery action changed from 0x0 (None) to 0x02 "
    "(Node Reboot Required)"
)
LOST_GPU = "gpu-lost bus 0000:0a:00.0 fatal"
BOUND = "NVRM: GPU 0000:01:00.0 is already bound to nouveau."
NOT_CALLED = "NVRM: The NVIDIA probe routine was not called for 1 device(s)."
LOST = "NVRM: nvAssert: GPU lost from the bus [NV_ERR_GPU_IS_LOST]"
OFF = "NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus."
FAILED = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x56:1463)"
GIVEN_UP = "NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0"
NAMELESS = "NVRM: rm_init_adapter failed for device bearing minor number 0"
ADAPTER = "rm-init adapter 0000:3b:00.0 error"


def test_a_program_that_quotes_the_kernel_or_its_driver_tells_nothing_new() -> None:
    told = f"Sep 19 16:18:01 h kernel: {XID}\n"
    quoted = f"Sep 19 16:18:02 h agent[7]: saw {XID}\n"
    assert brief(told + quoted) == brief(told) == brief(quoted) == ["xid 79 0000:0a:00.0 fatal"]
    assert brief(quoted + told) == brief(told)
    assert brief(f"Sep 19 16:18:02 h app[3]: {OFF}\n") == []


SWITCH = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 24007, Fatal, Link 30 sourcetrack timeout"
DETAILS = (
    (
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 24007, Severity 1 Engine instance 30 "
        "Sub-engine instance 00"
    ),
    "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 24007, Data {0x00000000, 0x00000000}",
)


def test_the_details_of_an_sxid_are_the_same_incident_and_its_next_line_of_words_is_another() -> (
    None
):
    assert brief(lines(SWITCH, *DETAILS)) == ["sxid 24007 0000:05:00.0 fatal"]
    assert brief(lines(SWITCH, SWITCH)) == ["sxid 24007 0000:05:00.0 fatal"] * 2
    assert first(lines(SWITCH)).text == SWITCH.removeprefix("nvidia-nvswitch3: ")


@pytest.mark.parametrize(("between", "count"), [(4, 1), (5, 2)])
def test_the_details_of_an_sxid_stand_within_five_of_them(between: int, count: int) -> None:
    other = [SWITCH.replace("24007", str(11004 + number)) for number in range(between)]
    assert brief(lines(SWITCH, *other, DETAILS[0])).count("sxid 24007 0000:05:00.0 fatal") == count


@each(
    "before, first, between, second, count",
    [
        (0, HEADER, 11, BUS, 1),
        (0, HEADER, 12, BUS, 2),
        (0, BOUND, 2, NOT_CALLED, 1),
        (0, BOUND, 3, NOT_CALLED, 2),
        (10, BOUND, 2, NOT_CALLED, 1),
        (10, BOUND, 3, NOT_CALLED, 2),
        (0, LOST, 39, XID, 1),
        (0, LOST, 40, XID, 2),
        (0, FAILED, 2, GIVEN_UP, 1),
        (0, FAILED, 3, GIVEN_UP, 2),
    ],
)
def test_within_how_many_messages_a_second_one_repeats_the_first(
    before: int, first: str, between: int, second: str, count: int
) -> None:
    assert len(brief(lines(*others(before), first, *others(between), second))) == count


def test_a_serial_number_of_no_known_board_is_nobody_s() -> None:
    text = lines("NVRM: GPU Board Serial Number: 1650000000001", "usb 1-1: new device", LOST)
    assert first(text).component is None
    assert "1650000000001" not in first(text).text


# --- machine checks ---

HW = "[Hardware Error]: words of a later kernel"
UNKNOWN = "mce unknown None error"
BANK = "mce: [Hardware Error]: CPU 0: Machine Check: {mcg} Bank 5: 9c00000000020e0f"
AMD = "[Hardware Error]: Corrected error, no action required."
AMD_STATUS = (
    "[Hardware Error]: CPU:16 (15:1:2) MC4_STATUS[Over|CE|MiscV|-|AddrV|CECC]: 0xdc4ec00000080a13"
)
NODE = "[Hardware Error]: MC4 Error (node 2): DRAM ECC error detected on the NB."


@each(
    "mcg, severity",
    [
        ("0", "warning"),
        ("1", "warning"),
        ("4", "error"),
        ("40", "warning"),
        ("0000000000000005", "error"),
    ],
)
def test_the_bit_that_says_that_the_cpu_stopped(mcg: str, severity: str) -> None:
    assert brief(lines(BANK.format(mcg=mcg))) == [f"mce bank5 cpu0 {severity}"]


@each(
    "head, told, length",
    [
        (BANK.format(mcg="0"), "mce bank5 cpu0 warning", 6),
        (AMD_STATUS, "mce bank4 cpu16 warning", 8),
        (AMD, "mce Corrected error None warning", 10),
        (HW, UNKNOWN, 12),
    ],
)
def test_how_many_messages_a_record_has(head: str, told: str, length: int) -> None:
    assert brief(lines(head, *[HW] * (length - 1))) == [told]
    assert brief(lines(head, *[HW] * length)) == [told, UNKNOWN]


def test_what_stands_below_the_head_of_an_amd_record_and_is_no_grade_explains_nothing() -> None:
    assert brief(lines(NODE, HW)) == [UNKNOWN]
    assert first(lines(NODE, HW)).text == NODE


def test_a_record_is_told_with_what_it_says_below_and_nothing_else() -> None:
    assert first(lines(BANK.format(mcg="0"))).text == BANK.format(mcg="0")
    assert first(lines(AMD, AMD_STATUS)).text == f"{AMD}; {AMD_STATUS}"


@each(
    "text, meaning",
    [
        (AMD, "The CPU found an error and corrected it."),
        (
            "[Hardware Error]: Deferred error, no action required.",
            "The CPU found an error that it could not correct.",
        ),
        (
            "[Hardware Error]: System Fatal error.",
            "The CPU found an error that it could not correct.",
        ),
    ],
)
def test_what_the_grades_of_amd_mean(text: str, meaning: str) -> None:
    assert first(lines(text)).meaning == meaning


# --- the firmware's reports ---


@each(
    "word, severity, corrected",
    [
        ("fatal", "fatal", False),
        ("recoverable", "error", False),
        ("corrected", "warning", True),
        ("info", "info", True),
        ("whatever", "error", False),
    ],
)
def test_what_the_firmware_s_grades_are_worth(word: str, severity: str, corrected: bool) -> None:
    (found,) = read_kernel_log.events(
        lines(
            "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1",
            f"{{1}}[Hardware Error]: event severity: {word}",
            "{1}[Hardware Error]:   section_type: memory error",
        )
    )
    assert found.severity == severity
    assert ("and corrected it" in found.meaning) == corrected
    assert found.text.endswith(f"; event severity: {word}; section_type: memory error")


@each("length", [2, 3, 4])
def test_each_report_of_the_firmware_is_told(length: int) -> None:
    report = (
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1",
        "{1}[Hardware Error]: event severity: corrected",
        *("{1}[Hardware Error]:   more",) * (length - 2),
    )
    assert brief(lines(*report, *report)) == ["apei None None warning"] * 2


# --- memory modules ---

BROKEN = "EDAC MC0: 5 CE memory re"
HALF = "ad error on DIMM_A1 (channel:0)"
BANKED = "EDAC skx MC1: CPU 28: Machine Check Event: 0x0 Bank 7: 0x8c00004000010090"
GRADED, MODULE = "mce Corrected error None warning", "edac CE dimm:A warning"
COUNTED = "EDAC MC1: 1 CE memory read error on A (channel:0 slot:0)"


@each(
    "texts, told",
    [
        (
            (BOUND, "NVRM: API mismatch: the client has the version 550.54.14, but"),
            ["driver bound 0000:01:00.0 error", "driver mismatch 0000:01:00.0 error"],
        ),
        ((OTHER_XID, OFF), ["xid 13 0000:0a:00.0 warning", LOST_GPU]),
        ((OFF, OTHER_XID), [LOST_GPU, "xid 13 0000:0a:00.0 warning"]),
        ((OFF, OFF, OFF.replace("0a", "0b")), [LOST_GPU, LOST_GPU.replace("0a", "0b")]),
        ((FAILED, NAMELESS), [ADAPTER]),
        ((NAMELESS,), ["rm-init adapter None error"]),
        (
            (
                FAILED.replace("GPU 0000:3b:00.0: ", ""),
                "nvidia: probe of 0000:3b:00.0 failed with error -1",
            ),
            ["rm-init adapter None error"],
        ),
        ((FAILED, GIVEN_UP.replace("3b", "5e")), [ADAPTER, ADAPTER.replace("3b", "5e")]),
        ((RECOVERY,), ["xid 154 0000:5f:00.0 fatal"]),
        ((HALF, BROKEN, "usb 1-1: new device"), ["edac CE mc0 warning"]),
        (("EDAC MC0: 1 CE memory scrub error (channel:0)", HALF), ["edac CE mc0 warning"]),
        (
            ("EDAC MC0: 1 CE memory read error on unknown label (channel:0)",),
            ["edac CE mc0 warning"],
        ),
        ((COUNTED, BANKED), ["edac CE dimm:A warning", "mce bank7 cpu28 warning"]),
    ],
    told=[
        "another message close by repeats nothing",
        "an Xid that is not 79 says nothing of a lost GPU below",
        "nor of one above",
        "a GPU is lost once, and another is another",
        "a message without an address gives up the GPU before it",
        "and none where none stands before it",
        "nor one whose address another program's line has",
        "another GPU that is given up close by is another",
        "a recovery action may have leading zeros",
        "the second half of a broken message is not what stands before it",
        "a whole message takes no module from below",
        "a label that says it is unknown is none",
        "a bank that EDAC counted above is another",
    ],
)
def test_what_is_told_of_messages_close_to_each_other(
    texts: tuple[str, ...], told: list[str]
) -> None:
    assert brief(lines(*texts)) == told


@each(
    "first, between, second, told",
    [
        (STATUS, 11, BIT, ["aer corrected 0000:17:00.0 warning"]),
        (STATUS, 12, BIT, ["aer unknown 0000:17:00.0 error"]),
        *((NODE, between, AMD, [GRADED]) for between in (0, 3)),
        (NODE, 4, AMD, [UNKNOWN, GRADED]),
        *((AMD, between, AMD_STATUS, ["mce bank4 cpu16 warning"]) for between in (0, 3)),
        (AMD, 4, AMD_STATUS, [GRADED]),
        *((BROKEN, between, HALF, ["edac CE dimm:DIMM_A1 warning"]) for between in (0, 1)),
        (BROKEN, 2, HALF, ["edac CE mc0 warning"]),
        *((BANKED, between, COUNTED, [MODULE]) for between in (0, 7)),
        (BANKED, 8, COUNTED, ["mce bank7 cpu28 warning", MODULE]),
    ],
)
def test_how_far_below_what_belongs_to_a_record_may_stand(
    first: str, between: int, second: str, told: list[str]
) -> None:
    """The bits of a report, the grade and the status of AMD, the second half of a broken message,
    a bank that EDAC counts.
    """
    assert brief(lines(first, *others(between), second)) == told


# --- notices that a machine check was logged ---

NOTICE = "mce: [Hardware Error]: Machine check events logged"
APEI = "{1}[Hardware Error]: event severity: corrected"
PAGE = "Memory failure: 0x10c0de0: recovery action for dirty LRU page: Recovered"


def unexplained(text: str) -> int:
    return sum(event.code == "logged" for event in read_kernel_log.events(text))


@each("told", [COUNTED, APEI, PAGE, BANK.format(mcg="0")])
def test_what_explains_a_notice(told: str) -> None:
    assert unexplained(lines(NOTICE, told)) == 0
    assert unexplained(lines(told, NOTICE)) == 0


@pytest.mark.parametrize(("between", "count"), [(19, 0), (20, 1)])
def test_a_notice_is_explained_within_twenty_messages(between: int, count: int) -> None:
    texts = (NOTICE, *others(between), COUNTED)
    assert unexplained("".join(f"{text}\n" for text in texts)) == count
    assert unexplained("".join(f"{text}\n" for text in reversed(texts))) == count


@each("seconds, count", [(5.0, 0), (5.5, 1), (9.0, 1)])
def test_a_notice_is_explained_within_five_seconds(seconds: float, count: int) -> None:
    assert unexplained(f"[  100.0] {NOTICE}\n[  {100 + seconds}] {COUNTED}\n") == count
    assert unexplained(f"[  100.0] {COUNTED}\n[  {100 + seconds}] {NOTICE}\n") == count
