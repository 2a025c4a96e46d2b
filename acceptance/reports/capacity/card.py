"""The capacity card: what a machine trains, how long that takes, and what binds.

Each line is a row of a table: its title, its answer (a function of its own), the symbols of what
went in, its formula, the formula's source and what it assumes. What a line needs and the run did
not measure is named; nothing takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acceptance.core.language import Language
from acceptance.reports.capacity import formulas
from acceptance.reports.capacity.amounts import FILE, amount, count, share
from acceptance.reports.capacity.figures import (
    FEEDS,
    LINKS,
    PRODUCTS,
    STEPS,
    TOKENS_A_PARAMETER,
    Figure,
    Figures,
    Question,
    Training,
    training,
)
from acceptance.reports.capacity.formulas import (
    GRADIENT,
    HEAD_WIDTH,
    LEAN,
    MIXED,
    STAGES,
    Exchange,
    Stage,
)

ALL_REDUCE = "collective_all_reduce"
CHECKPOINT, WRITE = "storage_checkpoint_write", "storage_write"
_MEASURED_ACCUMULATION = 4  # of the parallel load's arm with accumulation
_BILLION = 1e9
# A line in words, and in its unit: None where something that it needs was not measured.
Answer = tuple[str, float | None]


@dataclass(frozen=True, slots=True)
class Input:
    """A value that went into a formula: its symbol, the value in base units, and where it is from.

    `text` is the value in words.
    """

    symbol: str
    value: float
    unit: str
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Line:
    """One answer. `value` is None where something that it needs was not measured.

    `text` is the answer in words, or what is missing.
    """

    id: str
    title: str
    text: str
    value: float | None
    unit: str
    inputs: tuple[Input, ...]
    formula: str
    source: str
    assumes: str


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One stage of sharding: bytes a parameter on each GPU, and the largest model by that.

    `largest_lean` is that of 12 bytes a parameter. `states` are the bytes of the asked model on
    each GPU without activations, `kept` with all of them, `checkpointed` with checkpointing.
    """

    stage: Stage
    bytes_a_parameter: float
    largest: float
    largest_lean: float
    states: float
    kept: float
    checkpointed: float


@dataclass(frozen=True, slots=True)
class Card:
    """The whole card. `answer` is what was asked for in sentences: how long it takes, and which
    resource binds. `asked` says in words what training it is about.
    """

    answer: str
    machine: str
    asked: str
    memory: tuple[MemoryRow, ...]
    lines: tuple[Line, ...]
    binds: str
    besides: tuple[str, ...]


def card(figures: Figures, question: Question, language: Language) -> Card:
    """The card of a machine with one GPU or more."""
    return _Maker(figures, question, language).card()


class _Maker:
    """Makes the lines of one card."""

    def __init__(self, figures: Figures, question: Question, language: Language) -> None:
        self._figures, self._question, self._ = figures, question, language
        self._training: Training = training(question, figures.gpus, figures.memory)
        self._model = self._training.model
        self._rate = figures.step or figures.product
        self._memory = tuple(self._memory_rows())
        self._stage = self._fitting()
        self._parallel = self._efficiency()
        self._exchange = self._exchange_of_gradients()
        self._inputs = self._known_inputs()

    def card(self) -> Card:
        several = self._training.gpus > 1
        lines = (*self._computing(), *(self._links() if several else ()), *self._feeding())
        return Card(
            answer=self._answer(lines),
            machine=self._machine(),
            asked=self._asked(),
            memory=self._memory,
            lines=lines,
            binds=self._binds(),
            besides=tuple(self._besides()),
        )

    # --- the lines ---

    def _line(
        self,
        name: str,
        title: str,
        answer: Answer,
        unit: str,
        inputs: str,
        formula: str,
        source: str,
        assumes: str,
    ) -> Line:
        """A line; `inputs` are the keys of what goes in, of which the known ones are listed."""
        known = tuple(self._inputs[key] for key in inputs.split() if key in self._inputs)
        return Line(name, title, *answer, unit, known, formula, source, assumes)

    def _computing(self) -> Iterator[Line]:
        """What fits, and how long it takes."""
        _, one = self._, self._training
        days = "6 N D / (G x rate x 86400)"
        yield self._line(
            "largest_model",
            _("Largest model by memory"),
            self._largest(),
            "parameters",
            "M G h L s b",
            "M / (2 + 2 + 12 / G), M / (2 + (2 + 12) / G), M / ((2 + 2 + 12) / G); "
            "s b h L (10 + 24) B; 2 s b h L + 34 s b h B",
            "ZeRO, arXiv 1910.02054; arXiv 2205.05198",
            _(
                "AdamW with 16 bytes a parameter: bfloat16 weight and gradient (2 + 2), float32 "
                "weight and two moments (12); with 12 bytes there is no float32 weight. "
                "Activations are those of attention that keeps no scores. Logits, buffers, "
                "fragments and the CUDA context are not counted: leave a tenth free."
            ),
        )
        yield self._line(
            "days",
            _("Days to train"),
            self._days(),
            "days",
            "N D G step e",
            days if self._parallel is None else "6 N D / (G x rate x e x 86400)",
            "arXiv 2001.08361",
            _(
                "every GPU keeps the measured rate for the whole time; 6 N D leaves out attention, "
                "which adds {share} at this context",
                share=share(formulas.attention_share(self._model, one.context)),
            ),
        )
        if self._figures.product is not None:
            yield self._line(
                "days_bound",
                _("Days at the rate of the matrix product alone"),
                self._least_days(self._figures.product),
                "days",
                "N D G product",
                days,
                "arXiv 2001.08361",
                _("a bound: a training does more than products of matrices"),
            )
        yield self._line(
            "mfu",
            _("MFU of the measured step"),
            self._utilisation(),
            "ratio",
            "step peak",
            "rate / peak",
            "PaLM, arXiv 2204.02311",
            _("the dense peak, without sparsity; causal attention is counted whole"),
        )

    def _links(self) -> Iterator[Line]:
        """What several GPUs wait for."""
        _ = self._
        yield self._line(
            "tensor_parallel",
            _("Tensor parallelism without waiting for the link"),
            self._tensor_parallel(),
            "GPUs",
            "h product link",
            "6 h / TP / 2 >= rate / link",
            _("operations of a layer for each byte that it sends; one way"),
            _("bfloat16 activations; no overlap of sending and computing is needed below it"),
        )
        yield self._line(
            "head_on_each",
            _("One head on each GPU"),
            self._head(),
            "B/s",
            "w product link",
            "rate / (6 w / 2)",
            _("the rule of tensor parallelism with the width of one head"),
            _("bfloat16 activations"),
        )
        yield self._line(
            "exchange",
            _("Exchange of gradients in each update"),
            self._exchanged(),
            "s",
            "N n b s rate bus",
            "2 (n - 1) / n x 4 N / bus; 6 N s b / rate",
            "nccl-tests, PERFORMANCE.md",
            _("data parallel within one machine, float32 gradients, the whole model on each GPU"),
        )
        if self._exchange is not None:
            yield self._line(
                "exchange_hidden",
                _("What accumulation hides of it"),
                self._hidden(self._exchange),
                "ratio",
                "N n b s rate bus a",
                "t / (t + a p); max(0, t - 2/3 p) / (a p + max(0, t - 2/3 p))",
                _("t of the exchange, p of a micro-batch; backward is two thirds of it"),
                _("only gradients of the last micro-batch can be sent while it is computed"),
            )
        yield self._line(
            "pipeline_bubble",
            _("Idle time of a pipeline over all GPUs"),
            self._bubble(),
            "ratio",
            "p m",
            "(p - 1) / m; (p - 1) / (m + p - 1)",
            "Megatron-LM, arXiv 2104.04473",
            _("a formula only: rigproof measures no pipeline; stages are not interleaved"),
        )

    def _feeding(self) -> Iterator[Line]:
        """The batch, and what the disk has to do."""
        _, as_load = self._, self._figures.checkpoint is not None
        yield self._line(
            "batch",
            _("Batch of an update"),
            self._batch(),
            "samples",
            "a machines cards b s",
            "a x machines x cards x b",
            _("definition"),
            _("every GPU takes micro-batches of its own: no tensor and no pipeline parallelism"),
        )
        yield self._line(
            "feed",
            _("Tokens from the disk"),
            self._feed(),
            "ratio",
            "N n rate feed",
            "n x rate / (6 N) / feed",
            _("6 N operations a token, arXiv 2001.08361"),
            _("tokens of 16 bits, one reader, not in memory before"),
        )
        yield self._line(
            "checkpoint",
            _("Checkpoint to the disk"),
            self._checkpoint(),
            "ratio",
            "N every t" if as_load else "N every write",
            "t N / 1e9 / every" if as_load else "16 N / write / every",
            _("t is for a billion parameters with 16 bytes each, as the load writes them")
            if as_load
            else _("sizes as in the table of memory"),
            _("the training waits; one machine writes the whole model to its fastest disk"),
        )

    # --- what goes in ---

    def _known_inputs(self) -> dict[str, Input]:
        """Everything known that goes into a formula, by its key: mostly its symbol."""
        _, figures, asked, one = self._, self._figures, self._question, self._training
        model, batch, own = self._model, self._training.batch, _("those of the run")
        gpus = cards = own
        if asked.gpus is not None or asked.machines is not None:
            gpus = _("asked: {machines} x {gpus}", machines=batch.machines, gpus=batch.gpus)
            cards = own if asked.gpus is None else _("asked")
        size = _("the largest usual size that fits") if self._stage is not None else ""
        shape = _("12 L h^2 parameters, h near 128 L")
        tokens = _("{n} tokens a parameter", n=TOKENS_A_PARAMETER)
        accumulation = self._origin(asked.accumulation)
        sheet, bus = _("sheet of {model}", model=figures.sheet or ""), None
        if self._exchange is not None:
            bus = figures.all_reduce or figures.link
        values = (
            ("M", "M", figures.memory, "B", _("the driver's figure, the smallest GPU")),
            ("N", "N", model.parameters, "parameters", self._origin(asked.parameters, size)),
            ("D", "D", one.tokens, "tokens", self._origin(asked.tokens, tokens)),
            ("G", "G", one.gpus, "GPUs", gpus),
            ("p", "p", one.gpus, "GPUs", gpus),
            ("n", "n", batch.gpus, "GPUs", cards),
            ("cards", "cards", batch.gpus, "GPUs", cards),
            ("machines", "machines", batch.machines, "", self._origin(asked.machines)),
            ("h", "h", model.hidden, "", self._origin(asked.hidden, shape)),
            ("L", "L", model.layers, "layers", self._origin(asked.layers, shape)),
            ("s", "s", one.context, "tokens", self._origin(asked.context)),
            ("b", "b", batch.micro, "samples", self._origin(asked.micro)),
            ("a", "a", batch.accumulation, "micro-batches", accumulation),
            ("m", "m", batch.accumulation, "micro-batches", accumulation),
            ("w", "w", HEAD_WIDTH, "", _("assumed")),
            ("every", "every", one.checkpoint_every, "s", self._origin(asked.checkpoint_every)),
            ("peak", "peak", figures.peak, "FLOP/s", sheet),
            *(
                (key, symbol, figure.value, unit, self._measured(figure, unit, note))
                for key, symbol, figure, unit, note in (
                    ("step", "rate", figures.step, "FLOP/s", ""),
                    ("product", "rate", figures.product, "FLOP/s", ""),
                    ("rate", "rate", self._rate, "FLOP/s", ""),
                    ("e", "e", self._parallel, "ratio", ""),
                    ("link", "link", figures.link, "B/s", self._way()),
                    ("bus", "bus", bus, "B/s", ""),
                    ("feed", "feed", figures.feed, "tokens/s", ""),
                    ("t", "t", figures.checkpoint, "s", ""),
                    ("write", "write", figures.write, "B/s", ""),
                )
                if figure is not None
            ),
        )
        return {
            key: Input(symbol, value, unit, amount(value, unit, _), origin)
            for key, symbol, value, unit, origin in values
            if value is not None
        }

    def _origin(self, asked: object, why: str = "") -> str:
        """Where a value is from that is asked for, or else assumed."""
        if asked is not None:
            return self._("asked")
        return self._("assumed: {why}", why=why) if why else self._("assumed")

    def _measured(self, figure: Figure, unit: str, note: str) -> str:
        """Where a measured value is from; `note` is what else is known of it."""
        _, name, where = self._, figure.measurement, str(figure.component)
        origin = _("measured: {name} of {where}", name=name, where=where)
        if figure.count > 1 and unit in ("B/s", "FLOP/s"):
            origin = _(
                "measured: {name} of {where}, the least of {n}",
                name=name,
                where=where,
                n=figure.count,
            )
        return _(", ").join(filter(None, (origin, note)))

    def _way(self) -> str:
        """The way between two GPUs, where the driver tells it."""
        if self._figures.peer_access is None:
            return ""
        return (
            self._("with peer access")
            if self._figures.peer_access
            else self._("through host memory: no peer access")
        )

    # --- what is asked ---

    def _answer(self, lines: Sequence[Line]) -> str:
        """Days and what binds; where the model does not fit, no days."""
        _, binds = self._, self._binds()
        if self._figures.memory is not None and self._stage is None:
            return binds
        days = [one for one in lines if one.id in ("days", "days_bound")]
        told = next((one for one in days if one.value is not None), days[0])
        asked = _(
            "{parameters}, {tokens}, {gpus}: {days}.",
            parameters=amount(self._model.parameters, "parameters", _),
            tokens=amount(self._training.tokens, "tokens", _),
            gpus=amount(self._training.gpus, "GPUs", _),
            days=told.text,
        )
        return _.sentences((asked, binds))

    def _machine(self) -> str:
        _, figures = self._, self._figures
        model = figures.model or _("GPU")
        if figures.memory is None:
            return f"{figures.gpus} x {model}"
        size = amount(figures.memory, "B", _)
        return _("{n} x {model}, {size} each", n=figures.gpus, model=model, size=size)

    def _asked(self) -> str:
        _, one, batch = self._, self._training, self._training.batch
        return _(
            "{parameters} in {layers} of width {hidden}, {tokens}, {machines} x {gpus}, "
            "micro-batches of {micro} x {context}, {accumulation} an update",
            parameters=amount(self._model.parameters, "parameters", _),
            layers=amount(self._model.layers, "layers", _),
            hidden=self._model.hidden,
            tokens=amount(one.tokens, "tokens", _),
            machines=batch.machines,
            gpus=amount(batch.gpus, "GPUs", _),
            micro=batch.micro,
            context=amount(one.context, "tokens", _),
            accumulation=batch.accumulation,
        )

    def _missing(self, names: Sequence[str]) -> Answer:
        listed = self._.listed(names)
        return self._("not measured in this run: needs one of {names}", names=listed), None

    # --- memory and time ---

    def _memory_rows(self) -> Iterator[MemoryRow]:
        if self._figures.memory is None:
            return
        one, model = self._training, self._model
        kept = formulas.activation_bytes(model, one.context, one.batch.micro)
        less = formulas.checkpointed_bytes(model, one.context, one.batch.micro)
        for stage in STAGES if one.gpus > 1 else STAGES[:1]:
            each, lean = (layout.on_each(stage, one.gpus) for layout in (MIXED, LEAN))
            states = each * model.parameters
            yield MemoryRow(
                stage,
                each,
                formulas.largest_model(self._figures.memory, each),
                formulas.largest_model(self._figures.memory, lean),
                states,
                states + kept,
                states + less,
            )

    def _fitting(self) -> Stage | None:
        """The least sharding with which the asked model fits, with checkpointing if need be."""
        room = self._figures.memory or 0.0
        return next((row.stage for row in self._memory if row.checkpointed <= room), None)

    def _largest(self) -> Answer:
        _ = self._
        if not self._memory:
            return _("not shown by the driver: the GPUs' memory"), None
        alone, value = self._memory[0].largest, self._memory[-1].largest
        text = amount(value, "parameters", _)
        if self._training.gpus > 1:
            text = _(
                "{largest} sharded over all GPUs (ZeRO-3), {alone} without sharding",
                largest=text,
                alone=amount(alone, "parameters", _),
            )
        return text, value

    def _days_at(self, rate: float) -> float:
        flop = formulas.training_flop(self._model.parameters, self._training.tokens)
        return formulas.days(flop, self._training.gpus, rate)

    def _days(self) -> Answer:
        _, step = self._, self._figures.step
        if step is None:
            return self._missing(STEPS)
        kept = 1.0 if self._parallel is None else self._parallel.value
        value = self._days_at(step.value * kept)
        text = amount(value, "days", _)
        if self._parallel is None and self._training.gpus > 1:
            text = _(
                "at least {days}: the loss between so many GPUs was not measured",
                days=text,
            )
        return text, value

    def _least_days(self, product: Figure) -> Answer:
        value = self._days_at(product.value)
        return self._("never less than {days}", days=amount(value, "days", self._)), value

    def _efficiency(self) -> Figure | None:
        """The measured efficiency of the way that the asked model needs, on the run's GPUs.

        It is that of a step, without which it says nothing.
        """
        one, figures = self._training, self._figures
        own = one.gpus > 1 and one.batch.machines == 1 and one.batch.gpus == figures.gpus
        if figures.step is None or not own:
            return None
        stage = 3 if self._stage is None and self._memory else self._stage or 0
        way = {0: "ddp", 1: "ddp", 2: "zero2"}.get(stage, "zero3")
        plain = figures.efficiency(way)
        if one.batch.accumulation >= _MEASURED_ACCUMULATION:
            return figures.efficiencies.get(f"parallel_{way}_efficiency_accumulated") or plain
        return plain

    def _utilisation(self) -> Answer:
        step, peak = self._figures.step, self._figures.peak
        if step is None:
            return self._missing(STEPS)
        if peak is None:
            return self._("no model sheet says this card's peak"), None
        value = formulas.mfu(step.value, peak)
        return share(value), value

    # --- links ---

    def _tensor_parallel(self) -> Answer:
        _, product, link = self._, self._figures.product, self._figures.link
        if product is None or link is None:
            return self._missing(LINKS if link is None else PRODUCTS)
        value = formulas.tensor_parallel_limit(self._model.hidden, product.value, link.value)
        if value < 2:
            few = count(value, _)
            return _("none: two GPUs would wait for the link ({number})", number=few), value
        return _("up to {number}", number=amount(value, "GPUs", _)), value

    def _head(self) -> Answer:
        _, product, link = self._, self._figures.product, self._figures.link
        if product is None:
            return self._missing(PRODUCTS)
        value = formulas.head_bandwidth(HEAD_WIDTH, product.value)
        needed, both = amount(value, "B/s", _), amount(2 * value, "B/s", _)
        text = _("needs {needed} one way, {both} both ways", needed=needed, both=both)
        if link is not None:
            part = share(link.value / value)
            text = _("{text}; the link has {share} of it", text=text, share=part)
        return text, value

    def _exchange_of_gradients(self) -> Exchange | None:
        """The exchange of an update within a machine."""
        batch, bus = self._training.batch, self._figures.all_reduce or self._figures.link
        if bus is None or self._rate is None or batch.gpus < 2:
            return None
        size = GRADIENT * self._model.parameters
        seconds = formulas.all_reduce_seconds(size, batch.gpus, bus.value)
        tokens = batch.micro * self._training.context
        of_pass = formulas.training_flop(self._model.parameters, tokens) / self._rate.value
        return formulas.exchange(seconds, of_pass, batch.accumulation)

    def _exchanged(self) -> Answer:
        _, found, batch = self._, self._exchange, self._training.batch
        if batch.gpus < 2:
            return _("not measured: the network between machines"), None
        if found is None:
            return self._missing(
                (*STEPS, *PRODUCTS) if self._rate is None else (ALL_REDUCE, *LINKS)
            )
        text = _(
            "{seconds} s beside {computed} s of each micro-batch",
            seconds=count(found.seconds, _),
            computed=count(found.computed / batch.accumulation, _),
        )
        return text, found.seconds

    def _hidden(self, found: Exchange) -> Answer:
        _ = self._
        text = _(
            "with {n} it is {share} of the update if nothing hides it; the last backward pass "
            "can hide all but {exposed}",
            n=amount(self._training.batch.accumulation, "micro-batches", _),
            share=share(found.unhidden_share),
            exposed=share(found.exposed_share),
        )
        return text, found.exposed_share

    def _bubble(self) -> Answer:
        one = self._training
        ideal, whole = formulas.bubble(one.gpus, one.batch.accumulation)
        text = self._(
            "{ideal} of the ideal time, {whole} of the whole",
            ideal=share(ideal),
            whole=share(whole),
        )
        return text, whole

    # --- batch, disk ---

    def _batch(self) -> Answer:
        _, one = self._, self._training
        batch, seen = one.batch, max(1, round(one.tokens / one.context))
        text = _(
            "{samples}, {tokens}; {updates} updates, {passes} passes of each GPU in all",
            samples=amount(batch.samples, "samples", _),
            tokens=amount(batch.samples * one.context, "tokens", _),
            updates=count(batch.updates(seen), _),
            passes=count(batch.passes(seen), _),
        )
        return text, batch.samples

    def _needed(self) -> float | None:
        """Tokens a second that one machine takes."""
        if self._rate is None:
            return None
        each = formulas.tokens_a_second(self._model.parameters, self._rate.value)
        return self._training.batch.gpus * each

    def _feed(self) -> Answer:
        _, feed, needed = self._, self._figures.feed, self._needed()
        if feed is None or needed is None:
            return self._missing(FEEDS if feed is None else (*STEPS, *PRODUCTS))
        value = needed / feed.value
        told = {
            "needed": amount(needed, "tokens/s", _),
            "feed": amount(feed.value, "tokens/s", _),
        }
        text = (
            _("keeps up: {needed} are needed, the disk feeds {feed}", **told)
            if value <= 1
            else _("does not keep up: {needed} are needed, the disk feeds {feed}", **told)
        )
        return text, value

    def _checkpoint_seconds(self) -> float | None:
        """Seconds of a checkpoint, as the load wrote it; else at the rate of writing in order."""
        figures, parameters = self._figures, self._model.parameters
        if figures.checkpoint is not None:
            return figures.checkpoint.value * parameters / _BILLION
        if figures.write is not None:
            return MIXED.total * parameters / figures.write.value
        return None

    def _checkpoint(self) -> Answer:
        _, seconds = self._, self._checkpoint_seconds()
        if seconds is None:
            return self._missing((CHECKPOINT, WRITE))
        size, kept = MIXED.total * self._model.parameters, 1 - MIXED.gradient / MIXED.total
        value = seconds / self._training.checkpoint_every
        text = _(
            "{size} in {seconds} s, {share} of the time between two; without gradients {less} "
            "in {fewer} s",
            size=amount(size, FILE, _),
            seconds=count(seconds, _),
            share=share(value),
            less=amount(kept * size, FILE, _),
            fewer=count(kept * seconds, _),
        )
        return text, value

    # --- what binds ---

    def _binds(self) -> str:
        _, one, memory = self._, self._training, self._figures.memory
        if memory is not None and self._stage is None:
            total = MIXED.total * self._model.parameters
            return _(
                "Memory is the bottleneck: the model does not fit on {gpus}, sharded and "
                "with checkpointing; "
                "its weights, gradients and optimizer alone fill {needed}.",
                gpus=amount(one.gpus, "GPUs", _),
                needed=amount(formulas.gpus_needed(total, memory), "GPUs", _),
            )
        if self._rate is None:
            return _("The bottleneck is not known: no rate of a step or a product was measured.")
        feed, needed, seconds = self._figures.feed, self._needed(), self._checkpoint_seconds()
        if feed is not None and needed is not None and needed > feed.value:
            return _("The disk is the bottleneck: it feeds fewer tokens than the GPUs take.")
        if seconds is not None and seconds >= one.checkpoint_every:
            return _(
                "The disk is the bottleneck: a checkpoint takes longer than the time between two."
            )
        found = self._exchange
        if found is not None and found.exposed > found.computed:
            return _(
                "The links are the bottleneck: gradients take longer to exchange than the "
                "GPUs compute; "
                "accumulate more micro-batches."
            )
        if found is None:
            return _("The GPUs' own rate is the bottleneck, as far as was measured.")
        if found.exposed == 0:
            return _(
                "The GPUs' own rate is the bottleneck: the last backward pass hides the "
                "exchange of gradients."
            )
        return _(
            "The GPUs' own rate is the bottleneck: {lost} of an update is waiting for gradients.",
            lost=share(found.exposed_share),
        )

    def _besides(self) -> Iterator[str]:
        _, figures, one = self._, self._figures, self._training
        if one.batch.machines > 1:
            yield _("The network between machines was not measured: figures are of one machine.")
        if one.batch.gpus != figures.gpus:
            yield (
                _(
                    "Links were measured with the {n} GPUs of this run, not with {gpus}.",
                    n=figures.gpus,
                    gpus=one.batch.gpus,
                )
                if figures.gpus > 1
                else _("The run has one GPU: no link between GPUs was measured.")
            )
        if figures.step is None and figures.product is not None:
            yield _(
                "No training step was measured: run `rigproof accept --profile train` for it. The "
                "other lines take the rate of the product."
            )
