"""The parts of the load of layers that need torch, on tensors of the processor.

pytest does not collect this file: torch is in the image only.
`tests/containers/test_torch_loads.py` runs it there.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from written import written

from acceptance.core.dtype import DtypeName
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.train import layer_load, layer_worker
from acceptance.loads.train.layer_bound import SMALL, error_bound
from acceptance.loads.train.layer_contract import (
    LAYER_PARAMETERS,
    LAYER_PARTS,
    LAYER_READINGS,
    Ask,
)
from acceptance.loads.train.layer_trial import TorchLayer, TorchLayers, differing, scale, small
from acceptance.loads.train.shapes import LAYER_NAMES, LayerName

FORMATS: tuple[DtypeName, ...] = ("bf16", "f16", "tf32", "f32")
every = pytest.mark.parametrize("name", LAYER_NAMES)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Of small products two threads take four times as long where another program runs."""
    torch.set_num_threads(1)


@every
@pytest.mark.parametrize("dtype", FORMATS)
def test_right_layers_are_well_within_the_bound(name: LayerName, dtype: DtypeName) -> None:
    compared, wrong, told = TorchLayers("cpu").verify(name, dtype, falsify=False)
    assert not wrong
    assert compared == 1 + (2 if SMALL[name].cross else 1) + LAYER_PARAMETERS[name]
    assert float(told.split()[0]) < 0.5


@every
@pytest.mark.parametrize("dtype", FORMATS)
def test_a_gradient_just_beyond_its_bound_is_found(name: LayerName, dtype: DtypeName) -> None:
    _, (found,), _ = TorchLayers("cpu").verify(name, dtype, falsify=True)
    assert (found.check, found.layer, found.dtype, found.elements) == (
        *("layer_reference", name, dtype),
        1,
    )
    assert found.tensor.endswith("weight")
    assert found.error is not None
    assert found.bound < found.error < 1.1 * found.bound
    assert found.odd == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_wrong(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from acceptance.loads.train import layer_trial

    got, exact = small("gpt2", "f32", "cpu")
    got["output"][0, 0, 3] = value
    monkeypatch.setattr(layer_trial, "small", lambda *_: (got, exact))
    _, (found,), told = TorchLayers("cpu").verify("gpt2", "f32", falsify=False)
    assert (found.tensor, found.elements, found.odd, found.error) == ("output", 1, 1, None)
    assert found.first[0].got == repr(value)
    assert float(told.split()[0]) < 0.5


@every
def test_every_tensor_is_compared(name: LayerName) -> None:
    """And depends on what it should: no gradient is 0 throughout but that of the keys' bias."""
    got, exact = small(name, "f32", "cpu")
    assert got.keys() == exact.keys()
    inputs = {"input", "memory"} if SMALL[name].cross else {"input"}
    assert got.keys() > {"output", "attention.query.weight", *inputs}
    for tensor, value in exact.items():
        assert scale(tensor, exact) > 0
        largest = float(value.abs().max())
        assert (largest < 1e-12) == (tensor == "attention.key.bias"), tensor


def test_a_wrong_side_of_relu_is_found() -> None:
    """Near 0 either side is right; far from it only one is."""
    from acceptance.loads.train.layer_trial import _Sided

    values = torch.tensor([3.0, -3.0, 1e-9, -1e-9], dtype=torch.float64)
    others = torch.tensor([-1.0, 1.0, -1.0, 1.0])
    kept = _Sided(others, error_bound("f32", SMALL["t5_encoder"])).forward(values)
    assert kept.tolist() == [3.0, 0.0, 0.0, -1e-9]


@every
def test_bits_repeat_and_a_changed_one_is_told(name: LayerName) -> None:
    made = TorchLayer(name, "bf16", SMALL[name], "cpu")
    made.keep()
    compared, wrong = made.compare()
    assert not wrong
    assert compared > 10
    kept: Any = made._kept["strict"]
    tensor = "memory" if SMALL[name].cross else "input"
    kept[tensor].view(torch.int16)[1, 2, 3] ^= 1
    _, (found,) = made.compare()
    assert (found.check, found.layer, found.tensor, found.run) == (
        *("layer_repeat", name, tensor),
        "strict",
    )
    assert (found.elements, found.first[0].index, found.first[0].xor) == (1, (1, 2, 3), "0001")
    made.release()


def test_equal_bits_are_equal() -> None:
    one = torch.tensor([0.0, float("nan")])
    assert differing("bert", "f32", "strict", "output", one, one.clone()) is None
    assert differing("bert", "f32", "strict", "output", one, -one) is not None


@pytest.mark.parametrize("reading", [name for name in LAYER_PARTS if name != "layer_miscompares"])
def test_parts_of_a_layer_run(reading: str) -> None:
    TorchLayers("cpu", SMALL).part(reading, "bf16")()


def ran(**asked: Any) -> LoadOutput:
    return parse(written(lambda output: layer_load.run(Ask(**asked, device="cpu"), output)))


def test_the_whole_load() -> None:
    output = ran(dtype="bf16", seconds=1.0)
    readings = {one.name: one.value for one in output.readings}
    assert readings.keys() == LAYER_READINGS.keys()
    assert readings["layer_miscompares"] == 0
    assert all(value > 0 for name, value in readings.items() if name != "layer_miscompares")
    output = ran(dtype="bf16", seconds=1.0, inject="wrong")
    assert output.injected == "wrong"
    assert len(output.miscompares) == 1


def test_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_worker, "GRID", [("t5_decoder", 128, (2,))])
    output = ran(dtype="f16", seconds=30.0, table=True)
    assert {one.name for one in output.readings} == LAYER_PARTS.keys()
    rows = output.tables[0].rows
    assert len(rows) == 4
    assert isinstance(rows[0][4], float)
    assert json.dumps(output.parameters["formats"]) == '["bf16", "f16", "tf32", "f32"]'
