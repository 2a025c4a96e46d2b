"""The capacity card: what a machine trains, how long that takes, and what binds.

Each line has its answer, what went in and where that is from, its formula, the formula's source and
what it assumes. What a line needs and the run did not measure is named; nothing takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acceptance.core.language import Language
from acceptance.reports.capacity import formulas
from acceptance.reports.capacity.amounts import FILE, amount, count, share
from acceptance.reports.capacity.figures import FEEDS, LINKS, PRODUCTS, STEPS, Figure, Figures
from acceptance.reports.capacity.formulas import (
    GRADIENT,
    HEAD_WIDTH,
    LEAN,
    MIXED,
    STAGES,
    Exchange,
    Stage,
)
from acceptance.reports.capacity.question import TOKENS_A_PARAMETER, Question, Training, training

ALL_REDUCE = "collective_all_reduce"
CHECKPOINT, WRITE = "storage_checkpoint_write", "storage_write"
_MEASURED_ACCUMULATION = 4  # of the parallel load's arm with accumulation
_BILLION = 1e9


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


def rows(told: Card, memory: float | None, language: Language) -> Iterator[tuple[str, ...]]:
    """The table of memory in words, a row for each stage."""
    for row in told.memory:
        if memory is None or row.checkpointed > memory:
            fits = language("no")
        elif row.kept > memory:
            fits = language("with checkpointing")
        else:
            fits = language("yes")
        yield (
            language("none") if row.stage == 0 else f"ZeRO-{row.stage}",
            count(row.bytes_a_parameter, language),
            count(row.largest, language),
            count(row.largest_lean, language),
            amount(row.states, "B", language),
            amount(row.kept, "B", language),
            amount(row.checkpointed, "B", language),
            fits,
        )


def heads(language: Language) -> tuple[str, ...]:
    """The head of the table of memory."""
    return (
        language("sharding"),
        language("bytes a parameter on each GPU"),
        language("largest model"),
        language("largest at 12 bytes"),
        language("the requested model on each GPU"),
        language("with activations"),
        language("with checkpointing"),
        language("fits"),
    )


class _Maker:
    """Makes the lines of one card."""

    def __init__(self, figures: Figures, question: Question, language: Language) -> None:
        self._figures, self._question, self._ = figures, question, language
        self._training: Training = training(question, figures.gpus, figures.memory)
        self._model = self._training.model
        self._rate = figures.step or figures.product
        self._memory = tuple(self._memory_rows())
        self._stage = self._fitting()

    def card(self) -> Card:
        _, lines = self._, [self._largest(), *self._durations(), self._utilisation()]
        if self._training.gpus > 1:
            lines += [
                self._tensor_parallel(),
                self._head(),
                *self._data_parallel(),
                self._bubble(),
            ]
        lines += [self._batch(), self._feed(), self._checkpoint()]
        return Card(
            answer=self._answer(lines),
            machine=self._machine(),
            asked=self._asked(),
            memory=self._memory,
            lines=tuple(lines),
            binds=self._binds(),
            besides=tuple(self._besides()),
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

    def _input(self, symbol: str, value: float, unit: str, origin: str) -> Input:
        return Input(symbol, value, unit, amount(value, unit, self._), origin)

    def _given(self, symbol: str, value: float, unit: str, asked: object, why: str = "") -> Input:
        """A value that was asked for, or else assumed."""
        _ = self._
        if asked is not None:
            return self._input(symbol, value, unit, _("asked"))
        return self._input(
            symbol, value, unit, _("assumed: {why}", why=why) if why else _("assumed")
        )

    def _cards(self, symbol: str) -> Input:
        """The GPUs of one machine."""
        batch, asked, run = self._training.batch, self._question, self._("those of the run")
        if asked.gpus is None:
            return self._input(symbol, batch.gpus, "GPUs", run)
        return self._input(symbol, batch.gpus, "GPUs", self._("asked"))

    def _measured(self, symbol: str, figure: Figure, unit: str) -> Input:
        _, where = self._, str(figure.component)
        origin = _("measured: {name} of {where}", name=figure.measurement, where=where)
        if figure.count > 1 and unit in ("B/s", "FLOP/s"):
            origin = _(
                "measured: {name} of {where}, the least of {n}",
                name=figure.measurement,
                where=where,
                n=figure.count,
            )
        return self._input(symbol, figure.value, unit, origin)

    def _parameters(self) -> Input:
        why = self._("the largest usual size that fits") if self._stage is not None else ""
        asked = self._question.parameters
        return self._given("N", self._model.parameters, "parameters", asked, why)

    def _tokens(self) -> Input:
        why = self._("{n} tokens a parameter", n=TOKENS_A_PARAMETER)
        return self._given("D", self._training.tokens, "tokens", self._question.tokens, why)

    def _gpus(self, symbol: str = "G") -> Input:
        _, batch, asked = self._, self._training.batch, self._question
        if asked.gpus is None and asked.machines is None:
            return self._input(symbol, self._training.gpus, "GPUs", _("those of the run"))
        given = _("asked: {machines} x {gpus}", machines=batch.machines, gpus=batch.gpus)
        return self._input(symbol, self._training.gpus, "GPUs", given)

    def _context(self) -> Input:
        return self._given("s", self._training.context, "tokens", self._question.context)

    def _micro(self) -> Input:
        return self._given("b", self._training.batch.micro, "samples", self._question.micro)

    def _accumulated(self, symbol: str) -> Input:
        asked = self._question.accumulation
        return self._given(symbol, self._training.batch.accumulation, "micro-batches", asked)

    def _shape(self) -> tuple[Input, Input]:
        why, asked = self._("12 L h^2 parameters, h near 128 L"), self._question
        return (
            self._given("h", self._model.hidden, "", asked.hidden, why),
            self._given("L", self._model.layers, "layers", asked.layers, why),
        )

    def _missing(self, names: Sequence[str]) -> str:
        listed = self._.listed(names)
        return self._("not measured in this run: needs one of {names}", names=listed)

    # --- memory ---

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

    def _largest(self) -> Line:
        _, memory = self._, self._figures.memory
        inputs = [self._gpus(), *self._shape(), self._context(), self._micro()]
        text, value = _("not shown by the driver: the GPUs' memory"), None
        if memory is not None:
            value = self._memory[-1].largest
            text = amount(value, "parameters", _)
            if self._training.gpus > 1:
                text = _(
                    "{largest} sharded over all GPUs (ZeRO-3), {alone} without sharding",
                    largest=text,
                    alone=amount(self._memory[0].largest, "parameters", _),
                )
            told = _("the driver's figure, the smallest GPU")
            inputs.insert(0, self._input("M", memory, "B", told))
        return Line(
            "largest_model",
            _("Largest model by memory"),
            text,
            value,
            "parameters",
            tuple(inputs),
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

    # --- time ---

    def _durations(self) -> Iterator[Line]:
        _, figures, one = self._, self._figures, self._training
        flop = formulas.training_flop(self._model.parameters, one.tokens)
        given: tuple[Input, ...] = (self._parameters(), self._tokens(), self._gpus())
        more = formulas.attention_share(self._model, one.context)
        assumes = _(
            "every GPU keeps the measured rate for the whole time; 6 N D leaves out attention, "
            "which adds {share} at this context",
            share=share(more),
        )
        source = "arXiv 2001.08361"
        if figures.step is not None:
            rate, formula = figures.step.value, "6 N D / (G x rate x 86400)"
            inputs = (*given, self._measured("rate", figures.step, "FLOP/s"))
            efficiency = self._efficiency()
            if efficiency is not None:
                rate *= efficiency.value
                formula = "6 N D / (G x rate x e x 86400)"
                inputs = (*inputs, self._measured("e", efficiency, "ratio"))
            value = formulas.days(flop, one.gpus, rate)
            text = amount(value, "days", _)
            if efficiency is None and one.gpus > 1:
                text = _(
                    "at least {days}: the loss between so many GPUs was not measured",
                    days=text,
                )
            yield Line(
                "days",
                _("Days to train"),
                text,
                value,
                "days",
                inputs,
                formula,
                source,
                assumes,
            )
        else:
            yield Line(
                "days",
                _("Days to train"),
                self._missing(STEPS),
                None,
                "days",
                given,
                "6 N D / (G x rate x 86400)",
                source,
                assumes,
            )
        if figures.product is not None:
            value = formulas.days(flop, one.gpus, figures.product.value)
            yield Line(
                "days_bound",
                _("Days at the rate of the matrix product alone"),
                _("never less than {days}", days=amount(value, "days", _)),
                value,
                "days",
                (*given, self._measured("rate", figures.product, "FLOP/s")),
                "6 N D / (G x rate x 86400)",
                source,
                _("a bound: a training does more than products of matrices"),
            )

    def _efficiency(self) -> Figure | None:
        """The measured efficiency of the way that the asked model needs, on the run's GPUs."""
        one, figures = self._training, self._figures
        if one.gpus == 1 or one.batch.machines > 1 or one.batch.gpus != figures.gpus:
            return None
        way = {0: "ddp", 1: "ddp", 2: "zero2"}.get(self._stage or 0, "zero3")
        if self._stage is None and self._memory:
            way = "zero3"
        plain = figures.efficiency(way)
        if one.batch.accumulation >= _MEASURED_ACCUMULATION:
            return figures.efficiencies.get(f"parallel_{way}_efficiency_accumulated") or plain
        return plain

    def _utilisation(self) -> Line:
        _, figures = self._, self._figures
        inputs: tuple[Input, ...] = ()
        value, text = None, self._missing(STEPS)
        if figures.step is not None:
            inputs = (self._measured("rate", figures.step, "FLOP/s"),)
            text = _("no model sheet says this card's peak")
        if figures.peak is not None:
            told = _("sheet of {model}", model=figures.sheet or "")
            inputs = (*inputs, self._input("peak", figures.peak, "FLOP/s", told))
            if figures.step is not None:
                value = formulas.mfu(figures.step.value, figures.peak)
                text = share(value)
        return Line(
            "mfu",
            _("MFU of the measured step"),
            text,
            value,
            "ratio",
            inputs,
            "rate / peak",
            "PaLM, arXiv 2204.02311",
            _("the dense peak, without sparsity; causal attention is counted whole"),
        )

    # --- links ---

    def _tensor_parallel(self) -> Line:
        _, product, link = self._, self._figures.product, self._figures.link
        width, _layers = self._shape()
        value, text = None, self._missing(LINKS if link is None else PRODUCTS)
        inputs = (width, *self._product_and_link())
        if product is not None and link is not None:
            value = formulas.tensor_parallel_limit(self._model.hidden, product.value, link.value)
            text = _("up to {number}", number=amount(value, "GPUs", _))
            if value < 2:
                text = _(
                    "none: two GPUs would wait for the link ({number})", number=count(value, _)
                )
        return Line(
            "tensor_parallel",
            _("Tensor parallelism without waiting for the link"),
            text,
            value,
            "GPUs",
            inputs,
            "6 h / TP / 2 >= rate / link",
            _("operations of a layer for each byte that it sends; one way"),
            _("bfloat16 activations; no overlap of sending and computing is needed below it"),
        )

    def _product_and_link(self) -> Iterator[Input]:
        _, figures = self._, self._figures
        if figures.product is not None:
            yield self._measured("rate", figures.product, "FLOP/s")
        if figures.link is not None:
            one = self._measured("link", figures.link, "B/s")
            origin = one.origin
            if figures.peer_access is not None:
                way = (
                    _("with peer access")
                    if figures.peer_access
                    else _("through host memory: no peer access")
                )
                origin = _(", ").join((origin, way))
            yield Input(one.symbol, one.value, one.unit, one.text, origin)

    def _head(self) -> Line:
        _, product, link = self._, self._figures.product, self._figures.link
        value, text = None, self._missing(PRODUCTS)
        if product is not None:
            value = formulas.head_bandwidth(HEAD_WIDTH, product.value)
            needed = amount(value, "B/s", _)
            text = _(
                "needs {needed} one way, {both} both ways",
                needed=needed,
                both=amount(2 * value, "B/s", _),
            )
            if link is not None:
                text = _(
                    "{text}; the link has {share} of it", text=text, share=share(link.value / value)
                )
        width = self._input("w", HEAD_WIDTH, "", _("assumed"))
        return Line(
            "head_on_each",
            _("One head on each GPU"),
            text,
            value,
            "B/s",
            (width, *self._product_and_link()),
            "rate / (6 w / 2)",
            _("the rule of tensor parallelism with the width of one head"),
            _("bfloat16 activations"),
        )

    def _exchange(self) -> tuple[Exchange, Input] | None:
        """The exchange of an update within a machine, and the rate that it was reckoned from."""
        figures, batch = self._figures, self._training.batch
        bus = figures.all_reduce or figures.link
        if bus is None or self._rate is None or batch.gpus < 2:
            return None
        size = GRADIENT * self._model.parameters
        seconds = formulas.all_reduce_seconds(size, batch.gpus, bus.value)
        return (
            formulas.exchange(seconds, self._pass_seconds(), batch.accumulation),
            self._measured("bus", bus, "B/s"),
        )

    def _pass_seconds(self) -> float:
        """Seconds of a micro-batch on a GPU, forward and backward."""
        assert self._rate is not None
        one = self._training
        tokens = one.batch.micro * one.context
        return formulas.training_flop(self._model.parameters, tokens) / self._rate.value

    def _data_parallel(self) -> Iterator[Line]:
        _, found = self._, self._exchange()
        cards = self._cards("n")
        inputs = [self._parameters(), cards, self._micro(), self._context()]
        title = _("Exchange of gradients in each update")
        hidden = _("What accumulation hides of it")
        source = "nccl-tests, PERFORMANCE.md"
        formula = "2 (n - 1) / n x 4 N / bus; 6 N s b / rate"
        assumes = _(
            "data parallel within one machine, float32 gradients, the whole model on each GPU"
        )
        if self._rate is not None:
            inputs.append(self._measured("rate", self._rate, "FLOP/s"))
        if found is None:
            names = (*STEPS, *PRODUCTS) if self._rate is None else (ALL_REDUCE, *LINKS)
            text = self._missing(names)
            if self._training.batch.gpus < 2:
                text = _("not measured: the network between machines")
            yield Line("exchange", title, text, None, "s", tuple(inputs), formula, source, assumes)
            return
        cost, bus = found
        of_pass = self._pass_seconds()
        yield Line(
            "exchange",
            title,
            _(
                "{seconds} s beside {computed} s of each micro-batch",
                seconds=count(cost.seconds, _),
                computed=count(of_pass, _),
            ),
            cost.seconds,
            "s",
            (*inputs, bus),
            formula,
            source,
            assumes,
        )
        yield Line(
            "exchange_hidden",
            hidden,
            _(
                "with {n} it is {share} of the update if nothing hides it; the last backward pass "
                "can hide all but {exposed}",
                n=amount(self._training.batch.accumulation, "micro-batches", _),
                share=share(cost.unhidden_share),
                exposed=share(cost.exposed_share),
            ),
            cost.exposed_share,
            "ratio",
            (*inputs, bus, self._accumulated("a")),
            "t / (t + a p); max(0, t - 2/3 p) / (a p + max(0, t - 2/3 p))",
            _("t of the exchange, p of a micro-batch; backward is two thirds of it"),
            _("only gradients of the last micro-batch can be sent while it is computed"),
        )

    def _bubble(self) -> Line:
        _, one = self._, self._training
        ideal, whole = formulas.bubble(one.gpus, one.batch.accumulation)
        return Line(
            "pipeline_bubble",
            _("Idle time of a pipeline over all GPUs"),
            _(
                "{ideal} of the ideal time, {whole} of the whole",
                ideal=share(ideal),
                whole=share(whole),
            ),
            whole,
            "ratio",
            (self._gpus("p"), self._accumulated("m")),
            "(p - 1) / m; (p - 1) / (m + p - 1)",
            "Megatron-LM, arXiv 2104.04473",
            _("a formula only: rigproof measures no pipeline; stages are not interleaved"),
        )

    # --- batch, disk ---

    def _batch(self) -> Line:
        _, one = self._, self._training
        batch, asked = one.batch, self._question
        samples = batch.samples
        machines = self._given("machines", batch.machines, "", asked.machines)
        cards = self._cards("cards")
        seen = max(1, round(one.tokens / one.context))
        return Line(
            "batch",
            _("Batch of an update"),
            _(
                "{samples}, {tokens}; {updates} updates, {passes} passes of each GPU in all",
                samples=amount(samples, "samples", _),
                tokens=amount(samples * one.context, "tokens", _),
                updates=count(batch.updates(seen), _),
                passes=count(batch.passes(seen), _),
            ),
            samples,
            "samples",
            (self._accumulated("a"), machines, cards, self._micro(), self._context()),
            "a x machines x cards x b",
            _("definition"),
            _("every GPU takes micro-batches of its own: no tensor and no pipeline parallelism"),
        )

    def _needed(self) -> float | None:
        """Tokens a second that one machine takes."""
        if self._rate is None:
            return None
        each = formulas.tokens_a_second(self._model.parameters, self._rate.value)
        return self._training.batch.gpus * each

    def _feed(self) -> Line:
        _, feed, needed = self._, self._figures.feed, self._needed()
        cards = self._cards("n")
        inputs = [self._parameters(), cards]
        value, text = None, self._missing(FEEDS if feed is None else (*STEPS, *PRODUCTS))
        if self._rate is not None:
            inputs.append(self._measured("rate", self._rate, "FLOP/s"))
        if feed is not None:
            inputs.append(self._measured("feed", feed, "tokens/s"))
        if feed is not None and needed is not None:
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
        return Line(
            "feed",
            _("Tokens from the disk"),
            text,
            value,
            "ratio",
            tuple(inputs),
            "n x rate / (6 N) / feed",
            _("6 N operations a token, arXiv 2001.08361"),
            _("tokens of 16 bits, one reader, not in memory before"),
        )

    def _checkpoint_seconds(self) -> float | None:
        """Seconds of a checkpoint, as the load wrote it; else at the rate of writing in order."""
        figures, parameters = self._figures, self._model.parameters
        if figures.checkpoint is not None:
            return figures.checkpoint.value * parameters / _BILLION
        if figures.write is not None:
            return MIXED.total * parameters / figures.write.value
        return None

    def _checkpoint(self) -> Line:
        _, figures, every = self._, self._figures, self._training.checkpoint_every
        asked, size = self._question.checkpoint_every, MIXED.total * self._model.parameters
        inputs = [self._parameters(), self._given("every", every, "s", asked)]
        value, text = None, self._missing((CHECKPOINT, WRITE))
        seconds = self._checkpoint_seconds()
        if seconds is not None:
            value, kept = seconds / every, (MIXED.total - MIXED.gradient) / MIXED.total
            text = _(
                "{size} in {seconds} s, {share} of the time between two; without gradients {less} "
                "in {fewer} s",
                size=amount(size, FILE, _),
                seconds=count(seconds, _),
                share=share(value),
                less=amount(kept * size, FILE, _),
                fewer=count(kept * seconds, _),
            )
        formula, source = "16 N / write / every", _("sizes as in the table of memory")
        if figures.checkpoint is not None:
            inputs.append(self._measured("t", figures.checkpoint, "s"))
            formula = "t N / 1e9 / every"
            source = _("t is for a billion parameters with 16 bytes each, as the load writes them")
        elif figures.write is not None:
            inputs.append(self._measured("write", figures.write, "B/s"))
        return Line(
            "checkpoint",
            _("Checkpoint to the disk"),
            text,
            value,
            "ratio",
            tuple(inputs),
            formula,
            source,
            _("the training waits; one machine writes the whole model to its fastest disk"),
        )

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
        found = self._exchange()
        if found is not None and found[0].exposed > found[0].computed:
            return _(
                "The links are the bottleneck: gradients take longer to exchange than the "
                "GPUs compute; "
                "accumulate more micro-batches."
            )
        if found is None:
            return _("The GPUs' own rate is the bottleneck, as far as was measured.")
        if found[0].exposed == 0:
            return _(
                "The GPUs' own rate is the bottleneck: the last backward pass hides the "
                "exchange of gradients."
            )
        return _(
            "The GPUs' own rate is the bottleneck: {lost} of an update is waiting for gradients.",
            lost=share(found[0].exposed_share),
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
