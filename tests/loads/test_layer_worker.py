"""The load of layers without torch: its first line, its steps on a card of clockwork, the memory
that decides its batch, and the bound of its errors.
"""

from __future__ import annotations

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
from written import ran, written
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
    monkeypatch.setenv(*load.WORKSPACE)  # as it is set, and taken back behind the test
    told = parse(written(lambda output: load.run(ask, output))).parameters
    assert ask.parameters().items() <= told.items()
    assert told["batches"].get("bert") == batch
    assert told["formats"] == formats
    assert told["size"] == (8192 if ask.device == "cuda" else load.SMALL_SIZE)
    assert made[0].formats == tuple(formats)


def test_the_workspace_that_strict_determinism_needs_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise RuntimeError(os.environ["CUBLAS_WORKSPACE_CONFIG"])

    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(load, "gpu_identity", fails)
    assert main(["train_layers", "dtype=bf16", "seconds=8"]) == 1
    assert capsys.readouterr().err == "train_layers: :4096:8\n"


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


@each("dtype, bound", [("bf16", 0.195), ("f16", 0.0245), ("tf32", 0.0485), ("f32", 2.5e-5)])
def test_the_bound_is_that_of_the_format(dtype: DtypeName, bound: float) -> None:
    assert error_bound(dtype, SMALL["bert"]) == pytest.approx(
        bound, rel=0.03 if bound > 1e-3 else 1
    )


# --- the steps ---


@dataclass
class Layers(FakeCard):
    """Layers of clockwork: forward takes 1 ms, and 3 ms with backward; `hot_s` is the clock after
    which all takes longer by a quarter.
    """

    hot_s: float = 1e9
    free: int = 1 << 40
    full: set[LayerName] = field(default_factory=set)
    wrong: dict[LayerName, WrongLayer] = field(default_factory=dict)
    odd: dict[LayerName, WrongLayerRepeat] = field(default_factory=dict)
    now: float = 0.0
    held: int = 0
    verified: list[tuple[str, str, bool]] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def takes(self, seconds: float) -> Work:
        def work() -> None:
            self.now += seconds * (1.25 if self.now > self.hot_s else 1.0)

        return work

    def verify(
        self, name: LayerName, dtype: DtypeName, *, falsify: bool
    ) -> tuple[int, Sequence[WrongLayer], str]:
        self.verified.append((name, dtype, falsify))
        return 10, [self.wrong[name]] if name in self.wrong else [], "0.25 of the allowed error"

    def product(self, _dtype: DtypeName, _size: int) -> Work:
        return self.takes(0.002)

    def part(self, reading: str, _dtype: DtypeName) -> Work:
        assert reading in LAYER_PARTS
        return self.takes(0.001)

    def layer(self, name: LayerName, _dtype: DtypeName, *, batch: int, sequence: int) -> Any:
        assert batch
        assert sequence
        if name in self.full:
            raise OutOfMemory
        self.held += 1
        odd = [self.odd[name]] if name in self.odd else []
        return SimpleNamespace(
            forward=self.takes(0.001),
            train=self.takes(0.003),
            keep=lambda: None,
            compare=lambda: (5, odd),
            release=self.release,
        )

    def release(self) -> None:
        self.held -= 1


def said(
    layers: Layers,
    seconds: float = 10.0,
    *,
    formats: tuple[DtypeName, ...] = (),
    inject: str | None = None,
) -> LoadOutput:
    order = LayerOptions("bf16", seconds, 8192, LAYERS, formats, inject)

    def work(output: Output) -> None:
        worker = LayerWorker(order, layers, output, layers, lambda: layers.now)
        (worker.tabulate if formats else worker.judge)()

    return ran("train_layers", work)


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


@each(
    "warm, inject, share, speed",
    [
        (1.0, None, 1.0, 0.8),  # the product is as hot as the layers: shares are of a cool card
        (1e9, "slow", 0.5, 0.5),
    ],
)
def test_rates_of_a_warm_card_and_injected_slowness(
    warm: float, inject: str | None, share: float, speed: float
) -> None:
    usual, found = by_name(said(Layers())), by_name(said(Layers(hot_s=warm), inject=inject))
    for name in LAYERS:
        assert found[f"layer_{name}"] == pytest.approx(speed * usual[f"layer_{name}"])
        assert found[f"layer_{name}_share"] == pytest.approx(share * usual[f"layer_{name}_share"])
    matmul = 1.0 if inject else speed
    assert found["layer_matmul"] == pytest.approx(matmul * usual["layer_matmul"])


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
    layers = Layers()
    said(layers, inject="wrong")
    assert [one[2] for one in layers.verified] == [True, False, False, False, False]


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
    assert len(table.rows) == 88
    assert isinstance(table.rows[0][4], float)  # the judged format comes first
    assert {row[4:] for row in table.rows if row[4] == "no time"} == {("no time",) * 3}
    assert layers.now < 8.0
    (table,) = said(Layers(), 0.01, formats=("bf16",)).tables
    assert {row[6] for row in table.rows} == {"no time"}, "no product either"


def test_the_time_that_is_done_is_told() -> None:
    layers, order = Layers(), LayerOptions("bf16", 12.0, 64, LAYERS)
    text = written(lambda output: LayerWorker(order, layers, output, layers).judge())
    assert text.count('"progress"') == 2
