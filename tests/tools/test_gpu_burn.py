from __future__ import annotations

import math
from pathlib import Path

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from reasons import require, why_of
from thoroughness import ALL

from acceptance.core.parts import Gpu
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools import gpu_burn
from acceptance.tools.gpu_burn import Mode
from acceptance.tools.proof import ToolError

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings/gpu-burn"
# read_text turns the carriage returns of the progress into line ends.
TENSOR = (RECORDINGS / "ok_tensor_2gpu_2024.txt").read_text()
DOUBLE = (RECORDINGS / "ok_double_4gpu_power_2026.txt").read_text()
OLD = (RECORDINGS / "ok_1gpu_2019.txt").read_text()
OLDEST = (RECORDINGS / "ok_2gpu_2014_no_rates.txt").read_text()
DIED = (RECORDINGS / "died_gpu0_mid_run.txt").read_text()

HEAD = (
    "Initialized device 0 with 24217 MB of memory (23801 MB available, using 2560 MB of it), "
    "using FLOATS\n"
    "Results are 268435456 bytes each, thus performing 8 iterations\n"
)
TABLE = "\nTested 1 GPUs:\n\tGPU 0: OK\n"
GPUS = ("GPU 0", "GPU 1")


def one(*products: int, errors: str = "0", rate: int = 52000, head: str = HEAD) -> str:
    """A run of one GPU, `products` shown at even times up to 100 %."""
    lines = [
        (
            f"{100 * (index + 1) / len(products):.1f}%  proc'd: {done} ({rate} Gflop/s)   "
            f"errors: {errors}   temps: 60 C \n"
        )
        for index, done in enumerate(products)
    ]
    return head + "".join(lines) + TABLE


def two(*products: tuple[int, int], head: str = HEAD + HEAD.replace("device 0", "device 1")) -> str:
    """A run of two GPUs, as `one` is of one."""
    lines = [
        f"{100 * (index + 1) / len(products):.1f}%  proc'd: {first} (52000 Gflop/s) - {second} "
        "(52000 Gflop/s)   "
        "errors: 0 - 0   temps: 60 C - 61 C \n"
        for index, (first, second) in enumerate(products)
    ]
    return head + "".join(lines) + TABLE.replace("Tested 1", "Tested 2") + "\tGPU 1: OK\n"


def device(number: int, used_mb: int, ring: int, size: int = 268435456) -> str:
    """What is printed when a process has taken its memory."""
    return (
        f"Initialized device {number} with 24217 MB of memory (23801 MB available, using "
        f"{used_mb} MB of it), using FLOATS\n"
        f"Results are {size} bytes each, thus performing {ring} iterations\n"
    )


# The command


@each(
    "mode, compare, expected",
    [
        ("float", None, "gpu-burn -m 4096 60"),
        ("tensor", None, "gpu-burn -tc -m 4096 60"),
        (
            "double",
            "/usr/share/gpu-burn/compare.ptx",
            "gpu-burn -d -m 4096 -c /usr/share/gpu-burn/compare.ptx 60",
        ),
    ],
)
def test_argv(mode: Mode, compare: str | None, expected: str) -> None:
    words = gpu_burn.argv("gpu-burn", mode=mode, seconds=60, memory_mb=4096, compare_file=compare)
    assert words == tuple(expected.split())


@each(
    "mode, seconds, memory, compare, why",
    [
        ("float", 0, 4096, None, "at least 1 second"),
        ("float", 60, 1023, None, "needs 1024 MB"),
        ("double", 60, 2047, None, "needs 2048 MB"),
        ("float", 60, 4096, "/opt/my-data/compare.ptx", "it finds -d in it"),
        ("float", 60, 4096, "/opt/gpu-tc/compare.ptx", "it finds -tc in it"),
        ("float", 60, 4096, "-m", "for options; name another"),
        ("float", 60, 4096, "", "for options; name another"),
    ],
)
def test_argv_refuses(mode: Mode, seconds: int, memory: int, compare: str | None, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        gpu_burn.argv(
            "gpu-burn", mode=mode, seconds=seconds, memory_mb=memory, compare_file=compare
        )


@each(
    "mode, rate, compare_s, free, expected",
    [
        ("float", 51.1, 2.0, 140000, (92 + 2) * 256),
        (
            "tensor",
            350.0,
            2.0,
            140000,
            126000,
        ),  # 636 results would be more than 0.9 of what is free
        ("tensor", 350.0, 0.5, 140000, (159 + 2) * 256),
        ("float", 51.1, 2.0, 1138, 1024),  # 0.9 of it is what the smallest ring takes
        ("double", 0.4, 2.0, 24000, 4 * 512),  # two results, though they take five seconds
        ("float", 1e300, 1e300, 10000, 9000),
    ],
)
def test_memory(mode: Mode, rate: float, compare_s: float, free: int, expected: int) -> None:
    assert gpu_burn.memory_mb(mode, rate_tflops=rate, compare_s=compare_s, free_mb=free) == expected


@each(
    "rate, compare_s, free, why",
    [
        (0.0, 1.0, 20000, "rate_tflops must be a positive number"),
        (math.nan, 1.0, 20000, "rate_tflops must be a positive number"),
        (1.0, math.inf, 20000, "compare_s must be a positive number"),
        (1.0, -1.0, 20000, "compare_s must be a positive number"),
        (1.0, 1.0, 1137, "1137 MB of GPU memory are free, and gpu-burn needs 1024 MB"),
    ],
)
def test_memory_refuses(rate: float, compare_s: float, free: int, why: str) -> None:
    with pytest.raises((ValueError, ToolError), match=why):
        gpu_burn.memory_mb("float", rate_tflops=rate, compare_s=compare_s, free_mb=free)


@given(
    st.sampled_from(["float", "tensor", "double"]),
    st.floats(1e-3, 1e4),
    st.floats(1e-3, 1e3),
    st.integers(2300, 300000),
)
def test_memory_stays_within_its_bounds(
    mode: Mode, rate: float, compare_s: float, free: int
) -> None:
    memory = gpu_burn.memory_mb(mode, rate_tflops=rate, compare_s=compare_s, free_mb=free)
    assert memory <= 0.9 * free
    assert gpu_burn.argv("gpu-burn", mode=mode, seconds=1, memory_mb=memory)


def test_deadline() -> None:
    assert gpu_burn.deadline_s(60) == 150.0
    assert gpu_burn.STOP_S == 30


# The text


def test_a_dead_process_leaves_no_error_count() -> None:
    output = gpu_burn.parse(
        "Burning for 9 seconds.\n0.0%  proc'd: -1 (0 Gflop/s)   errors: 1641686072  (DIED!)  "
        "temps: 3 C"
    )
    assert output.outcome == "fail", why_of(output)
    assert "died on GPU 0: see the kernel log" in why_of(output)
    with pytest.raises(KeyError):
        output.reading("gpu_burn_errors")


@each(
    "line, expected, why",
    [
        ("No clients are alive!  Aborting", "fail", "died on every GPU"),
        (
            "Couldn't init a GPU test: Error: uncorrectable ECC error encountered",
            "fail",
            "the driver reports a hardware fault",
        ),
        (
            "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.",
            "fail",
            "GPU is lost",
        ),
        (
            "Failure during compute: Error in SGEMM: CUBLAS_STATUS_EXECUTION_FAILED",
            "error",
            "could not do its work",
        ),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "error",
            "could not do its work",
        ),
        ("Segmentation fault (core dumped)", "error", "could not do its work"),
        (
            "  what():  Error (gpu_burn-drv.cpp:298): system not yet initialized",
            "error",
            "nvidia-fabricmanager",
        ),
        ("No CUDA devices", "error", "CUDA sees no GPU"),
        (
            "Couldn't init CUDA: Error (gpu_burn-drv.cpp:301): unknown error",
            "error",
            "CUDA sees no GPU",
        ),
        (
            "Couldn't init a GPU test: Low mem for result. aborting.",
            "error",
            "no room for three results",
        ),
        (
            "Couldn't init a GPU test: Error in C alloc (x:1): out of memory",
            "error",
            "allow less with -m",
        ),
        (
            "Couldn't init a GPU test: CUDA driver version is insufficient",
            "error",
            "the driver is too old",
        ),
        (
            "Couldn't init a GPU test: all CUDA-capable devices are busy or unavailable",
            "error",
            "compute mode",
        ),
        (
            "Couldn't init a GPU test: Error in couldn't find compare kernel: compare.ptx (x:1)",
            "error",
            "with -c",
        ),
        ('Couldn\'t init a GPU test: Error in "load module": ', "error", "does not suit this GPU"),
        (
            'Failure during compute: Error in "SGEMM": CUBLAS_STATUS_ARCH_MISMATCH',
            "error",
            "leave -tc out",
        ),
        (
            'Couldn\'t init a GPU test: Error in "init": CUBLAS_STATUS_NOT_INITIALIZED',
            "error",
            "could not start",
        ),
        (
            "./gpu_burn: error while loading shared libraries: libcublas.so.12",
            "error",
            "a library is missing",
        ),
        (
            "libcublas.so.13: cannot open shared object file: No such file",
            "error",
            "a library is missing",
        ),
        ("bash: gpu-burn: command not found", "error", "install it"),
        ("GPU Burn\nUsage: gpu-burn [OPTIONS] [TIME]", "error", "see gpu-burn -h"),
        (
            "Run length not specified in the command line.  Burning for 10 secs",
            "error",
            "without the table",
        ),
        ("sh: nvidia-smi: not found\nBurning for 10 seconds.", "error", "put it on the PATH"),
        ("sh: nvidia-smi: not found\nSegmentation fault", "error", "put it on the PATH"),
    ],
)
def test_one_complaint_alone(line: str, expected: str, why: str) -> None:
    require(gpu_burn.parse(line), expected, why)


def test_a_missing_nvidia_smi_spoils_only_the_temperatures() -> None:
    text = one(8, 16, 24).replace("60 C", "--")
    output = gpu_burn.parse(
        f"sh: 1: nvidia-smi: not found\nCould not invoke nvidia-smi, no temps available\n{text}"
    )
    require(output, "pass")
    assert "gpu_burn_temperature" not in [reading.name for reading in output.readings]


@each(
    "text, died",
    [
        (DIED, {Gpu(0): 1.0}),
        (f"No clients are alive!  Aborting\n{DIED}", {Gpu(0): 1.0}),
        ("No clients are alive!  Aborting", {Gpu(0): 1.0}),
        (f"{TENSOR}No clients are alive!  Aborting", {Gpu(0): 1.0, Gpu(1): 1.0}),
        (f"{DIED}\nCouldn't init a GPU test: Error: uncorrectable ECC error encountered", None),
        ("No clients are alive!  Aborting\nGPU 0000:3B:00.0: GPU is lost.", None),
        (TENSOR, None),
    ],
)
def test_who_died_while_nothing_speaks_of_hardware(
    text: str, died: dict[str, float] | None
) -> None:
    output = gpu_burn.parse(text)
    assert output.outcome == ("pass" if text == TENSOR else "fail")
    assert {one.name: one.values for one in output.readings}.get("gpu_burn_died") == died


@each(
    "text, why",
    [
        (HEAD + TABLE, "no GPU showed a single compare"),
        (one(8, 16), "GPU 0: 2; 3 are needed"),
        (one(8), "GPU 0: 1; 3 are needed"),
        (one(0, 0), "GPU 0: 0; 3 are needed"),
        (one(8, 16, 24, rate=0), "GPU 0 worked at a rate of 0"),
        (one(8, 16, 25), "GPU 0 do not fit the ring's length"),
        (one(8, 24, 16), "the progress falls"),
        (one(8, 0, 16, 24), "the progress falls"),
        (two((8, 8), (16, 24), (24, 16), (32, 32)), "the progress falls"),
        (
            one(8, 16, 24, rate=0).replace("\n100.0%", "\n90.0%  proc'd: 16 (520\n100.0%"),
            "GPU 0 worked at a rate of 0",
        ),
        (
            two((8, 8), (16, 16), (24, 24))
            .replace(" - 8 (52000 Gflop/s)", " - 8")
            .replace(" - 16 (52000 Gflop/s)", " - 16")
            .replace(" - 24 (52000 Gflop/s)", " - 24"),
            "are clipped, so the error counts are not known",
        ),
        (one(24, *[32] * 9), "GPU 0 stopped comparing before half"),
        (
            one(1, 2, 3, head=HEAD.replace("2560", "768").replace(" 8 it", " 1 it")),
            "the ring of GPU 0 holds 1 result",
        ),
        (one(8, 16, 24).replace("100.0%", "99.9%"), "the progress ends at 99.9 %"),
        (one(8, 16, 24).replace("33.3%", "77.7%"), "the progress falls"),
        (
            one(8, 16, 24).replace("   errors: 0   temps: 60 C ", ""),
            "are clipped, so the error counts are not known",
        ),
        (one(8, 16, 24).replace("Tested 1", "Tested 2"), "it speaks of 2 GPUs and lists 0"),
        (one(8, 16, 24).replace("GPU 0: OK", ""), "it speaks of 1 GPUs and lists none"),
        (
            one(8, 16, 24).replace("Tested 1", "Tested 0").replace("GPU 0: OK", ""),
            "it speaks of 0 GPUs",
        ),
        (one(8, 16, 24).replace("GPU 0: OK", "GPU 1: OK"), "lists 1"),
        (one(8, 16, 24).replace("GPU 0: OK", "GPU 0: OKAY"), "lists none"),
        (one(8, 16, 24) + "GPU 0: OK", "lists 0, 0"),
        (one(8, 16, 24) + TABLE, "comes twice"),
        (one(8, 16, 24).replace("Tested 1 GPUs:", ""), "without the table"),
        (
            TENSOR.replace("Tested 2", "Tested 1").replace("\tGPU 1: OK\n", ""),
            "show 2 GPUs, the table 1",
        ),
        (
            TENSOR.replace(TENSOR[TENSOR.index("100.0%") :], "") + one(200, head=""),
            "show 1 and 2 GPUs",
        ),
    ],
)
def test_what_proves_nothing(text: str, why: str) -> None:
    require(gpu_burn.parse(text), "error", why)


@each(
    "text",
    [
        one(8, 16, 24),
        one(80),  # the terminal kept the last line only: ten rings of eight
        one(8, 16, 24, head=""),
        one(8, 16, 24).replace("100.0%", "99.9%").replace("\nTested", "\n...\nTested"),
        one(8, 16, 24)
        .replace("100.0%", "99.9%")
        .replace("\nTested", "\nTerminating threads\nTested"),
        one(8, 16, 24).replace(" C \n", " C "),  # all lines of the progress in one
        one(8, 16, 24).replace(" C \n", "\u00b0C read[0]"),
        one(8, 16, 24).replace(" Gflop/s", "Gflop/s"),
        one(8, 16, 24).replace("proc'd", "proc\u2019d"),
        one(8, 16, 24).replace("24 (52000 ", "24\n(52000 "),  # folded at the terminal's width
        one(8, 16, 24).replace("\n100.0%", "\n90.0%  proc'd: 16 (520\n100.0%"),
        one(8, 16, 24).replace("\n100.0%", "\n90.0%  proc'd: ...\n100.0%"),
        one(8, 16, 24).replace(
            "\n100.0%", "\n90.0%  proc'd: 16 (52000 Gflop/s)   errors: 0   te\n100.0%"
        ),
        one(8, 16, 24, head=HEAD + HEAD),
    ],
)
def test_what_is_enough(text: str) -> None:
    output = gpu_burn.parse(text)
    assert output.outcome == "pass", why_of(output)
    assert output.reading("gpu_burn_rate") == {Gpu(0): 52.0}
    assert output.reading("gpu_burn_errors") == {Gpu(0): 0.0}


def test_a_clipped_line_at_the_end_is_read_to_its_last_letter() -> None:
    clipped = "73.6% proc'd: 28954 (20000Gflop/s) - 29800"
    require(gpu_burn.parse(clipped), "error")
    with pytest.raises(UnreadableOutput, match="unknown form"):
        gpu_burn.parse(f"{clipped}x")


def test_clipped_lines_leave_unknown_what_they_do_not_show() -> None:
    line = "73.6% proc'd: 28954 (20000Gflop/s) - 29800 (31108 Gflop/s) - 35434"
    output = gpu_burn.parse(f"{line}\n{line}\n")
    assert (output.outcome, "clipped" in why_of(output)) == ("error", True)
    assert {reading.name: dict(reading.values) for reading in output.readings} == {
        "gpu_burn_rate": {Gpu(0): 20.0, Gpu(1): 31.108}
    }


@each(
    "text",
    [
        "",
        "hello",
        "GPU 0: NVIDIA H200 (UUID: GPU-1)",
        one(8, 16, 24).replace("(52000 Gflop/s)", "(nan Gflop/s)"),
        one(8, 16, 24, errors="x"),
        one(8, 16, 24, errors="0 - 0"),
        one(8, 16, 24, errors="0.5"),
        one(8, 16, 24).replace("24 (", "9" * 400 + " ("),
        HEAD.replace("performing 8", "performing " + "9" * 400),
    ],
)
def test_unreadable(text: str) -> None:
    with pytest.raises(UnreadableOutput):
        gpu_burn.parse(text)


def at_the_end(shown: str) -> str:
    """A run of one GPU whose last progress shows this."""
    return f"{one(8, 16, 24, head='').partition(TABLE)[0]}100.0%  proc'd: {shown}\n{TABLE}"


DIED_AT_THE_END = [
    at_the_end("-1 (0 Gflop/s)   errors: 0  temps: 60 C"),
    at_the_end("16 (0 Gflop/s)   errors: 3  (DIED!)  temps: 60 C"),
]
TWO_RINGS = device(0, 2560, 8) + device(1, 1536, 4)
TWO_SIZES = device(0, 2560, 8) + device(1, 3072, 4, size=536870912)
LOST = "Couldn't init a GPU test: Error in load module (x:1): no kernel image is available"
SHOWN = ((8, 8), (16, 16), (24, 24), (32, 32))


@each(
    "text, outcome, reason",
    [
        *((TENSOR.replace(f"{gpu}: OK", f"{gpu}: FAULTY"), "fail", gpu) for gpu in GPUS),
        (one(8, 16, 24, errors="x").replace("0: OK", "0: FAULTY"), "fail", "FAULTY: GPU 0"),
        ("3.3%  proc'd: 8 (1 Gflop/s) - 0 (0 Gflop/s)   errors: 0 - 5  (WARN", "fail", "GPU 1"),
        *((text, "fail", "died on GPU 0") for text in DIED_AT_THE_END),
        (f"{LOST}\n{DIED}", "error", ""),
        *(
            (f"{TENSOR}\n{said}\n", "fail", "")
            for said in (
                *("CUDA error: GPU is lost", "cudaErrorNvlinkUncorrectable"),
                "GPU has fallen off the bus: CUDA error",
            )
        ),
        (two((8, 8), (16, 16), (24, 24), head=TWO_RINGS + device(2, 768, 1)), "pass", ""),
        (one(2, 4, 6, head=device(0, 1024, 2)), "pass", ""),
        (one(24, 24), "pass", ""),
        (two((8, 8), (16, 16), (32, 24)), "pass", "compared 3 times or more"),
        *(
            (f"{TENSOR}{line}\n", "error", "")
            for line in (
                *("Couldn't init a GPU test: Error: unknown error", "Segmentation fault"),
                *("Failure during compute: Error in C", "No CUDA devices"),
            )
        ),
        *(
            (f"Burning for 9 seconds.\nSegmentation fault{after}", "error", "'Segmentation fault'")
            for after in ("", "\nsomething else\n")
        ),
    ],
)
def test_what_a_text_is_worth(text: str, outcome: str, reason: str) -> None:
    require(gpu_burn.parse(text), outcome, reason)
    assert "put it on the PATH" not in why_of(gpu_burn.parse(text))


@each(
    "text, name, values",
    [
        *(
            (TENSOR.replace("errors: 0", f"errors: {shown}", 1), "errors", [count, 0.0])
            for shown, count in (
                ("2", 2.0),
                ("7  (WARNING!)", 7.0),
                ("-524288000  (WARNING!)", 3770679296.0),
            )
        ),
        (
            "WE FOUND 3 FAULTY ELEMENTS from GPU 1\n"
            f"WE FOUND 5 FAULTY ELEMENTS from GPU 1\n{OLDEST}",
            "errors",
            [0.0, 5.0],
        ),
        (TENSOR.replace("GPU 1: OK", "GPU 1: FAULTY"), "faulty", [0.0, 1.0]),
        # compares follow from the ring, or else from the products
        (one(16, 32, 64), "compares", [8.0]),
        (one(16, 32, 64, head=""), "compares", [4.0]),
        *((text, "compares", [3.0]) for text in DIED_AT_THE_END),
        # a ring that does not follow from the memory is not used; one GPU's is known without
        (
            TENSOR.replace("performing 8", "performing 4", 1).replace("using 2560", "using 999", 1),
            "compares",
            [19.0, 14.0],
        ),
        (one(16, 32, 64, head=HEAD.replace("2560 MB", "999 MB")), "compares", [8.0]),
        (two(*SHOWN, head=TWO_RINGS), "compares", [4.0, 8.0]),
        (two(*SHOWN, head=TWO_SIZES), "compares", [4.0, 4.0]),
        (one(8, 16, 24).replace("device 0", "device 5"), "compares", [3.0]),
        # products that may lack digits count for no rate
        (
            one(8, 16, 24)
            .replace("66.7%", "60.0%  proc'd: 16\n66.7%")
            .replace("8 (52000", "8 (1000", 1),
            "rate",
            [52.0],
        ),
    ],
)
def test_readings(text: str, name: str, values: list[float]) -> None:
    output = gpu_burn.parse(text)
    assert output.reading(f"gpu_burn_{name}") == {Gpu(at): one for at, one in enumerate(values)}
    if name in ("errors", "faulty"):
        require(output, "fail")


def test_results_of_two_sizes_have_no_ring_in_common() -> None:
    mixed = TENSOR.replace("268435456 bytes", "1 bytes", 1).replace("performing 8", "performing 4")
    require(gpu_burn.parse(mixed), "pass")


@each(
    "old, new, why",
    [
        (
            "GPU-00000001-0000-4000-8000-000000000001",
            "GPU-00000000-0000-4000-8000-000000000000",
            "twice",
        ),
        (
            "Burning for 60 seconds.",
            "Burning for 60 seconds.\nBurning for 30 seconds.",
            "burned for 60 and for 30 s",
        ),
        (
            "(23801 MB available",
            "(1024 MB available",
            "device 0 has 24217 MB of memory, 1024 MB of it available",
        ),
        ("with 24214 MB of memory", "with 12288 MB of memory", "which cannot be"),
        (
            "(23759 MB available, using 2560 MB of it), using FLOATS, using Tensor Cores",
            "(23759 MB available, using 2560 MB of it), using FLOATS",
            "some of its devices work in mode",
        ),
        (
            "FLOATS, using Tensor Cores",
            "DOUBLES",
            "uses DOUBLES and a result has the 268435456 bytes of FLOATS",
        ),
    ],
)
def test_what_contradicts_itself(old: str, new: str, why: str) -> None:
    assert old in TENSOR
    require(gpu_burn.parse(TENSOR.replace(old, new)), "error", why)


def burn_text(*steps: tuple[float, int, float]) -> str:
    """gpu-burn for ten seconds on one GPU that works and one that shows nothing; (percent,
    products, Gflop/s) of the first.
    """
    head = ["Burning for 10 seconds."]
    for gpu in (0, 1):
        head.append(
            f"Initialized device {gpu} with 24217 MB of memory (23801 MB available, using "
            "512 MB of it), using FLOATS"
        )
        head.append("Results are 268435456 bytes each, thus performing 1 iterations")
    shown = [
        (
            f"{percent:.1f}%  proc'd: {products} ({rate:.0f} Gflop/s) - 0 (0 Gflop/s)   errors: "
            "0 - 0   temps: 47 C - 46 C "
        )
        for percent, products, rate in steps
    ]
    return "\n".join(
        [*head, "\r".join(shown), "\nTested 2 GPUs:", "\tGPU 0: OK", "\tGPU 1: OK", ""]
    )


@each(
    "steps, code",
    [
        ([(50.0, 227, 50000.0), (100.0, 454, 50000.0)], None),
        ([(100.0, 454, 50000.0)], None),
        (
            [(50.0, 227, 91000.0), (100.0, 454, 91000.0)],
            "burn_rate_false",
        ),
        ([(100.0, 4540, 50000.0)], "burn_rate_false"),
        (
            [
                (10.0, 45, 50000.0),
                (20.0, 90, 50000.0),
                (30.0, 135, 50000.0),
                (40.0, 180, 50000.0),
                (100.0, 207, 5000.0),
            ],
            "burn_stood_still",
        ),
    ],
)
def test_the_rate_and_the_products(steps: list[tuple[float, int, float]], code: str | None) -> None:
    found = gpu_burn.mismatch(burn_text(*steps), mode="float", seconds=10, memory_mb=512)
    assert (None if found is None else found.code) == code


@each(
    "text, mode, seconds, memory_mb, code",
    [
        (TENSOR, "tensor", 60, 2560, "burn_rate_false"),  # the recording was put together by hand
        (TENSOR, "float", 60, 2560, "burn_mode_differs"),
        (TENSOR, "tensor", 30, 2560, "burn_time_differs"),
        (TENSOR, "tensor", 60, 4096, "burn_memory_differs"),
        ("nothing", "float", 10, 512, "burn_time_missing"),
    ],
)
def test_of_another_run(text: str, mode: Mode, seconds: int, memory_mb: int, code: str) -> None:
    found = gpu_burn.mismatch(text, mode=mode, seconds=seconds, memory_mb=memory_mb)
    assert found is not None
    assert found.code == code


@pytest.mark.timeout(60)
def test_one_wide_line_among_many_takes_no_time() -> None:
    lines = 20_000 if ALL else 5_000
    wide = "1.0%  proc'd: " + "0 - " * lines + "\n" + "1.0%  proc'd:\n" * lines
    assert gpu_burn.parse(wide).outcome == "error"
