"""What is mutated, and which tests must notice: those of each module in stages, the quickest first, the rest only where it saw nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from selftest.mutation import rules


@dataclass(frozen=True, slots=True)
class Subject:
    """One module of the product: its path, the tests that must notice in stages, its words, and which rules of mutation apply to it."""

    path: str
    stages: tuple[tuple[str, ...], ...]
    words: Mapping[str, str] = field(default_factory=lambda: rules.OUTCOMES)
    only: frozenset[str] | None = None

    @property
    def module(self) -> str:
        """The module's name, as it is imported."""
        return self.path.removesuffix(".py").replace("/", ".")


# Modules that have not been mutated whole yet, by path. All others are held: every mutation is noticed, or on the reviewed list.
NOT_YET: frozenset[str] = frozenset({
    "acceptance/judge/ceiling.py", "acceptance/judge/collected.py",
    "acceptance/judge/data_file.py", "acceptance/judge/declared.py",
    "acceptance/judge/diagnosis.py", "acceptance/judge/foreign_processes.py",
    "acceptance/judge/gpu_history.py", "acceptance/judge/gpu_settings.py",
    "acceptance/judge/gpu_work.py", "acceptance/judge/judgement.py", "acceptance/judge/limits.py",
    "acceptance/judge/machine.py", "acceptance/judge/miscompare.py", "acceptance/judge/plan.py",
    "acceptance/judge/record.py", "acceptance/judge/sensor_range.py", "acceptance/judge/shares.py",
    "acceptance/judge/steady.py", "acceptance/judge/verdict.py", "acceptance/judge/whole_run.py",
    "acceptance/observe/gpu_sample.py", "acceptance/suites/watch.py",
    "acceptance/tools/bandwidth_test.py", "acceptance/tools/cuda_device.py",
    "acceptance/tools/cuda_error.py", "acceptance/tools/device_query.py",
    "acceptance/tools/gpu_burn.py", "acceptance/tools/gpu_burn_history.py",
    "acceptance/tools/gpu_burn_table.py", "acceptance/tools/load_output.py",
    "acceptance/tools/nvbandwidth.py", "acceptance/tools/nvbandwidth_json.py",
    "acceptance/tools/nvbandwidth_matrix.py", "acceptance/tools/nvbandwidth_text.py",
    "acceptance/tools/p2p_bandwidth.py", "acceptance/tools/proof.py",
    "acceptance/tools/reading.py",
})  # fmt: skip

# Test files by module, stages apart by `|`. A bare name is tests/<folder of the module>/test_<name>.py.
_JUDGE = {
    "advice": "advice",
    "agreement": "agreement | suites/compute_suite",
    "architecture": "architecture | compute_expectation gpu_expectation sheet_limits",
    "birth": "certificate",
    "certificate": "certificate",
    "change_rules": "change_rules | inventory_drift inventory_recorded",
    "chronicle": "chronicle | reports/chronicle_terminal",
    "circumstances": "circumstances | comparison",
    "collected": "plan plan_lint | ../plugin ../selection | shipped_machines",
    "comparison": "comparison | circumstances clean_pairs",
    "ceiling": "ceiling | synthetic_machines",
    "compute_expectation": "compute_expectation | gpu_expectation sheet_limits",
    "data_file": "data_file | noise sheet limits",
    "course": "course | chronicle",
    "declared": "expectation machine_errors | machine every_limit",
    "diagnosis": "diagnosis | recorded_burns suites/together_suite",
    "direction": "direction | comparison",
    "drift": "drift | second_look past remember",
    "drift_rules": "drift_rules | remember",
    "dtype": "dtype | architecture compute_expectation sheet_limits",
    "duration": "duration | run_facts",
    "expectation": "expectation | every_limit shipped_machines",
    "fact": "fact | diagnosis recorded_burns | suites/together_suite",
    "foreign_processes": "foreign_processes | verdict",
    "gpu_expectation": "gpu_expectation | shipped_machines sheet_limits",
    "gpu_history": "gpu_history | suites/watch_suite steady laps",
    "gpu_settings": "gpu_work | suites/watch_suite",
    "gpu_work": "gpu_work | suites/watch_suite suites/thermal_suite",
    "incidents": "incidents | verdict_excused live_evidence | fold_properties",
    "inventory_drift": "inventory_drift | inventory_recorded",
    "judgement": "judgement | verdict_excused verdict verdict_strays | second_look drift | fold_properties every_limit",
    "language": "language",
    "laps": "laps | recorded_burns suites/together_suite",
    "limits": "limits | plan_lint expectation gpu_expectation",
    "looks": "looks | diagnosis | ../gpu_telemetry suites/gpu_looks",
    "machine": "machine machine_errors | expectation plan plan_lint | shipped_machines",
    "machine_seen": "machine_seen | inventory_drift inventory_recorded",
    "matching": "matching | comparison",
    "measurement": "measurement | judgement limits",
    "miscompare": "miscompare | diagnosis recorded_burns | suites/together_suite",
    "nights": "nights | remember",
    "noise": "noise | comparison clean_pairs",
    "pair_expectation": "gpu_expectation | shipped_machines synthetic_machines",
    "parts": "inventory_drift | inventory_recorded",
    "past": "past | drift remember",
    "pcie": "pcie | gpu_expectation",
    "plan": "plan plan_lint | shipped_machines ../preparation",
    "readings": "readings",
    "reasons": "reasons steady | reports/gauges reports/page_timeline suites/watch_suite",
    "record": "record | verdict incidents ../journal ../segment",
    "remember": "remember | drift past",
    "ring_pattern": "ring_pattern | diagnosis recorded_burns",
    "shares": "shares | recorded_burns suites/together_suite",
    "run_facts": "run_facts | comparison",
    "second_look": "second_look | history/night",
    "sheet": "sheet | sheet_limits architecture gpu_expectation",
    "shown": "shown | run_facts circumstances",
    "sensor_range": "gpu_history | suites/watch_suite",
    "siblings": "siblings | steady",
    "spans": "spans | live_evidence verdict_strays verdict",
    "steady": "steady | suites/thermal_suite",
    "toml_place": "toml_place | machine_errors",
    "verdict": "verdict verdict_strays verdict_excused verdict_postponed | second_look certificate incidents live_evidence "
    "| fold_properties",
    "vram_pattern": "vram_pattern | diagnosis recorded_burns",
    "whole_run": "verdict verdict_strays verdict_postponed | second_look live_evidence | fold_properties",
    "words": "words",
}
_TOOLS = {
    "bandwidth_table": "bandwidth_test",
    "bandwidth_test": "bandwidth_test | log_prefix recordings",
    "burn_load_output": "burn_load_output | suites/together_suite ../burn_loads",
    "cpuburn": "cpuburn",
    "cuda_device": "device_query | log_prefix recordings",
    "cuda_error": "cuda_error | nvbandwidth p2p_bandwidth",
    "cuda_trouble": "cuda_trouble | device_query gpu_burn bandwidth_test",
    "device_query": "device_query | log_prefix recordings",
    "dmidecode": "dmidecode | observe/draft",
    "gpu_burn": "gpu_burn | ../gpu_tools log_prefix recordings",
    "gpu_burn_command": "gpu_burn | ../gpu_tools",
    "gpu_burn_history": "gpu_burn | recordings",
    "gpu_burn_progress": "gpu_burn | recordings",
    "gpu_burn_table": "gpu_burn | recordings",
    "gpu_burn_trouble": "gpu_burn | recordings cuda_trouble",
    "gpu_load_output": "gpu_load_output",
    "load_output": "load_output | gpu_load_output burn_load_output",
    "log_prefix": "log_prefix | gpu_burn",
    "nvbandwidth": "nvbandwidth | log_prefix recordings",
    "nvbandwidth_json": "nvbandwidth | recordings",
    "nvbandwidth_matrix": "nvbandwidth | recordings",
    "nvbandwidth_text": "nvbandwidth | recordings",
    "p2p_access": "p2p_bandwidth | recordings",
    "p2p_bandwidth": "p2p_bandwidth | log_prefix recordings",
    "proof": "proof | p2p_bandwidth",
    "reading": "reading | proof log_prefix topo",
    "slot_names": "dmidecode",
    "smart_health": "smartctl | observe/storage",
    "smartctl": "smartctl | observe/storage",
    "stress_ng": "stress_ng | recordings",
    "stress_ng_command": "stress_ng",
    "stress_ng_trouble": "stress_ng | recordings",
    "stressapptest": "stressapptest | recordings",
    "topo": "topo | log_prefix recordings",
    "topo_p2p": "topo | recordings",
    "topo_table": "topo | recordings",
}
# The tables and rules that give what a machine tells of itself its weight.
_OBSERVE = {
    "event": "kernel_log | kernel_events",
    "gpu_sample": "gpu_sample",
    "nvidia_events": "kernel_records | kernel_events | kernel_log",
    "driver_events": "kernel_records | kernel_events | kernel_log",
    "memory_events": "kernel_records | kernel_events | kernel_log",
    "aer_events": "kernel_records | kernel_events | kernel_log",
    "gpu_events": "gpu_events",
}
# What decides pass, fail or error in a parser: what it refuses and what it compares. How it cuts a line apart is tested by recordings.
# In the judge everything; but what stands in its tables are names and words, which exchanging would only shuffle.
_DECISIONS = frozenset(rules.RULES) - {"exchanged"}
# The tables that say which bit of the clock event reasons is what.
_BITS = frozenset({"shortened", "exchanged"})
_REFUSALS = frozenset({"compared", "joined", "negated", "forced", "silenced", "spoken", "chosen"})


def _stages(folder: str, tests: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_file(folder, name) for name in stage.split()) for stage in tests.split("|"))


def _file(folder: str, name: str) -> str:
    """`machine` of judge, `suites/watch_suite`, `../plugin`: a file under tests/."""
    if name.startswith("../"):
        return f"tests/test_{name[3:]}.py"
    if "/" in name:
        folder, name = name.split("/")
    return f"tests/{folder}/test_{name}.py"


def _of(
    folder: str, table: Mapping[str, str], words: Mapping[str, str], only: frozenset[str] | None
) -> tuple[Subject, ...]:
    return tuple(
        Subject(f"acceptance/{folder}/{name}.py", _stages(folder, tests), words, only) for name, tests in table.items()
    )


SUBJECTS: tuple[Subject, ...] = (
    *_of("judge", _JUDGE, rules.OUTCOMES, _DECISIONS),
    *_of("tools", _TOOLS, rules.OUTCOMES, _REFUSALS),
    *_of("observe", _OBSERVE, rules.SEVERITIES, None),
    Subject("acceptance/suites/watch.py", (("tests/suites/test_watch_suite.py",),), rules.OUTCOMES, _BITS),
)
