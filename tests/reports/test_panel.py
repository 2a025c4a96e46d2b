from __future__ import annotations

from dataclasses import replace

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
from acceptance.reports.glyphs import ASCII, UNICODE, Glyphs


def gauges(gpus: int) -> Gauges:
    found = Gauges(
        [Gpu(n) for n in range(gpus)], {parse(terminal_run.address(n)): Gpu(n) for n in range(gpus)}
    )
    for body in terminal_run.live(gpus):
        found.entry(terminal_run.entry(body))
    return found


def drawn(
    gpus: int, width: int, signs: Glyphs = UNICODE, language: Language = ENGLISH
) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(panel.table(gauges(gpus).gauges(), width, language, signs))
    return [line.rstrip() for line in capture.get().splitlines()]


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
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for signs in (UNICODE, ASCII):
        lines = drawn(8, width, signs)
        assert max(map(len, lines)) <= width
        assert len(lines) == 9


def test_plain_signs_are_ascii() -> None:
    for width in (20, 80, 110):
        assert "\n".join(drawn(8, width, ASCII)).isascii()
    text = panel.flow_lines(
        list(panel.summary_parts(gauges(8).gauges(), ENGLISH, ASCII)), 30, ASCII
    )
    assert all(line.plain.isascii() for line in text)


def test_many_gpus_in_a_few_words() -> None:
    told = [part.plain for part in panel.summary_parts(gauges(8).gauges(), ENGLISH, UNICODE)]
    assert told == [
        "8 GPUs",
        "errors: 1 (gpu1)",
        "hottest gpu1 86 \u00b0C",
        "slowest gpu1 1410 MHz",
        "too hot: gpu1, gpu3",
        "5548 W in all",
    ]
    told = [
        part.plain
        for part in panel.summary_parts(Gauges([Gpu(0), Gpu(1)], {}).gauges(), ENGLISH, UNICODE)
    ]
    assert told == ["2 GPUs", "no errors"], "what was not read is not told"


def test_a_lost_gpu_is_said_first() -> None:
    found = gauges(3)
    lost = terminal_run.Event(
        "gpu-lost",
        "fatal",
        "NVML says",
        "It is lost.",
        "Look.",
        "nvml",
        parse(terminal_run.address(2)),
        source="nvml",
    )
    found.entry(terminal_run.entry(lost))
    assert [part.plain for part in panel.summary_parts(found.gauges(), ENGLISH, UNICODE)][1:3] == [
        "LOST: gpu2",
        "errors: 2 (gpu1, gpu2)",
    ]
    assert panel.throttle_words(found.gauges()[2], ENGLISH).plain == "LOST"


def test_the_machine_itself() -> None:
    told = " ".join(
        part.plain for part in panel.machine(terminal_run.MACHINE.values, ENGLISH, ASCII)
    )
    assert told == "CPU 71 C CPU clock 4950 MHz system load 32.1 RAM free 18 GiB"
    assert list(panel.machine({}, ENGLISH, ASCII)) == []


def test_parts_fill_lines_and_none_is_broken() -> None:
    parts = [Text(part) for part in ("one", "two", "three", "a part that is too long")]
    assert [line.plain for line in panel.flow_lines(parts, 12, ASCII)] == [
        "one, two",
        "three",
        "a part th...",
    ]


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


def test_what_links_move_is_in_the_table_of_a_wide_terminal() -> None:
    console = Console(width=130, color_system=None)
    with console.capture() as capture:
        console.print(panel.table(moving(1), 130, ENGLISH, UNICODE))
    head, line = capture.get().splitlines()
    assert "PCIe in/out  NVLink in/out" in head
    assert "55/0.3 GB/s" in line
    assert "212/- GB/s" in line
    assert panel.shows_rates(moving(1), 130, ENGLISH, UNICODE)


def test_where_the_table_has_no_room_it_is_said_below() -> None:
    assert not panel.shows_rates(moving(2), 80, ENGLISH, UNICODE)
    assert [part.plain for part in panel.rate_parts(moving(1), ENGLISH)] == [
        "GB/s in/out",
        "gpu0 PCIe 55/0.3 NVLink 212/-",
    ]


def test_without_rates_there_is_no_column_and_no_line() -> None:
    plain = gauges(2).gauges()
    assert "PCIe" not in "".join(drawn(2, 200))
    assert panel.shows_rates(plain, 80, ENGLISH, UNICODE)
    assert list(panel.rate_parts(plain, ENGLISH)) == []
