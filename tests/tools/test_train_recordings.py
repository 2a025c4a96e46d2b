"""What the loads of training printed on real GPUs, sound and with faults injected, is read as its
index says: fixtures/recordings/h100/loads/INDEX.toml.
"""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cases import each
from gpu_machine import gpu

from acceptance.core.parts import GPUS, Component, Gpu
from acceptance.diagnosis import digest_agreement
from acceptance.loads import asks
from acceptance.loads.__main__ import parsed
from acceptance.loads.asks import ASKS
from acceptance.loads.miscompare import details
from acceptance.loads.protocol import LoadOutput
from acceptance.loads.train import digest_contract
from acceptance.loads.train.digest_log import TrainingRuns
from acceptance.process.command import ProgramResult
from acceptance.session import loads
from acceptance.session.loads import LoadFailed, Place, alone
from acceptance.wording import words

LOADS = Path(__file__).parents[2] / "fixtures/recordings/h100/loads"
LOGS = "../runs/2xh100-host-train/logs"
INDEX: list[dict[str, Any]] = tomllib.loads((LOADS / "INDEX.toml").read_text())["recording"]
TRIALS = "digest-trials.txt"
ENTRIES = [entry for entry in INDEX if entry["path"] != TRIALS]
SOUND = [entry for entry in ENTRIES if "fault" not in entry]
FAULTY = [entry for entry in ENTRIES if "fault" in entry]
SHORT_S = 1.0  # longer than it was asked for
Parameters = Mapping[str, Any]


def text_of(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def printed(entry: Mapping[str, Any]) -> str:
    """The recorded output, with another compute capability where the index says so."""
    text = text_of(LOADS / entry["path"])
    other = entry.get("capability")
    return (
        text
        if other is None
        else text.replace('"capability": "9.0"', f'"capability": "{other}"', 1)
    )


def asked(text: str) -> tuple[str, Parameters]:
    """The load and its parameters, as its first line says them."""
    hello = json.loads(text.partition("\n")[0])
    return hello["load"], hello["parameters"]


def unstamped(text: str) -> str:
    """The output as it would be if the fault were of the machine."""
    first, end, more = text.partition("\n")
    hello = json.loads(first)
    del hello["parameters"]["inject"]
    return json.dumps(hello) + end + more


def argv_of(text: str) -> tuple[str, ...]:
    load, told = asked(text)
    names = ASKS[load].__struct_fields__
    return asks.argv(
        "python", asks.decode({"load": load, **{one: told[one] for one in names if one in told}})
    )


def read(entry: Mapping[str, Any], change: Callable[[str], str] = str) -> LoadOutput:
    """The output by the reader of its load, asked for what it says it was asked for."""
    text = change(printed(entry))
    _, told = asked(text)
    seconds = told["seconds"]
    errors = entry.get("stderr", "")
    done = ProgramResult(argv_of(text), int(bool(errors)), text, errors, seconds + SHORT_S)
    if "uuids" not in told:
        return loads.read(done, *alone([gpu(0, uuid=told["uuid"], name=told["gpu"])]))
    gpus = [gpu(place, uuid=uuid) for place, uuid in enumerate(told["uuids"])]
    return loads.read(done, Place(GPUS, tuple(gpus)))


def told_wrong(found: LoadOutput | LoadFailed) -> list[str]:
    facts = [details(one) for one in found.miscompares]
    keys = ("check", "component", "tensor")
    return [" ".join(str(fact[key]) for key in keys if key in fact) for fact in facts]


def told_readings(output: LoadOutput, names: Mapping[str, float]) -> dict[str, float]:
    return {one.name: one.value for one in output.readings if one.name in names}


def test_every_file_is_indexed() -> None:
    own = {entry["path"] for entry in INDEX if not entry["path"].startswith("..")}
    assert {path.name for path in LOADS.iterdir()} == {*own, "INDEX.toml"}


@each("entry", ENTRIES, told=lambda entry: entry["path"])
def test_the_command_is_that_of_the_suites(entry: dict[str, Any]) -> None:
    assert parsed(entry["command"].split()) == asks.of_argv(argv_of(printed(entry)))


@each("entry", SOUND, told=lambda entry: entry["path"])
def test_a_sound_output_is_taken(entry: dict[str, Any]) -> None:
    output = read(entry)
    assert told_readings(output, entry["readings"]) == pytest.approx(entry["readings"], rel=1e-5)
    assert told_wrong(output) == entry["wrong"] == []


@each("entry", FAULTY, told=lambda entry: entry["path"])
def test_an_injected_fault_is_refused_by_its_name_and_its_wrong_results_are_kept(
    entry: dict[str, Any],
) -> None:
    with pytest.raises(LoadFailed) as caught:
        read(entry)
    said = words.text(caught.value.message)
    assert entry.get("stderr", f"a fault injected on purpose ({entry['fault']})") in said
    assert told_wrong(caught.value) == entry["wrong"]


@each("entry", [e for e in FAULTY if "readings" in e], told=lambda entry: entry["path"])
def test_the_same_of_a_machine_is_read_and_counted(entry: dict[str, Any]) -> None:
    output = read(entry, unstamped)
    assert told_readings(output, entry["readings"]) == pytest.approx(entry["readings"], rel=1e-5)
    assert told_wrong(output) == entry["wrong"]


@each("entry", [e for e in FAULTY if "stderr" in e], told=lambda entry: entry["path"])
def test_a_rank_that_is_lost_is_an_error_that_names_it(entry: dict[str, Any]) -> None:
    with pytest.raises(LoadFailed, match="gpu1") as caught:
        read(entry, unstamped)
    assert caught.value.miscompares == ()


def test_a_gpu_that_flips_the_same_bit_each_time_differs_from_its_equals() -> None:
    (odd,) = [entry for entry in FAULTY if entry["fault"] == "persistent"]
    first, second = ({"path": f"{LOGS}/train.digest-{number}.log.gz"} for number in (1, 2))
    outputs = [read(first), read(second), read(odd, unstamped)]
    runs: dict[Component, TrainingRuns] = {
        Gpu(place): digest_contract.runs(output) for place, output in enumerate(outputs)
    }
    siblings = {"H100": tuple(runs)}
    (suspect,) = digest_agreement.suspects(runs, siblings)
    assert (suspect.gpu, suspect.format, suspect.most, suspect.tied) == (Gpu(2), "tf32", 2, False)
    found = digest_agreement.judge(runs, {Gpu(2): runs[Gpu(2)]}, siblings)
    assert found.troubles == ()
    assert found.differing == {Gpu(0): 0.0, Gpu(1): 0.0, Gpu(2): 1.0}
    assert words.text(found.notes[Gpu(2)] or "").startswith(
        "persistent: TF32 from step 14 on, first in the gradient of "
        "blocks.8.feed_forward.down.weight, as one flipped bit 16 of one element, beside gpu0"
    )


def test_every_flipped_bit_was_found_at_or_after_its_step() -> None:
    trials = re.findall(
        r"^(bf16|tf32) (\w+) step (\d+): found: step (\d+), .*, (bit|several)$",
        (LOADS / TRIALS).read_text(),
        re.MULTILINE,
    )
    assert len(trials) == 80
    assert all(int(made) <= int(found) for _, _, made, found, _ in trials)
    exact = [one for one in trials if one[1] == "gradient" and one[2] == one[3] and one[4] == "bit"]
    assert len(exact) == 20
