"""The live view of a terminal.

It shows what is running and the time left, every GPU, the margins to the limits, the machine, and
the outcomes so far.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from acceptance.core.language import Language
from acceptance.core.plan import Session
from acceptance.core.record import Outcome
from acceptance.reports import margins, panel
from acceptance.reports.gauges import Gauges
from acceptance.reports.margins import Margins
from acceptance.reports.progress import RunProgress
from acceptance.reports.text import Glyphs, duration, one_line

_BAR = 20
_UNDER = 3  # lines that the rates of links leave for the machine and the outcomes
_MARGINS, _MARGIN_LINES = 6, 4  # the most margins, and lines of them
_WIDE = 72  # columns; a narrower terminal has no room for a bar
_STYLES: dict[Outcome, str] = {
    "pass": "green",
    "fail": "bold red",
    "error": "yellow",
    "skip": "yellow",
}


def phase(session: Session, language: Language) -> str:
    """The phase of a run in words."""
    words = {
        "host-before": language("before the load"),
        "gpu-load": language("under load"),
        "host-load": language("under load"),
        "load": language("under load"),
        "host-after": language("after the load"),
        "site": language("checks of the site's own"),
    }
    return words[session]


def outcomes(remaining: RunProgress, language: Language, signs: Glyphs) -> Text:
    """The outcomes of the checks so far."""
    found = remaining.outcomes
    words: dict[Outcome, str] = {
        "pass": language("{number} passed", number=found["pass"]),
        "fail": language("{number} failed", number=found["fail"]),
        "error": language("{number} with errors", number=found["error"]),
        "skip": language("{number} skipped", number=found["skip"]),
    }
    text = Text(
        language("{done} of {total} checks done", done=sum(found.values()), total=remaining.checks)
    )
    for outcome, word in words.items():
        if found[outcome]:
            text.append(signs.between).append(word, _STYLES[outcome])
    return text


class Dashboard:
    """The live view, drawn for the room that the terminal has at the moment.

    Errors in drawing never stop the run; the view is left empty.
    """

    def __init__(
        self,
        remaining: RunProgress,
        gauges: Gauges,
        margins: Margins,
        language: Language,
        signs: Glyphs,
    ) -> None:
        self._remaining, self._gauges, self._margins, self._language, self._signs = (
            remaining,
            gauges,
            margins,
            language,
            signs,
        )
        self._spinner = Spinner(signs.spinner)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        try:
            lines = self.lines(options.max_width, console.height)
        except Exception:  # noqa: BLE001 - it would end the thread that draws, with a traceback over the run's lines
            return
        yield Group(*lines)

    def lines(self, width: int, height: int) -> list[RenderableType]:
        """Everything that fits.

        What is running and the GPUs take precedence, then outcomes, the machine, the check's
        title, and the margins.
        """
        language, signs = self._language, self._signs
        # One line is left for messages that scroll by, and one for the cursor.
        room = max(1, height - 2)
        gauges = self._gauges.gauges()
        head: list[RenderableType] = [self._head(width)]
        room -= 1
        cards: list[RenderableType] = []
        if gauges and len(gauges) + 1 <= room:
            cards, room = [panel.table(gauges, width, language, signs)], room - len(gauges) - 1
        elif gauges:
            cards += panel.flow_lines(
                list(panel.summary_parts(gauges, language, signs)), width, signs
            )[:room]
            room -= len(cards)
        if not panel.shows_rates(gauges, width, language, signs):
            rates = panel.flow_lines(list(panel.rate_parts(gauges, language)), width, signs)
            if len(rates) + _UNDER <= room:
                cards, room = [*cards, *rates], room - len(rates)
        tail: list[RenderableType] = []
        if room > 0:
            tail, room = (
                [panel.cut(outcomes(self._remaining, language, signs), width, signs)],
                room - 1,
            )
        sensors = panel.flow_lines(
            list(panel.machine(self._gauges.machine, language, signs)), width, signs
        )
        if sensors and len(sensors) <= room:
            tail, room = [*sensors, *tail], room - len(sensors)
        for planned in self._remaining.planned[: max(0, room)]:
            head.append(
                panel.cut(Text(f"  {one_line(language.text(planned.title))}", "dim"), width, signs)
            )
            room -= 1
        near = self._near(width)[: max(0, room - 1)]
        room -= len(near)
        if room > 0:
            head.insert(0, Text(""))  # an empty line below the messages above
        return [*head, *cards, *near, *tail]

    def _near(self, width: int) -> list[Text]:
        """The smallest margins, below a line of their own; nothing where there is none."""
        found = self._margins.worst()[:_MARGINS]
        if not found:
            return []
        parts = [margins.line(one, self._language, self._signs) for one in found]
        head = panel.cut(Text(self._language("nearest to their limits"), "dim"), width, self._signs)
        return [head, *panel.flow_lines(parts, width, self._signs)[:_MARGIN_LINES]]

    def _head(self, width: int) -> Table:
        """One line: what is running, a bar, the time passed, and the approximate time left."""
        language, remaining = self._language, self._remaining
        left = remaining.time_left(language)
        text = Text(remaining.names() or language("between two checks"), "bold")
        planned = remaining.planned
        if planned and width >= _WIDE:
            name = phase(planned[0].session, language)
            text = Text(language("{label}: {text}", label=name, text="")).append_text(text)
        made = Table.grid(padding=(0, 1))
        ends = (
            f"{duration(remaining.elapsed_s())}{self._signs.between}{left}"
            if width >= _WIDE
            else left
        )
        bar = _BAR + 1 if width >= _WIDE else 0
        room = max(1, width - 2 - bar - Text(ends).cell_len - 1)
        made.add_column(width=1)
        made.add_column(width=room, no_wrap=True)
        cells: list[RenderableType] = [self._spinner, panel.cut(text, room, self._signs)]
        if bar:
            made.add_column(width=_BAR)
            cells.append(ProgressBar(max(1.0, remaining.total_s), remaining.done_s(), width=_BAR))
        made.add_column(no_wrap=True)
        made.add_row(*cells, panel.cut(Text(ends), max(1, width - 3), self._signs))
        return made


class View:
    """The dashboard on a console, redrawn `frames` times a second whatever was journalled.

    It leaves nothing behind. `drawing` is held by whoever writes to the console: rich takes the
    place of the view first and writes later, so a line and a frame at the same time end up in each
    other.
    """

    def __init__(
        self,
        console: Console,
        dashboard: Dashboard,
        drawing: contextlib.AbstractContextManager[object],
        frames: float,
    ) -> None:
        self._drawing, self._period_s = drawing, 1 / frames
        self._ended = threading.Event()
        self._live = Live(
            dashboard,
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._thread = threading.Thread(target=self._redraw, daemon=True)

    def start(self) -> None:
        """Draw it from now on."""
        self._live.start()
        self._thread.start()

    def _redraw(self) -> None:
        while not self._ended.wait(self._period_s):
            with self._drawing:
                if not self._ended.is_set():
                    self._live.refresh()

    def stop(self) -> None:
        """Take it away; a second call does nothing."""
        self._ended.set()
        with self._drawing:
            self._live.stop()
