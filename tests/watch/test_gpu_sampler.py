from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_nvml import LOST, UNKNOWN, FakeNvml, Refusal
from runs import machine_root, until
from worded import worded

from acceptance.core import parts
from acceptance.core.evidence import Refused, Sample
from acceptance.core.message import Message
from acceptance.core.parts import Gpu, parse
from acceptance.core.record import Body, Event, Note
from acceptance.journal import clock, reader, segment
from acceptance.observe import nvml
from acceptance.watch import gpu_sampler, targets
from acceptance.watch.event_log import EventLog
from acceptance.watch.gpu_sampler import GpuWatch, LinkWatch, SamplerContext
from acceptance.watch.gpu_users import GpuUsers
from acceptance.watch.targets import WatchTarget
from acceptance.wording.errors import WordedError

ADDRESSES = ("0000:01:00.0", "0000:02:00.0")
BOTH = tuple(
    WatchTarget(Gpu(index), f"GPU-{index}", address) for index, address in enumerate(ADDRESSES)
)
COOL: dict[Any, Any] = {"nvmlDeviceGetTemperatureV": 40, "nvmlDeviceGetSupportedEventTypes": 8}


class Watching:
    """A watch over two GPUs in a folder of its own, that looks when it is told to, at a clock
    that is set by hand.
    """

    def __init__(
        self,
        folder: Path,
        answers: dict[Any, Any] | None = None,
        fields: dict[Any, Any] | None = None,
        *,
        kernel_log: bool = True,
        throughput: bool = False,
    ) -> None:
        self.over = threading.Event()
        self.run_dir, self.root = folder, machine_root(folder / "root")
        self.nvml = FakeNvml(2, {**COOL, **(answers or {})}, fields)
        self.samples = segment.Writer(folder / reader.GPU_TELEMETRY, self.root)
        self.events = EventLog(folder / gpu_sampler.EVENTS, self.root)
        found = targets.attach(self.nvml, BOTH)
        users = GpuUsers(self.nvml, "run-1", self.root, self.events.put)
        links = LinkWatch(self.nvml, found, self.over, 0.01) if throughput else None
        self.watch = GpuWatch(
            self.nvml,
            found,
            self.samples,
            self.events,
            kernel_log=kernel_log,
            users=users,
            links=links,
        )

    def look(self, *moments: float) -> Watching:
        """Look once, or at these moments."""
        for moment in moments or (clock.boot_s(),):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(clock, "boot_s", lambda moment=moment: moment)
                self.watch.sample()
        return self

    def sampled(self) -> list[tuple[str | None, dict[str, float]]]:
        return [
            (body.component, body.values)
            for body in self._bodies(reader.GPU_TELEMETRY)
            if isinstance(body, Sample)
        ]

    def told(self) -> list[Body]:
        return self._bodies(gpu_sampler.EVENTS)

    def lost(self) -> list[str]:
        return [
            str(body.component)
            for body in self.told()
            if isinstance(body, Event) and body.kind == "gpu-lost"
        ]

    def _bodies(self, name: str) -> list[Body]:
        return [entry.body for entry in segment.read_segment(self.run_dir / name).entries]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def at(moment: float) -> None:
        monkeypatch.setattr(clock, "boot_s", lambda: moment)

    at(1000.0)
    return at


def test_every_gpu_is_sampled_under_its_name(tmp_path: Path) -> None:
    watching = Watching(tmp_path)
    assert watching.watch.sample()
    assert watching.sampled() == [
        (Gpu(0), {"temperature_c": 40.0}),
        (Gpu(1), {"temperature_c": 40.0}),
    ]


PCIE: dict[Any, Any] = {"nvmlDeviceGetPcieThroughput": {0: 300_000, 1: 55_100_000}}
RATES = {"pcie_tx_gb_s": 0.3, "pcie_rx_gb_s": 55.1}


def test_what_links_move_is_sampled_where_somebody_watches(tmp_path: Path) -> None:
    watching = Watching(tmp_path, PCIE, throughput=True)

    def seen() -> bool:
        watching.watch.sample()
        rated = [name for name, values in watching.sampled() if RATES.items() <= values.items()]
        return {Gpu(0), Gpu(1)} <= set(rated)

    until(seen, "rates of both GPUs")
    watching.over.set()


def test_nobody_is_asked_what_links_move_otherwise(tmp_path: Path) -> None:
    asked: list[object] = []
    watching = Watching(
        tmp_path, {"nvmlDeviceGetPcieThroughput": lambda *_: asked.append(1)}
    ).look()
    assert watching.sampled()[0] == (Gpu(0), {"temperature_c": 40.0})
    assert not asked


def test_a_driver_that_hangs_over_its_links_holds_no_sample(tmp_path: Path) -> None:
    hangs = threading.Event()
    watching = Watching(
        tmp_path, {"nvmlDeviceGetPcieThroughput": lambda *_: hangs.wait(60.0)}, throughput=True
    )
    assert watching.watch.sample()
    assert len(watching.sampled()) == 2
    watching.over.set()
    hangs.set()


def test_counters_once_a_second(tmp_path: Path, now: Callable[[float], None]) -> None:
    watching = Watching(tmp_path, fields={3: 7}).look(1000.0, 1000.2, 1000.9, 1001.0, 1001.2)
    assert ["ecc_corrected" in values for name, values in watching.sampled() if name == Gpu(1)] == [
        *(True, False, False),
        *(True, False),
    ]


def test_the_disk_is_told_once_a_second(
    tmp_path: Path, now: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = Watching(tmp_path)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    watching.look(1000.0, 1000.5, 1001.0)
    assert len(synced) == 2


def test_after_an_hour_each_gpu_is_thinned_by_itself(
    tmp_path: Path, now: Callable[[float], None]
) -> None:
    watching = Watching(tmp_path)
    for second in range(3600, 3616):
        now(1000.0 + second)
        watching.nvml.answers["nvmlDeviceGetTemperatureV", 1] = (
            40 + second % 2
        )  # gpu0 stays at 40: told once
        assert watching.watch.sample()
    watching.watch.end()
    kept = [entry.body for entry in segment.read_segment(tmp_path / reader.GPU_TELEMETRY).entries]
    samples = [body for body in kept if isinstance(body, Sample)]
    assert [(body.component, body.span_s, body.high) for body in samples] == [
        (Gpu(0), 10.0, {}),
        (Gpu(1), 10.0, {"temperature_c": 41.0}),
        (Gpu(0), 4.0, {}),
        (Gpu(1), 4.0, {"temperature_c": 41.0}),
    ]
    assert samples[0].values["temperature_c"] == 40.0


# --- events ---


@pytest.mark.parametrize(
    ("code", "severity", "word"),
    [(79, "fatal", "bus"), (13, "warning", ""), (9999, "error", "table")],
)
def test_xids_are_events(
    tmp_path: Path, now: Callable[[float], None], code: int, severity: str, word: str
) -> None:
    watching = Watching(tmp_path)
    watching.nvml.tell_xid(1, code)
    watching.watch.sample()
    (event,) = watching.told()
    assert isinstance(event, Event)
    assert (event.kind, event.code, event.component, event.severity) == (
        "xid",
        code,
        parse(ADDRESSES[1]),
        severity,
    )
    assert (event.source, event.boot_s, event.text) == (
        "nvml",
        1000.0,
        f"NVML: Xid {code} on {ADDRESSES[1]}",
    )
    assert word in event.meaning


def test_an_xid_of_a_gpu_that_nobody_knows(tmp_path: Path) -> None:
    watching = Watching(tmp_path)
    watching.nvml.tell_xid(5, 79)
    watching.watch.end()
    assert [(body.component, body.text) for body in watching.told() if isinstance(body, Event)] == [
        (None, "NVML: Xid 79")
    ]


def test_a_gpu_that_tells_no_events_is_noted_once(tmp_path: Path) -> None:
    watching = (
        Watching(tmp_path, {("register", 0): Refusal(UNKNOWN, "Unknown Error")}).look().look()
    )
    said = "NVML tells no Xid events of gpu0 (Unknown Error): those of the kernel log count alone"
    assert worded(watching.told()) == [Note(said)]


@pytest.mark.parametrize("supported", [Refusal(3), 0x17])
def test_where_nobody_listens_for_xids_the_run_must_not_pass(
    tmp_path: Path, supported: Any
) -> None:
    refused = {("nvmlDeviceGetSupportedEventTypes", 1): supported}
    watching = Watching(tmp_path, refused, kernel_log=False).look().look()
    (note,) = watching.told()
    assert isinstance(note, Note)
    assert note.trouble
    assert worded(note.text) == (
        "nobody listened for Xid errors of gpu1: run as root, or `sudo sysctl "
        "kernel.dmesg_restrict=0`; "
        "NVML tells no Xid events of gpu1 (it offers none)"
    )
    watching.nvml.tell_xid(0, 79)
    watching.watch.sample()
    assert isinstance(watching.told()[-1], Event), "the other one is heard"


def test_where_nvml_tells_its_xids_the_kernel_log_may_be_closed(tmp_path: Path) -> None:
    assert Watching(tmp_path, kernel_log=False).look().told() == []


@pytest.mark.parametrize(
    ("code", "action"), [(LOST, "Power the machine off"), (16, "Reset the GPU"), (28, "Power")]
)
def test_a_lost_gpu_is_told_once_and_sampled_no_more(
    tmp_path: Path, code: int, action: str
) -> None:
    watching = Watching(tmp_path).look()
    watching.nvml.answers["nvmlDeviceGetTemperatureV", 0] = Refusal(code, "GPU is lost")
    watching.nvml.tell_xid(0, 79)
    assert watching.watch.sample()
    assert watching.watch.sample()
    assert [name for name, _ in watching.sampled()] == [Gpu(0), Gpu(1), Gpu(1), Gpu(1)]
    assert watching.lost() == [ADDRESSES[0]]
    xid, lost = watching.told()
    assert isinstance(xid, Event)
    assert isinstance(lost, Event)
    assert (str(xid.component), lost.text) == (ADDRESSES[0], "NVML says of gpu0: GPU is lost")
    assert (lost.severity, lost.source, lost.hardware, lost.action.startswith(action)) == (
        "fatal",
        "nvml",
        True,
        True,
    )
    assert watching.nvml.registered == [1]


def test_when_every_gpu_is_lost_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    watching = Watching(tmp_path)
    watching.nvml.answers["nvmlDeviceGetTemperatureV"] = Refusal(LOST)
    assert not watching.watch.sample()
    assert watching.watch.sample()
    assert watching.lost() == list(ADDRESSES)


def test_a_gpu_that_was_lost_before(tmp_path: Path) -> None:
    watching = Watching(tmp_path, {("nvmlDeviceGetUUID", 1): Refusal(LOST)}).look()
    assert (watching.lost(), [name for name, _ in watching.sampled()]) == ([ADDRESSES[1]], [Gpu(0)])


def test_a_gpu_that_refuses_everything_is_lost_after_a_while(
    tmp_path: Path, now: Callable[[float], None]
) -> None:
    watching = Watching(tmp_path)
    watching.nvml.answers["nvmlDeviceGetTemperatureV", 0] = Refusal(UNKNOWN, "Unknown Error")
    now(1002.9)
    assert watching.watch.sample()
    assert watching.lost() == []
    now(1003.0)
    watching.watch.sample()
    assert watching.lost() == [ADDRESSES[0]]


def test_a_refusal_that_passes_is_none(tmp_path: Path, now: Callable[[float], None]) -> None:
    watching = Watching(tmp_path)
    for moment, answer in (
        (1002.0, Refusal(UNKNOWN)),
        (1002.5, 41),
        (1004.0, Refusal(UNKNOWN)),
        (1005.4, 42),
    ):
        now(moment)
        watching.nvml.answers["nvmlDeviceGetTemperatureV", 0] = answer
        watching.watch.sample()
    assert watching.lost() == []
    assert [values for name, values in watching.sampled() if name == Gpu(0)] == [
        {"temperature_c": 41.0},
        {"temperature_c": 42.0},
    ]


def test_a_reading_that_fails_to_answer_is_journalled_once(tmp_path: Path) -> None:
    failing = {("nvmlDeviceGetPowerUsage", 0): Refusal(UNKNOWN, "Unknown Error")}
    watching = Watching(tmp_path, answers=failing)
    watching.look().look().look()
    found = [one for one in watching._bodies(reader.GPU_TELEMETRY) if isinstance(one, Refused)]
    assert found == [Refused(Gpu(0), {"power_w": "Unknown Error"})]


# --- what is watched ---


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (WatchTarget(Gpu(0), "GPU-1", ADDRESSES[1]), "the same name gpu0"),
        (WatchTarget(Gpu(1), "GPU-0", ADDRESSES[1]), "the same uuid GPU-0"),
        (WatchTarget(Gpu(1), "GPU-1", ADDRESSES[0]), f"the same pci_address {ADDRESSES[0]}"),
        (
            WatchTarget(Gpu(1), "GPU-7", ADDRESSES[1]),
            f"gpu1: at {ADDRESSES[1]} is GPU-1 and not GPU-7",
        ),
    ],
)
def test_gpus_that_cannot_be_told_apart_are_not_watched(second: WatchTarget, told: str) -> None:
    with pytest.raises(WordedError, match=told):
        targets.attach(FakeNvml(2), (BOTH[0], second))


def test_a_gpu_whose_uuid_nobody_knows() -> None:
    unknown = tuple(msgspec.structs.replace(gpu, uuid=None) for gpu in BOTH)
    assert len(targets.attach(FakeNvml(2), unknown)) == 2
    assert (
        targets.attach(FakeNvml(2, {"nvmlDeviceGetUUID": Refusal(3)}), BOTH)[0].sampler is not None
    )


def test_a_gpu_that_nvml_refuses() -> None:
    with pytest.raises(
        WordedError, match=r"gpu1 \(0000:02:00.0\) cannot be watched: NVML says: Unknown Error"
    ):
        targets.attach(
            FakeNvml(2, {("nvmlDeviceGetUUID", 1): Refusal(UNKNOWN, "Unknown Error")}), BOTH
        )


# --- the program ---


def context(folder: Path, gpus: tuple[WatchTarget, ...] = BOTH) -> Path:
    path = folder / "context.json"
    root = machine_root(folder / "root")
    path.write_bytes(
        msgspec.json.encode(
            SamplerContext(str(folder), str(root), gpus, kernel_log=True, period_s=0.01),
            enc_hook=parts.encode,
        )
    )
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_watches_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / reader.GPU_TELEMETRY
    touched: list[int] = []

    def end() -> None:
        try:
            until(
                lambda: path.exists() and len(segment.read_segment(path).entries) > 8,
                "samples come",
            )
            touched.append(path.stat().st_mtime_ns)
        finally:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    thread = threading.Thread(target=end)
    thread.start()
    assert gpu_sampler.main([str(context(tmp_path))], FakeNvml(2, COOL)) == 0
    thread.join()
    assert touched
    assert signal.getsignal(number) is before
    assert {
        entry.body.component
        for entry in segment.read_segment(path).entries
        if isinstance(entry.body, Sample)
    } == {
        Gpu(0),
        Gpu(1),
    }


def test_the_file_is_touched_only_while_a_gpu_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    looks = iter([True, False, False])
    touched: list[object] = []

    def look(_watch: GpuWatch) -> bool:
        answered = next(looks, None)
        if answered is None:
            over.set()
        return bool(answered)

    monkeypatch.setattr(GpuWatch, "sample", look)
    monkeypatch.setattr(os, "utime", touched.append)
    gpu_sampler.run(
        FakeNvml(2),
        msgspec.json.decode(
            context(tmp_path).read_bytes(), type=SamplerContext, dec_hook=parts.decode
        ),
        over,
    )
    assert touched == [tmp_path / reader.GPU_TELEMETRY]


def test_a_library_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        gpu_sampler.main(
            [str(context(tmp_path))], FakeNvml(2, {"nvmlInit": Refusal(9, "Driver Not Loaded")})
        )
        == 1
    )
    said = capsys.readouterr()
    assert said.err == "NVML says: Driver Not Loaded\n"
    why = Message("nvml_says", {"error": "Driver Not Loaded"})
    assert msgspec.json.decode(said.out, type=Message) == why
    assert not (tmp_path / reader.GPU_TELEMETRY).exists()


def test_what_keeps_it_from_watching_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu_sampler.main([str(context(tmp_path, (BOTH[0], BOTH[0])))], FakeNvml(2)) == 1
    assert "the same name gpu0" in capsys.readouterr().err
    (tmp_path / reader.GPU_TELEMETRY).write_text("")
    assert gpu_sampler.main([str(context(tmp_path))], FakeNvml(2)) == 1
    assert "cannot be written (File exists)" in capsys.readouterr().err


def test_without_an_argument_it_is_the_binding_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        nvml, "binding", lambda: FakeNvml(2, {"nvmlInit": Refusal(12, "not found")})
    )
    assert gpu_sampler.main([str(context(tmp_path))]) == 1
    assert "not found" in capsys.readouterr().err
