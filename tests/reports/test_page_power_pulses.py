"""Power pulses: power and clock at the beginning of the first wave of the power steps."""

from __future__ import annotations

from math import inf, nan

import journals
import pages
import samples
from known import known

from acceptance.core.evidence import AnyBody, Table
from acceptance.core.message import Message, Quantity
from acceptance.core.parts import GPUS, Component, Gpu
from acceptance.core.record import CheckEnded, CheckStarted, Note
from acceptance.reports.page import render
from acceptance.reports.page.curves import Wave, waves

CHECK = "power.pulses"
COLUMNS = ("s", "W", "MHz")
ROWS = ((0.05, 870.0, 1980.0), (0.95, 720.0, 1600.0), (1.9, 130.0, 1965.0))


def begins(code: str, hertz: float) -> Note:
    values = {"hertz": Quantity(hertz, "Hz"), "gpus": "2 GPUs", "names": "gpu0, gpu1"}
    return Note(Message("power_step_begins", {"step": Message(code, values)}), progress=True)


def table(
    gpu: Component, *rows: tuple[float | str, ...], columns: tuple[str, ...] = COLUMNS
) -> Table:
    return Table(CHECK, gpu, "power_train", columns, rows)


def drawn(*bodies: AnyBody) -> list[Wave]:
    return list(waves(journals.entries([CheckStarted(CHECK), *bodies])))


def test_the_gpus_of_a_wave_share_a_scale() -> None:
    (found,) = drawn(
        begins("power_step_anti_phase", 2.0),
        begins("power_step_square", 0.5),
        begins("power_step_square", 1.0),
        table(Gpu(10), (0.0, 0.0, 0.0)),
        table(Gpu(2), *ROWS),
    )
    assert known(found.step).values["hertz"] == Quantity(0.5, "Hz")
    assert (found.gpus, found.width) == ((Gpu(2), Gpu(10)), 200)
    assert found.ticks == ("0", "0.5", "1", "1.5", "2")
    power, clock = found.plots
    assert power.lines == ("M5 3.33L95 20L190 85.6", "M0 100h2")
    assert (power.unit, power.bottom, power.top, power.least, power.most) == (
        "W",
        "0",
        "900",
        "0",
        "870",
    )
    assert (clock.unit, clock.top) == ("MHz", "2000")


def test_what_cannot_be_drawn_is_left_out() -> None:
    odd: list[tuple[float | str, ...]] = [
        ("x", 1.0, 1.0),
        (nan, 1.0, 1.0),
        (1.0, inf, 1.0),
        (1.0, -5.0, 1.0),
        (1.0, 1.0),
        (),
    ]
    assert drawn(table(GPUS, *odd), table(Gpu(0), *ROWS, columns=("s", "W"))) == []
    (found,) = drawn(table(Gpu(0), *odd, (0.2, 5.0, 5.0)))
    assert found.plots[0].lines == ("M20 90h2",)
    many = drawn(*(table(Gpu(n), *ROWS * 100) for n in range(70)))
    assert [(len(one.gpus), one.plots[0].lines[0].count("L")) for one in many] == [(64, 199)]
    ladder = (
        CheckStarted("power.ladder"),
        Table("power.ladder", Gpu(0), "power_train", COLUMNS, ROWS),
    )
    two = drawn(begins("power_step_square", 2.0), table(Gpu(0), *ROWS), *ladder)
    assert [(one.check, one.step is None) for one in two] == [
        (CHECK, False),
        ("power.ladder", True),
    ]


def test_it_is_on_the_page_and_not_among_the_tables() -> None:
    bodies = journals.bodies(journals.plan(journals.check(CHECK)))
    at = next(n for n, body in enumerate(bodies) if isinstance(body, CheckEnded))
    bodies[at:at] = [begins("power_step_square", 0.5), table(Gpu(0), *ROWS)]
    tree = pages.page(render.render(samples.run(bodies)))
    section = tree.get_element_by_id("train").getparent()
    (caption,) = section.iter("figcaption")
    assert caption.text_content() == "power.pulses: 0.5 Hz on 2 GPUs (gpu0, gpu1)"
    assert section.xpath(".//@aria-label") == [
        "power.pulses, gpu0, power: 130 to 870 W",
        "power.pulses, gpu0, clock: 1600 to 1980 MHz",
    ]
    assert "power_train" not in tree.text_content()
