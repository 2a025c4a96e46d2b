from __future__ import annotations

from dataclasses import replace

import msgspec
import terminal_run
import translated
from cases import each
from rich.console import Console
from rich.text import Text
from thoroughness import some

from acceptance.core.language import ENGLISH, Language
from acceptance.core.parts import Gpu, parse
from acceptance.reports import panel
from acceptance.reports.gauges import Gauge, Gauges
from acceptance.reports.text import ASCII, UNICODE, Glyphs


def gauges(gpus: int) -> Gauges:
    found = Gauges(
        [Gpu(n) for n in range(gpus)], {parse(terminal_run.address(n)): Gpu(n) for n in range(gpus)}
    )
    for body in terminal_run.live(gpus):
        found.entry(terminal_run.entry(body))
    return found


def drawn(
    gpus: list[Gauge] | int, width: int, signs: Glyphs = UNICODE, language: Language = ENGLISH
) -> list[str]:
    shown = gauges(gpus).gauges() if isinstance(gpus, int) else gpus
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(panel.table(shown, width, language, signs))
    return [line.rstrip() for line in capture.get().splitlines()]


def summed_up(found: Gauges) -> list[str]:
    return [part.plain for part in panel.summary_parts(found.gauges(), ENGLISH, UNICODE)]


def test_a_gpu_is_a_line() -> None:
    assert drawn(2, 110) == [
        "GPU     power   temp     clock  errors  held back by    latest figure         burn",
        (
            "gpu0    448 W  64 \u00b0C  2520 MHz       0  power limit     640 TFLOP/s bf16      "
            "turn 3 of 60"
        ),
        (
            "gpu1    448 W  86 \u00b0C  1800 MHz       1  too hot         641 TFLOP/s bf16      "
            "turn 3 of 60"
        ),
    ]


def test_the_least_needed_columns_go_first() -> None:
    heads = [drawn(8, width)[0].split("  ") for width in (100, 80, 62, 50, 42, 24, 12, 5)]
    assert [[head.strip() for head in line if head.strip()] for line in heads] == [
        ["GPU", "power", "temp", "clock", "errors", "held back by", "latest figure", "burn"],
        ["GPU", "power", "temp", "clock", "errors", "held back by", "latest figure"],
        ["GPU", "power", "temp", "clock", "errors", "held back by"],
        ["GPU", "power", "temp", "errors", "held back by"],
        ["GPU", "temp", "errors", "held back by"],
        ["GPU", "temp", "errors"],
        ["GPU"],
        ["GPU"],
    ]


@each("width", some(range(1, 130), 30))
def test_no_line_is_wider_than_the_terminal_and_plain_signs_are_ascii(width: int) -> None:
    for signs in (UNICODE, ASCII):
        lines = drawn(8, width, signs)
        assert (len(lines), max(map(len, lines)) <= width) == (9, True)
        assert signs is UNICODE or width < 20 or "".join(lines).isascii()


def test_many_gpus_in_a_few_words() -> None:
    assert summed_up(gauges(8)) == [
        "8 GPUs",
        "errors: 1 (gpu1)",
        "hottest gpu1 86 \u00b0C",
        "slowest gpu1 1410 MHz",
        "too hot: gpu1, gpu3",
        "5548 W in all",
    ]
    assert summed_up(Gauges([Gpu(0), Gpu(1)], {})) == ["2 GPUs", "no errors"], "what was read"
    found = gauges(3)
    lost = msgspec.structs.replace(
        terminal_run.XID,
        kind="gpu-lost",
        code="nvml",
        source="nvml",
        component=parse(terminal_run.address(2)),
    )
    found.entry(terminal_run.entry(lost))
    assert summed_up(found)[1:3] == ["LOST: gpu2", "errors: 2 (gpu1, gpu2)"]
    assert panel.throttle_words(found.gauges()[2], ENGLISH).plain == "LOST"
    parts = [Text(part) for part in ("one", "two", "three", "a part that is too long")]
    assert [line.plain for line in panel.flow_lines(parts, 12, ASCII)] == [
        "one, two",
        "three",
        "a part th...",
    ]
    plain = list(panel.summary_parts(gauges(8).gauges(), ENGLISH, ASCII))
    assert all(line.plain.isascii() for line in panel.flow_lines(plain, 30, ASCII))


def test_the_machine_itself() -> None:
    told = " ".join(
        part.plain for part in panel.machine(terminal_run.MACHINE.values, ENGLISH, ASCII)
    )
    assert told == "CPU 71 C CPU clock 4950 MHz system load 32.1 RAM free 18 GiB"
    assert list(panel.machine({}, ENGLISH, ASCII)) == []


@each("room, text", [(8, "a longer"), (7, "a l\u2026"[:3] + "ong\u2026"), (1, "\u2026"), (0, "")])
def test_what_is_cut_is_shown_to_be(room: int, text: str) -> None:
    assert panel.cut(Text("a longer"), room, UNICODE).plain == text


def test_another_language() -> None:
    words = {
        "held back by": "\u9650\u5236\u539f\u56e0",
        "too hot": "\u8fc7\u70ed",
        "temp": "\u6e29\u5ea6",
    }
    lines = drawn(2, 80, UNICODE, translated.language(words))
    assert "\u9650\u5236\u539f\u56e0" in lines[0]
    assert "\u8fc7\u70ed" in lines[2]


RATES = {"pcie_rx_gb_s": 55.1, "pcie_tx_gb_s": 0.31, "nvlink_rx_gb_s": 212.4}


def moving(gpus: int) -> list[Gauge]:
    return [replace(one, rates=RATES) for one in gauges(gpus).gauges()]


def test_what_links_move_is_in_the_table_of_a_wide_terminal_or_said_below() -> None:
    head, line = drawn(moving(1), 130)
    for where, text in (
        (head, "PCIe in/out  NVLink in/out"),
        (line, "55/0.3 GB/s"),
        (line, "212/- GB/s"),
    ):
        assert text in where
    plain = gauges(2).gauges()
    assert "PCIe" not in "".join(drawn(plain, 200))
    for found, width, shows, parts in (
        (moving(1), 130, True, ["GB/s in/out", "gpu0 PCIe 55/0.3 NVLink 212/-"]),
        (moving(2), 80, False, None),
        (plain, 80, True, []),
    ):
        assert panel.shows_rates(found, width, ENGLISH, UNICODE) is shows
        told = [part.plain for part in panel.rate_parts(found, ENGLISH)]
        assert parts in (None, told)
