"""`rigproof capacity`: the card of a recorded run, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import journals
import pytest
import sample_runs
from cases import each
from command import Call, assert_refused, printed
from runs import machine_root, unpacked, write_segment

from acceptance.cli.capacity import amount
from acceptance.journal import reader

TRAINED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h100/runs/2xh100-host-train"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_runs.write("2x3090ti", tmp_path_factory.mktemp("runs") / "run")


def test_the_card_of_a_run(call: Call, run: Path) -> None:
    out = printed(call("capacity", str(run), "--lang", "en"))
    assert "PaLM" not in out
    out = printed(call("capacity", str(run), "--why", "--lang", "en"))
    assert out.startswith("1.3 billion parameters, 26 billion tokens, 2 GPUs: ")
    for text in (
        "2 x NVIDIA GeForce RTX 3090 Ti, 24 GiB each",
        "training: 1.3 billion parameters",
        "Days to train: ",
        "(measured: step_gpt2 of gpu0, the least of 2)",
        "source: PaLM, arXiv 2204.02311; assumes: ",
        "The GPUs' own rate is the bottleneck",
    ):
        assert text in out
    assert out.splitlines()[-1].endswith(": PASS")


def test_the_card_of_a_recorded_run(call: Call, tmp_path: Path) -> None:
    folder = str(unpacked(TRAINED, tmp_path / "run"))
    out = printed(call("capacity", folder, "--why", "--lang", "en"))
    for text in (
        "2 x NVIDIA H100 80GB HBM3, 79.65 GiB each",
        "rate = 454.9 TFLOP/s (measured: step_neo of gpu0, the least of 2)",
        "e = 0.9797 (measured: parallel_ddp_efficiency_accumulated of gpus)",
        "Days to train: 76.36 days",  # 6 x 7e9 x 140e9 / (2 x 454.85e12 x 0.9797 x 86400)
        "MFU of the measured step: 46 %",
    ):
        assert text in out


def test_the_newest_run_is_taken(call: Call, run: Path) -> None:
    Path("reports").mkdir()
    Path("reports/latest").symlink_to(run)
    assert call("capacity") == call("capacity", "reports/latest")
    Path("reports/latest").unlink()
    assert_refused(call("capacity"), 2, "reports/latest")


def test_it_is_printed_as_json(call: Call, run: Path) -> None:
    argv = (
        *("--parameters", "3B", "--tokens", "60e9", "--gpus", "4", "--machines", "2"),
        *("--context", "2048", "--micro-batch", "2", "--accumulation", "8"),
        *("--layers", "32", "--hidden", "2560", "--checkpoint-every", "600"),
    )
    card = json.loads(printed(call("capacity", str(run), "--json", "--lang", "zh-CN", *argv)))
    assert (card["verdict"], card["troubles"]) == ("PASS", [])
    assert card["asked"] == (
        "3 billion parameters in 32 layers of width 2560, 60 billion tokens, 2 x 4 GPUs, "
        "micro-batches of 2 x 2048 tokens, 8 an update"
    )
    lines = {line["id"]: line for line in card["lines"]}
    assert lines["batch"]["value"] == 8 * 2 * 4 * 2
    assert lines["checkpoint"]["inputs"][1]["value"] == 600
    assert {one["origin"] for one in lines["batch"]["inputs"]} == {"asked"}
    (rate,) = (one["value"] for one in lines["days"]["inputs"] if "measured" in one["origin"])
    assert lines["days"]["value"] == pytest.approx(6 * 3e9 * 60e9 / (8 * rate) / 86400)


def test_in_chinese(call: Call, run: Path) -> None:
    out = printed(call("capacity", str(run), "--lang", "zh-CN"))
    assert out.startswith("13 亿参数\uff0c260 亿 token\uff0c2 块 GPU\uff1a")
    assert "训练天数" in out


def test_a_run_whose_evidence_is_not_whole(call: Call, run: Path, tmp_path: Path) -> None:
    broken = sample_runs.write("2x3090ti", tmp_path / "broken")
    (broken / reader.GPU_TELEMETRY).unlink()
    assert reader.GPU_TELEMETRY in printed(call("capacity", str(broken)), 3).splitlines()[0]
    assert json.loads(call("capacity", str(broken), "--json")[1])["troubles"]


def test_a_run_without_a_gpu_says_nothing_of_training(
    call: Call,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    write_segment(
        folder / reader.SUPERVISOR,
        journals.bodies(journals.plan()),
        machine_root(tmp_path / "root"),
    )
    assert_refused(call("capacity", str(folder)), 2, "tested no GPU")


@each(
    "option, value, words",
    [
        *(
            (option, value, "1 to 1e18")
            for option in ("--parameters", "--tokens")
            for value in (
                "0",
                "0.5",
                "-7e9",
                "nan",
                "inf",
                "7x",
                "",
                "1e19",
                "7 B",
                "0x7",
                "\u0667",
            )
        ),
        *(
            (option, value, "1 to 9999")
            for option in ("--gpus", "--machines", "--micro-batch", "--accumulation", "--layers")
            for value in ("0", "-1", "nan", "1.5", "10000", "")
        ),
        *(
            (option, value, "1 to 1000000")
            for option in ("--context", "--hidden", "--checkpoint-every")
            for value in ("0", "-1", "nan", "1e3", "1000001")
        ),
    ],
)
def test_what_is_no_number_is_refused(
    call: Call,
    option: str,
    value: str,
    words: str,
) -> None:
    assert_refused(call("capacity", f"{option}={value}"), 2, option, words)


@each(
    "option, value, meant",
    [
        ("--parameters", "7", "7B"),
        ("--parameters", "1.3", "1.3B"),
        ("--tokens", "300", "300B"),
    ],
)
def test_a_number_without_its_suffix_is_asked_about(
    call: Call,
    option: str,
    value: str,
    meant: str,
) -> None:
    assert_refused(call("capacity", option, value), 2, option, f"did you mean {meant}?")


@each(
    "text, value",
    [
        ("7e9", 7e9),
        ("7B", 7e9),
        ("7b", 7e9),
        ("350M", 350e6),
        ("1.4T", 1.4e12),
        ("1.5e+12", 1.5e12),
        ("7000000000", 7e9),
        ("124k", 124e3),
    ],
)
def test_large_numbers(text: str, value: float) -> None:
    assert amount(text) == pytest.approx(value)
