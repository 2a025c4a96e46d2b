"""Training: transformer layers, steps, runs whose bits must agree, and training on several GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import pytest

from acceptance.core.dtype import TrainedDtype
from acceptance.core.message import Message, Text
from acceptance.core.parts import GPUS, Component
from acceptance.diagnosis import digest_agreement
from acceptance.diagnosis.wrong_result import in_words
from acceptance.expect.sheet import Published, Sheet
from acceptance.loads.miscompare import DifferingRun, WrongResult, WrongTraining
from acceptance.loads.protocol import LoadTable
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import parallel_contract as parallel
from acceptance.loads.train import step_contract as step
from acceptance.loads.train.digest_log import TrainingRuns
from acceptance.machine.gpu import Gpu, uuids
from acceptance.machine.inventory import Inventory
from acceptance.session.check import Check, ErrorInLines
from acceptance.session.loads import Loads, Place, Results, alone, first_wrong
from acceptance.suites.fixtures.train import PUBLISHED, step_table
from acceptance.wording.errors import said

WriteTable = Callable[[Component, str, Sequence[str], Sequence[Sequence[float | str]]], None]
# Of every layer: its rate with backward, that rate's ratio to the siblings' and its share of the
# card's own matrix product, and the rate of the forward pass alone.
LAYERS = (
    ("layer_bert", "layer_bert_ratio", "layer_bert_share", "layer_bert_forward"),
    ("layer_gpt2", "layer_gpt2_ratio", "layer_gpt2_share", "layer_gpt2_forward"),
    (
        "layer_t5_encoder",
        "layer_t5_encoder_ratio",
        "layer_t5_encoder_share",
        "layer_t5_encoder_forward",
    ),
    (
        "layer_t5_decoder",
        "layer_t5_decoder_ratio",
        "layer_t5_decoder_share",
        "layer_t5_decoder_forward",
    ),
    ("layer_llama", "layer_llama_ratio", "layer_llama_share", "layer_llama_forward"),
)
PARTS = ("layer_dense", "layer_dense_gelu", "layer_feed_forward", "layer_attention")
_NARROW = {"bf16", "f16"}  # tensor cores have one rate for both


def with_published(table: LoadTable, sheet: Sheet | None) -> LoadTable:
    """A table of layers with what was published of this model of card, forward with backward.

    A figure in float16 beside one in bfloat16, and the best of a source that tells no shape, say
    so. Unchanged where nothing is known.
    """
    rows = [(row, sheet.published(f"layer_{row[0]}") if sheet is not None else ())
            for row in table.rows]  # fmt: skip
    if not any(figures for _, figures in rows):
        return table
    beside = tuple((*row, published(figures, *row[1:4])) for row, figures in rows)
    return LoadTable(table.name, (*table.columns, PUBLISHED), beside)


def published(
    figures: Sequence[Published], dtype: float | str, sequence: float | str, batch: float | str
) -> float | str:
    """What fits a row of the table: a rate, or a text that says of what it is."""
    kinds = _NARROW if dtype in _NARROW else {dtype}
    fitting = sorted(
        (one for one in figures if one.dtype in kinds), key=lambda one: one.dtype != dtype
    )
    for one in fitting:
        if (one.sequence, one.batch) == (sequence, batch):
            return one.tflops if one.dtype == dtype else f"{one.tflops:g} in {one.dtype}"
    return next((f"best {one.tflops:g} in {one.dtype}" for one in fitting if not one.batch), "-")


@pytest.mark.session("load")
# The time to start has torch, the small layers in float64 on the processor, and strict repeats. The
# slack is for slow processors under eight of them.
@pytest.mark.costs(16.0, load="train_layers", per_gpu=0.3, slack=240.0)
@pytest.mark.measures(*chain(*LAYERS), "layer_matmul", "layer_miscompares")
def test_layers(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    trained_formats: Mapping[Component, TrainedDtype],
    load_s: Mapping[str, float],
    own_sheets: Mapping[Component, Sheet],
    check: Check,
) -> None:
    """Layers of BERT-large, GPT-2 medium, T5-large and Llama 8B on all GPUs at once, forward, and
    forward with backward, beside each card's own matrix product.

    Measured: the operations of the matrix products that a layer has (backward twice forward, causal
    attention whole) over the GPU's own time, in bfloat16 or else float16. Output and gradients of
    small layers are compared with float64, those of the judged ones bit for bit between repeats.
    Not measured: dropout, other shapes, and results between the first and the last.
    """
    results = loads.run(
        lambda place: layers.Ask(
            dtype=trained_formats[place.component], seconds=load_s["train_layers"]
        ),
        on=alone(due_gpus),
    )
    check.all(results, table=lambda gpu, one: with_published(one, own_sheets.get(gpu)))


@pytest.mark.session("load")
@pytest.mark.costs(5.0, load="train_layer_table", per_gpu=0.5, slack=300.0)
@pytest.mark.measures(*PARTS, "layer_miscompares")
def test_layer_table(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    trained_formats: Mapping[Component, TrainedDtype],
    load_s: Mapping[str, float],
    own_sheets: Mapping[Component, Sheet],
    check: Check,
) -> None:
    """The table of published shapes of the layers in bfloat16, float16, TF32 and float32, and the
    parts of a BERT-large layer.

    Measured: each shape briefly, one after the other; small shapes may wait for the processor, so
    nothing of it is judged but the small layers in each format against float64. Not measured: what
    the time or the GPU's memory did not suffice for; its cells say so.
    """
    results = loads.run(
        lambda place: layers.Ask(
            dtype=trained_formats[place.component],
            seconds=load_s["train_layer_table"],
            table=True,
        ),
        on=alone(due_gpus),
    )
    check.all(results, table=lambda gpu, one: with_published(one, own_sheets.get(gpu)))


def _training_runs(*results: Results) -> dict[Component, TrainingRuns]:
    """The runs of every GPU whose load ran whole."""
    return {gpu: digest.runs(one) for each in results for gpu, one in each.outputs.items()}


def _differing_repeats(gpu: Component, wrong: Sequence[WrongResult]) -> Text:
    """The first repeat with other bits, and how many more there are."""
    own = [one for one in wrong if isinstance(one, DifferingRun)]
    return digest_agreement.repeats_note(own) if own else first_wrong(gpu, wrong)


def versions(runs: TrainingRuns, driver: str) -> tuple[tuple[str, str], ...]:
    """What the bits depend on."""
    own = runs.versions
    return (
        ("GPU", own.gpu),
        ("multiprocessors", f"{own.multiprocessors}"),
        ("libraries", own.library),
        ("cuBLAS", own.cublas),
        ("driver", driver),
        ("recipe", f"{own.recipe}"),
    )


AGAIN_S = 1.0  # on most GPUs two runs of each format


@pytest.mark.session("load")
# torch needs some seconds to start. The slack is for cards that need longer for two runs of each
# format, and for a GPU that differs, which runs again alone. It is not asked whether the GPUs were
# seen at work: digests are many short operations, between which a fast GPU waits for a slow host
# (an H100 was in use for 0.9 of the time), and the bits themselves prove that the work was done.
@pytest.mark.costs(7.0, load="train_digest", slack=300.0)
@pytest.mark.measures("digest_repeats_differ", "digest_differs")
def test_digest(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    siblings: Mapping[str, tuple[Component, ...]],
    load_s: Mapping[str, float],
    inventory: Inventory,
    table: WriteTable,
    check: Check,
) -> None:
    """A training run of 20 steps, again and again on all GPUs at once, whose bits must be the same
    each time and on equal GPUs.

    Measured: digests of the loss and of every gradient at each step, and of all weights and moments
    at the end, of a GPT of 124 M parameters in bfloat16 and in TF32 (float16 and float32 on older
    GPUs), under strict determinism. A GPU that differs is run again alone: what it does not repeat
    is transient. Not measured: larger models, other shapes, and training on several GPUs.
    """
    results = loads.run(lambda _: digest.Ask(seconds=load_s["train_digest"]), on=alone(due_gpus))
    runs, serials = _training_runs(results), uuids(due_gpus)
    odd = {one.gpu for one in digest_agreement.suspects(runs, siblings)}
    again = [
        loads.run(lambda _: digest.Ask(seconds=AGAIN_S), on=alone([gpu]))
        for gpu in due_gpus
        if gpu.name in odd
    ]
    agreement = digest_agreement.judge(runs, _training_runs(*again), siblings)
    check("digest_differs", agreement.differing, notes=agreement.notes, serials=serials)
    driver = inventory.nvml.driver_version
    if driver is not None:
        for gpu, own in runs.items():
            table(gpu, digest.VERSIONS, digest.VERSION_COLUMNS, versions(own, driver))
    died = [failure for each in (results, *again) for failure in each.failed.items()]
    troubles = [
        *(
            Message("component_says", {"component": str(gpu), "why": said(one)})
            for gpu, one in died
        ),
        *agreement.troubles,
    ]
    try:
        check.all(results, note=_differing_repeats, serials=serials)
    finally:
        if troubles:
            raise ErrorInLines(troubles)


PARALLEL_WRONG = ("parallel_miscompares", "parallel_disagreements")
PARALLEL = ("parallel_ddp", "parallel_ddp_efficiency", "parallel_ddp_efficiency_p2p_off")
PARALLEL_REST = (
    "parallel_ddp_efficiency_accumulated",
    "parallel_ddp_efficiency_accumulated_p2p_off",
    "parallel_zero2_efficiency",
    "parallel_zero2_efficiency_p2p_off",
    "parallel_zero2_efficiency_accumulated",
    "parallel_zero2_efficiency_accumulated_p2p_off",
    "parallel_zero3_efficiency",
    "parallel_zero3_efficiency_p2p_off",
    "parallel_zero3_efficiency_accumulated",
    "parallel_zero3_efficiency_accumulated_p2p_off",
    "parallel_tp_efficiency",
    "parallel_tp_efficiency_p2p_off",
    "parallel_tp_efficiency_accumulated",
    "parallel_tp_efficiency_accumulated_p2p_off",
)


def _parallel(loads: Loads, gpus: tuple[Gpu, ...], ask: parallel.Ask, check: Check) -> None:
    """Train on all GPUs, and judge; a note names a GPU as the run does."""
    place = Place(GPUS, gpus)

    def note(_gpus: Component, wrong: Sequence[WrongResult]) -> Text:
        first = wrong[0]
        return (
            in_words(first, {"component": str(place.named(first.component))})
            if isinstance(first, WrongTraining)
            else in_words(first)
        )

    check.all(loads.run(lambda _: ask, on=[place]), note=note)


@pytest.mark.session("load")
# Two arms, whose processes start together; the slack is for slow links and few steps of a slow
# card, and for a rank that hangs, which the load itself ends after a minute.
@pytest.mark.costs(12.0, load="train_parallel", per_gpu=0.5, slack=240.0)
@pytest.mark.measures(*PARALLEL_WRONG, *PARALLEL)
def test_parallel(
    loads: Loads, due_gpus: tuple[Gpu, ...], load_s: Mapping[str, float], check: Check
) -> None:
    """One model trained by all GPUs together (DistributedDataParallel), as the machine comes and
    with peer access switched off, against each GPU alone.

    Measured: tokens a second, and the efficiency against the sum of what each GPU does alone; a
    small model's losses, gradients and weights compared with those of one card that has the whole
    batch, and the bits of all weights compared between GPUs. Not measured: reading of data,
    several machines, NVLink multicast.
    """
    ranks, seconds = len(due_gpus), load_s["train_parallel"]
    ask = parallel.Ask(ranks=ranks, seconds=seconds, ways=("ddp",), accumulate=(1,))
    _parallel(loads, due_gpus, ask, check)


@pytest.mark.session("load")
@pytest.mark.costs(40.0, load="train_parallel_table", per_gpu=3.0, slack=600.0)
@pytest.mark.measures(*PARALLEL_WRONG, *PARALLEL_REST)
def test_parallel_table(
    loads: Loads, due_gpus: tuple[Gpu, ...], load_s: Mapping[str, float], check: Check
) -> None:
    """One model trained by all GPUs in every way: data parallel, sharded (FSDP2, as ZeRO-2 and
    ZeRO-3) and tensor parallel, with 1 and 4 accumulated batches, with peer access on and off.

    Measured: the efficiency of each way against each GPU alone, memory, and where the time of a
    step goes; values compared as in the short form, in every way. Not measured: pipeline
    parallelism, several machines, NVLink multicast.
    """
    ask = parallel.Ask(ranks=len(due_gpus), seconds=load_s["train_parallel_table"])
    _parallel(loads, due_gpus, ask, check)


STEP = ("step_gpt2", "step_gpt2_ratio", "step_gpt2_share", "step_matmul", "step_miscompares")
STEPS = (
    "step_bert",
    "step_bert_ratio",
    "step_bert_share",
    "step_neo",
    "step_neo_ratio",
    "step_neo_share",
    "step_miscompares",
)


@pytest.mark.session("load")
@pytest.mark.costs(8.0, load="train_step", slack=300.0)
@pytest.mark.measures(*STEP)
def test_step(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    load_s: Mapping[str, float],
    own_sheets: Mapping[Component, Sheet],
    check: Check,
) -> None:
    """Training steps of a GPT-2 medium on all GPUs at once, hot: forward, backward and AdamW, as
    plain torch trains under autocast.

    Measured: counted operations over the GPU's own time, without the first steps, and their share
    of the matrix products between which they run; a step of a small model against float64, and of
    the large one that its loss is right at first, repeats bit for bit, stays finite and falls. Not
    measured: compiled steps, reading of data, more than one GPU for one model.
    """
    results = loads.run(lambda _: step.Ask(seconds=load_s["train_step"]), on=alone(due_gpus))
    check.all(results, table=lambda gpu, one: step_table(one, own_sheets.get(gpu)))


@pytest.mark.session("load")
# It ends when it has all rows, of which a GPU with little memory has few: so it need not be seen at
# work for all of its time.
@pytest.mark.costs(8.0, load="train_step_table", slack=600.0)
@pytest.mark.measures(*STEPS)
def test_step_table(
    loads: Loads,
    due_gpus: tuple[Gpu, ...],
    load_s: Mapping[str, float],
    own_sheets: Mapping[Component, Sheet],
    check: Check,
) -> None:
    """Training steps of GPT-2 medium, BERT-large and GPT-Neo-1.3B shapes with the usual options, on
    all GPUs at once: float32, TF32, autocast with and without the fused optimizer, accumulation,
    checkpointing.

    Measured: as for the single step, a few seconds each; the two larger models are judged. Not
    measured: options for which the time or the GPU's memory does not suffice, which a note names.
    """
    neo = check.components("step_neo")
    results = loads.run(
        lambda place: step.Ask(
            seconds=load_s["train_step_table"], table=True, neo=place.component in neo
        ),
        on=alone(due_gpus),
    )
    check.all(results, table=lambda gpu, one: step_table(one, own_sheets.get(gpu)))
