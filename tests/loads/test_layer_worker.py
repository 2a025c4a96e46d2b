"""The load of layers without torch: its first line, its steps on a card of clockwork, the memory
that decides its batch, and the bound of its errors.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from card_of_tests import FakeCard
from cases import each
from load_texts import by_name
from wrong_results import LAYER, LAYER_REPEATED

from acceptance.core.dtype import DtypeName
from acceptance.loads.__main__ import main
from acceptance.loads.gemm import product
from acceptance.loads.miscompare import WrongLayer, WrongLayerRepeat, read
from acceptance.loads.program import LoadError, OutOfMemory
from acceptance.loads.protocol import LoadOutput, Output, parse
from acceptance.loads.train import layer_load as load
from acceptance.loads.train.layer_bound import SMALL, error_bound
from acceptance.loads.train.layer_contract import GRID, LAYER_PARTS, LAYER_READINGS, Ask, parts
from acceptance.loads.train.layer_worker import LayerOptions, LayerWorker, Work
from acceptance.loads.train.memory import layer_batch, layer_bytes
from acceptance.loads.train.shapes import LAYERS, LayerName

GIB = 1 << 30


# --- the program ---


def test_the_workspace_that_strict_determinism_needs_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
        assert "NVIDIA_TF32_OVERRIDE" not in os.environ
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(load, "gpu_identity", fails)
    assert main(["train_layers", "dtype=bf16", "seconds=8"]) == 1
    said = "train_layers: CUDA error: an illegal memory access was encountered\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("ask", "batch", "formats"),
    [
        (Ask(dtype="bf16", seconds=8.0), 64, []),
        (Ask(dtype="bf16", seconds=8.0, device="cpu"), 2, []),
        (Ask(dtype="bf16", seconds=8.0, table=True, inject="slow"), None, ["f16", "f32"]),
    ],
)
def test_what_it_says_first(
    monkeypatch: pytest.MonkeyPatch,
    ask: Ask,
    batch: int | None,
    formats: list[str],
) -> None:
    made: list[LayerOptions] = []

    class Card(FakeCard):
        def whole_bytes(self) -> int:
            return 80 * GIB

    def worker(order: LayerOptions, *_: object) -> SimpleNamespace:
        made.append(order)
        return SimpleNamespace(judge=lambda: None, tabulate=lambda: None)

    capability = "7.5" if formats else "9.0"
    monkeypatch.setattr(load, "gpu_identity", lambda: {"gpu": "a GPU", "capability": capability})
    monkeypatch.setattr(load, "CudaCard", Card)
    monkeypatch.setattr(load, "LayerWorker", worker)
    monkeypatch.setattr(product, "settings", lambda: None)
    trial = SimpleNamespace(TorchLayers=lambda *_: None)
    monkeypatch.setitem(sys.modules, "acceptance.loads.train.layer_trial", trial)
    stream = io.StringIO()
    monkeypatch.setenv(*load.WORKSPACE)  # as it is set, and taken back behind the test
    load.run(ask, Output(stream))
    told = parse(stream.getvalue()).parameters
    assert ask.parameters().items() <= told.items()
    assert told["batches"].get("bert") == batch
    assert told["formats"] == formats
    assert told["size"] == (8192 if ask.device == "cuda" else load.SMALL_SIZE)
    assert made[0].formats == tuple(formats)


# --- the batch ---


@each(
    "gib, batches",
    [(140, (64, 64, 64, 64, 8)), (24, (64, 64, 64, 64, 8)), (8, (64, 32, 64, 64, 4))],
)
def test_the_batch_halves_until_it_fits(gib: int, batches: tuple[int, ...]) -> None:
    found = load.judged("bf16", 8192, gib * GIB)
    assert tuple(shape.batch for shape in found.values()) == batches


def test_no_batch_is_below_one_and_narrow_scores_count() -> None:
    llama = LAYERS["llama"]
    assert layer_batch("llama", llama, "f16", 0, 1) == 1
    needed = {one: layer_bytes("llama", llama, 8, 2048, one) for one in ("f16", "bf16")}
    assert needed["f16"] > needed["bf16"]
    like_bert = LAYERS["t5_encoder"], 8, 512
    masked = layer_bytes("t5_encoder", *like_bert, "f16")
    assert masked > layer_bytes("bert", *like_bert, "f16")


def test_parts_are_counted_as_published() -> None:
    """At batch 64, sequence 128: 0.21045 TFLOP for the layer (BERT-large)."""
    counted = {one.reading: one.flop for one in parts()}
    assert counted["layer_dense"] == counted["layer_dense_gelu"] == 2 * 64 * 128 * 1024 * 4096
    whole = counted["layer_feed_forward"] + counted["layer_attention"]
    assert whole == LAYERS["bert"].forward_flop(64, 128) == pytest.approx(0.21045e12, 1e-4)


def test_the_bound_is_that_of_the_format() -> None:
    bounds: dict[DtypeName, float] = {
        dtype: error_bound(dtype, SMALL["bert"]) for dtype in ("bf16", "f16", "tf32", "f32")
    }
    assert 0.19 < bounds["bf16"] < 0.2
    assert 0.024 < bounds["f16"] < 0.025
    assert 0.048 < bounds["tf32"] < 0.049
    assert bounds["f32"] < 5e-5


# --- the steps ---


@dataclass
class Trial:
    """A layer whose forward pass takes 1 ms, and 3 ms with backward; `odd` differ in the end."""

    machine: Layers
    name: LayerName
    kept: bool = False
    odd: Sequence[WrongLayerRepeat] = ()

    def forward(self) -> None:
        self.machine.work("forward", 0.001)

    def train(self) -> None:
        self.machine.work("train", 0.003)

    def keep(self) -> None:
        self.kept = True

    def compare(self) -> tuple[int, Sequence[WrongLayerRepeat]]:
        assert self.kept
        return 5, self.odd

    def release(self) -> None:
        self.machine.held -= 1


@dataclass
class Layers:
    """Layers of clockwork: `hot` is the clock after which all takes longer by a quarter."""

    hot_s: float = 1e9
    free: int = 1 << 40
    full: set[LayerName] = field(default_factory=set)
    wrong: dict[LayerName, WrongLayer] = field(default_factory=dict)
    odd: dict[LayerName, WrongLayerRepeat] = field(default_factory=dict)
    now: float = 0.0
    held: int = 0
    done: list[str] = field(default_factory=list)
    verified: list[tuple[str, str, bool]] = field(default_factory=list)

    def work(self, kind: str, seconds: float) -> None:
        self.done.append(kind)
        self.now += seconds * (1.25 if self.now > self.hot_s else 1.0)

    def mark(self) -> float:
        return self.now

    def seconds(self, begin: float, end: float) -> float:
        return end - begin

    def free_bytes(self) -> int:
        return self.free

    def verify(
        self, name: LayerName, dtype: DtypeName, *, falsify: bool
    ) -> tuple[int, Sequence[WrongLayer], str]:
        self.verified.append((name, dtype, falsify))
        found = self.wrong.get(name)
        return 10, () if found is None else (found,), "0.25 of the allowed error"

    def product(self, _dtype: DtypeName, _size: int) -> Work:
        return lambda: self.work("product", 0.002)

    def layer(self, name: LayerName, _dtype: DtypeName, *, batch: int, sequence: int) -> Trial:
        assert batch
        assert sequence
        if name in self.full:
            raise OutOfMemory
        self.held += 1
        found = self.odd.get(name)
        return Trial(self, name, odd=() if found is None else (found,))

    def part(self, reading: str, _dtype: DtypeName) -> Work:
        assert reading in LAYER_PARTS
        return lambda: self.work("part", 0.001)


def said(
    layers: Layers,
    seconds: float = 10.0,
    *,
    formats: tuple[DtypeName, ...] = (),
    inject: str | None = None,
) -> LoadOutput:
    stream = io.StringIO()
    output = Output(stream)
    output.hello("train_layers", {})
    order = LayerOptions("bf16", seconds, 8192, LAYERS, formats, inject)
    worker = LayerWorker(order, layers, output, layers, lambda: layers.now)
    (worker.tabulate if formats else worker.judge)()
    output.end()
    return parse(stream.getvalue())


def test_the_judged_layers() -> None:
    layers = Layers()
    output = said(layers)
    found = by_name(output)
    assert found.keys() == LAYER_READINGS.keys()
    assert found["layer_matmul"] == pytest.approx(2 * 8192**3 / 0.002 / 1e12)
    flop = LAYERS["bert"].forward_flop(64, 512)
    assert found["layer_bert_forward"] == pytest.approx(flop / 0.001 / 1e12)
    assert found["layer_bert"] == pytest.approx(3 * flop / 0.003 / 1e12)
    assert found["layer_bert_share"] == found["layer_bert"] / found["layer_matmul"]
    assert found["layer_miscompares"] == 0
    assert layers.now == pytest.approx(10.0, abs=1.0)  # what was asked, and little more
    assert layers.held == 0
    assert [one for one, *_ in layers.verified] == list(LAYERS)
    (table,) = output.tables
    assert [row[:4] for row in table.rows] == [
        (name, "bf16", float(shape.sequence), float(shape.batch)) for name, shape in LAYERS.items()
    ]
    assert table.rows[0][4:] == tuple(
        found[f"layer_bert{end}"] for end in ("_forward", "", "_share")
    )
    assert output.notes[-1].startswith("the matrix product between the layers: ")


def test_the_product_is_as_hot_as_the_layers() -> None:
    """A card that slows down by a quarter once it is warm: the shares are those of a cool one."""
    cool, warm = by_name(said(Layers())), by_name(said(Layers(hot_s=1.0)))
    for name in LAYERS:
        assert warm[f"layer_{name}"] == pytest.approx(cool[f"layer_{name}"] / 1.25)
        assert warm[f"layer_{name}_share"] == pytest.approx(cool[f"layer_{name}_share"])


def test_wrong_tensors_are_said_and_counted() -> None:
    layers = Layers()
    wrong, odd = read(LAYER), read(LAYER_REPEATED)
    assert isinstance(wrong, WrongLayer)
    assert isinstance(odd, WrongLayerRepeat)
    layers.wrong, layers.odd = {"bert": wrong}, {"llama": odd, "gpt2": odd}
    output = said(layers)
    assert by_name(output)["layer_miscompares"] == 3
    assert output.miscompares == (wrong, odd, odd)
    assert "75 tensors compared, 3 of them wrong" in output.notes


def test_injected_faults() -> None:
    layers = Layers()
    said(layers, inject="wrong")
    assert [one[2] for one in layers.verified] == [True, False, False, False, False]
    slow, usual = by_name(said(Layers(), inject="slow")), by_name(said(Layers()))
    for name in ("layer_bert", "layer_llama_forward", "layer_t5_decoder_share"):
        assert slow[name] == pytest.approx(usual[name] / 2)
    assert slow["layer_matmul"] == usual["layer_matmul"]


@each("layers", [lambda: Layers(free=1 << 30), lambda: Layers(full={"gpt2"})])
def test_a_gpu_in_use_is_no_measurement(layers: Callable[[], Layers]) -> None:
    with pytest.raises(LoadError, match=r"needs up to .* GiB are free: end what uses the GPU"):
        said(layers())


# --- the table ---


def test_the_table() -> None:
    layers = Layers(full={"llama"})
    output = said(layers, 120.0, formats=("bf16", "f32"))
    assert by_name(output).keys() == LAYER_PARTS.keys()
    assert [one[:2] for one in layers.verified] == [
        (name, dtype) for dtype in ("bf16", "f32") for name in LAYERS
    ]
    (table,) = output.tables
    cells = [(name, float(s), float(b)) for name, s, batches in GRID for b in batches]
    assert [(row[0], row[2], row[3]) for row in table.rows] == 2 * cells
    for row in table.rows:
        if row[0] == "llama":
            assert row[4:] == ("no memory",) * 3
        else:
            assert all(isinstance(rate, float) and rate > 0 for rate in row[4:])
    flop = LAYERS["bert"].forward_flop(2, 128)
    assert table.rows[0][4] == pytest.approx(flop / 0.001 / 1e12)
    assert layers.held == 0


def test_time_that_does_not_suffice_is_said_in_the_cells() -> None:
    layers = Layers()
    (table,) = said(layers, 4.0, formats=("bf16", "f16")).tables
    untold = [row for row in table.rows if row[4] == "no time"]
    assert untold
    assert all(row[4:] == ("no time",) * 3 for row in untold)
    assert len(table.rows) == 88
    assert isinstance(table.rows[0][4], float)  # the judged format comes first
    assert layers.now < 8.0


def test_a_format_without_time_has_no_product_either() -> None:
    (table,) = said(Layers(), 0.01, formats=("bf16",)).tables
    assert {row[6] for row in table.rows} == {"no time"}


def test_the_time_that_is_done_is_told() -> None:
    stream = io.StringIO()
    output: Any = Output(stream)
    output.hello("train_layers", {})
    layers = Layers()
    LayerWorker(LayerOptions("bf16", 12.0, 64, LAYERS), layers, output, layers).judge()
    assert stream.getvalue().count('"progress"') == 2
