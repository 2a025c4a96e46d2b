"""What is mutated, and which tests must notice: those of each module in stages, the quickest
first, the rest only where it saw nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from selftest.mutation import rules


@dataclass(frozen=True, slots=True)
class Subject:
    """One module of the product: its path, the tests that must notice in stages, its words, and
    which rules of mutation apply to it.
    """

    path: str
    stages: tuple[tuple[str, ...], ...]
    words: Mapping[str, str] = field(default_factory=lambda: rules.OUTCOMES)
    only: frozenset[str] | None = None

    @property
    def module(self) -> str:
        """The module's name, as it is imported."""
        return self.path.removesuffix(".py").replace("/", ".")


# Modules that have not been mutated whole yet, by path. All others are held: every mutation is
# noticed, or reviewed.
NOT_YET: frozenset[str] = frozenset({
    "acceptance/core/bounds.py", "acceptance/core/plan.py", "acceptance/core/parts.py",
    "acceptance/core/finding.py", "acceptance/core/record.py", "acceptance/core/disk_error.py",
    "acceptance/core/fold.py", "acceptance/core/foreign_process.py", "acceptance/core/verdict.py",
    "acceptance/core/load_xid.py", "acceptance/core/message.py", "acceptance/core/plain_text.py",
    "acceptance/core/exit_code.py", "acceptance/core/nearest.py", "acceptance/core/regular_file.py",
    "acceptance/core/strict.py", "acceptance/core/version.py", "acceptance/diagnosis/causes.py",
    "acceptance/diagnosis/note_rules.py", "acceptance/diagnosis/symptom.py",
    "acceptance/diagnosis/wrong_result.py", "acceptance/diagnosis/steady_state.py",
    "acceptance/diagnosis/diagnosis.py", "acceptance/diagnosis/gpu_history.py",
    "acceptance/diagnosis/gpu_work.py", "acceptance/diagnosis/gravity.py",
    "acceptance/expect/sheet_figures.py", "acceptance/expect/ceiling.py",
    "acceptance/expect/collected.py", "acceptance/expect/components.py",
    "acceptance/expect/declared_inventory.py", "acceptance/expect/limit_book.py",
    "acceptance/expect/gpu_limits.py", "acceptance/expect/gpu_names.py",
    "acceptance/expect/loosest.py", "acceptance/expect/plan_builder.py",
    "acceptance/expect/limit_version.py", "acceptance/expect/site_families.py",
    "acceptance/expect/site_sheets.py", "acceptance/expect/sensor_range.py",
    "acceptance/loads/miscompare.py", "acceptance/fleet/common_cause.py",
    "acceptance/fleet/comparison.py", "acceptance/fleet/due.py", "acceptance/fleet/ending.py",
    "acceptance/fleet/night.py", "acceptance/fleet/outliers.py", "acceptance/fleet/pair_tests.py",
    "acceptance/fleet/verdicts.py", "acceptance/journal/seal.py", "acceptance/machine/channels.py",
    "acceptance/machine/machine_file.py", "acceptance/observe/gpu_sample.py",
    "acceptance/resources.py", "acceptance/suites/watch.py", "acceptance/tools/bandwidth_test.py",
    "acceptance/tools/proof.py", "acceptance/tools/device_query.py", "acceptance/tools/gpu_burn.py",
    "acceptance/tools/nvbandwidth.py", "acceptance/tools/p2p_bandwidth.py",
    "acceptance/tools/read/kernel_log.py", "acceptance/tools/read/nccl_log.py",
    "acceptance/tools/read/nccl_tests.py", "acceptance/tools/read/nccl_warnings.py",
    "acceptance/tools/read/sheet.py", "acceptance/tools/reading.py",
})  # fmt: skip

# Test files by room and module, stages apart by `|`. A bare name is tests/<room>/test_<name>.py.
# What decides: everything is mutated.
_DECIDE: dict[str, dict[str, str]] = {
    "baseline": {
        "changes": "changes change_rules | inventory_recorded",
        "facts": (
            "facts matching machine/observation | history/comparison changes inventory_recorded"
        ),
    },
    "core": {
        "advice": "expect/site_families | reports/advice diagnosis/causes",
        "parts": "component",
        "clock_reasons": (
            "clock_reasons diagnosis/steady_state | reports/gauges "
            "reports/page_timeline "
            "suites/watch_suite"
        ),
        "bounds": "past | history/reference_builder",
        "disk_error": "disk_error | tools/fio tools/stress_ng tools/stressapptest",
        "dtype": "dtype | expect/architecture expect/expect_compute expect/limit_lint expect/sheet",
        "evidence": "record | journal/segment",
        "finding": (
            "fold criterion machine/machine_file | judgement verdict_excused verdict_strays"
            " expect/declaration expect/plan_builder | fold_properties expect/every_limit"
            " machine/shipped_machines"
        ),
        "fold": (
            "fold verdict_strays verdict_excused verdict_postponed | repeat history/baseline"
            " incident session/live_evidence | fold_properties"
        ),
        "foreign_process": "foreign_process | fold",
        "grouping": "grouping",
        "incident": "incident | verdict_excused session/live_evidence | fold_properties",
        "language": "language",
        "limit": "limit | judgement expect/limits",
        "load_xid": "load_xid | side_by_side",
        "machine_facts": "baseline/change_rules | baseline/changes history/baseline",
        "message": "wording/words session/plugin | fold",
        "nearest": "nearest | machine/machine_file cli/command_line",
        "notes": (
            "spans foreign_process load_xid power_steps | session/live_evidence run/unfinished"
        ),
        "past": "past drift | repeat history/reference_builder",
        "plan": (
            "expect/plan_builder site expect/site_sheets | machine/shipped_machines"
            " run/planning session/plugin session/collection machine/gpu_selection"
            " expect/site_families run/site_sheet_runs"
        ),
        "record": (
            "record fleet/fleet_ending machine/declared_facts | fold incident journal/reader"
            " journal/segment"
        ),
        "regular_file": "regular_file",
        "repeat": "repeat | history/night",
        "exit_code": "cli/exit_codes",
        "event_finding": "side_by_side incident load_xid | verdict_excused | fold_properties",
        "version": "version",
        "spans": "spans side_by_side | history/compared_run"
        " | session/live_evidence verdict_strays fold",
        "strict": "machine/machine_file",
        "verdict": (
            "fold verdict_strays verdict_excused verdict_postponed judgement | repeat"
            " history/baseline incident session/live_evidence | fold_properties drift |"
            " expect/every_limit"
        ),
    },
    "diagnosis": {
        "agreement": "agreement | suites/compute_suite",
        "causes": "causes gpu_causes host_causes | reports/explanation",
        "digest_agreement": "suites/train_digests",
        "diagnosis": "diagnosis | recorded_burns suites/together_suite",
        "gpu_history": "gpu_history | suites/watch_suite steady_state laps",
        "gpu_work": "gpu_work | suites/watch_suite suites/thermal_suite",
        "gravity": "gravity | reports/headline",
        "laps": "laps | recorded_burns suites/together_suite",
        "note_rules": "causes gpu_causes",
        "peer_paths": "peer_paths | suites/peers_suite",
        "ring_pattern": "ring_pattern | diagnosis recorded_burns",
        "series": "core/limit | core/judgement expect/limits",
        "signature": (
            "signature vram_pattern | diagnosis recorded_burns | watch/telemetry_reader"
            " suites/gpu_preconditions"
        ),
        "steady_state": (
            "steady_state time_weight suites/connector_suite | suites/thermal_suite"
            " recorded_burns suites/together_suite"
        ),
        "symptom": "symptom symptom_rules",
        "transports": "transports slow_paths",
        "wrong_result": "wrong_result",
    },
    "loads": {
        "collective/contract": "collective_contract contract"
        " | fleet/fleet_pair_tests suites/collectives",
        "contract": "contract vram_contract | session/loads",
        "cpu/contract": "cpu_contract contract",
        "burn/contract": "burn_contract asks contract",
        "copy/contract": "copy_contract contract",
        "gemm/contract": "contract asks",
        "storage/contract": "storage_contract asks contract | storage_loads reports/page_storage",
        "pulse/contract": "pulse_contract asks contract",
        "vram/contract": "vram_contract asks contract",
        "miscompare": "miscompare counts | diagnosis/diagnosis diagnosis/recorded_burns"
        " | suites/together_suite",
        "train/digest_contract": "digest_contract contract | suites/train_digests",
        "train/parallel_contract": "parallel_contract contract | suites/train_parallel",
        "train/digest_log": "train_digest_log | suites/train_digests",
        "train/layer_contract": "layer_contract layer_worker contract"
        " | tools/train_recordings suites/train_layers",
        "train/proof": "layer_contract step_contract contract",
        "train/step_contract": "step_contract contract | tools/train_recordings suites/train_steps",
    },
    "expect": {
        "architecture": "architecture | expect_compute expect_gpu limit_lint sheet",
        "ceiling": "ceiling | machine/synthetic_machines training_limits",
        "collected": "plan_builder | session/collection session/plugin",
        "components": "components",
        "compute": "expect_compute training_limits | expect_gpu sheet",
        "declaration": "declaration | every_limit machine/shipped_machines",
        "declared_inventory": "declared_inventory | machine/profiles_can_pass",
        "disk_sheet": "disk_sheet | storage_limits",
        "gpu": (
            "expect_gpu collective_limits parallel_limits | machine/shipped_machines sheet"
            " machine/synthetic_machines"
        ),
        "gpu_limits": "gpu_limits",
        "gpu_names": "gpu_names | run/planning",
        "limit_book": "limits derived | plan_builder declaration expect_gpu ceiling",
        "limit_version": "limit_version",
        "loosest": "loosest | every_limit plan_builder",
        "measurements": "measurements",
        "plan_builder": "plan_builder | session/plugin machine/gpu_selection run/planning"
        " | machine/shipped_machines",
        "sensor_range": "diagnosis/gpu_history | suites/watch_suite",
        "sheet": "sheet core/grammar | limit_lint architecture expect_gpu",
        "sheet_figures": "sheet_figures | tools/read_sheet sheet",
        "site_families": "site_families",
        "site_sheets": "site_sheets | run/site_sheet_runs",
        "storage_limits": "storage_limits | disk_sheet",
    },
    "fleet": {
        "common_cause": "fleet_causes | fleet_collect",
        "comparison": "fleet_comparison | fleet_collect fleet_collect_cli",
        "due": "fleet_collect | fleet_submit",
        "ending": "fleet_ending | fleet_accept",
        "identity": "fleet_identity | fleet_collect",
        "night": "fleet_collect | fleet_collect_cli fleet_submit",
        "outliers": "fleet_outliers | fleet_comparison",
        "pair_tests": "fleet_pairs",
        "verdicts": "fleet_collect | fleet_collect_cli",
    },
    "history": {
        "baseline": "baseline",
        "comparison": "comparison compared_run | baseline/facts clean_pairs",
        "durations": "durations | run/recall",
        "noise": "noise drift_rules | comparison clean_pairs reference_builder",
        "queries": "queries | run/recall",
        "reference_builder": "reference_builder | core/drift core/past",
        "trend": "trend | reports/nights_report",
    },
    "journal": {
        "packed_samples": "packed_samples",
        "seal": "seal | run/supervisor run/unfinished",
    },
    "machine": {
        "channels": "channels | run/planning",
        "declared_disks": "declared_facts | suites/suites",
        "disk_link": "disk_link",
        "machine_file": "expect/declaration machine_file"
        " | expect/every_limit expect/plan_builder"
        " | shipped_machines",
        "observation": "observation | history/compared_run baseline/facts",
        "pcie": "disk_link | expect/expect_gpu",
        "scratch_place": "scratch_place | run/scratch",
        "thresholds": "thresholds",
        "toml_place": "toml_place | machine_file",
    },
    "reports": {
        "advice": "advice",
    },
}
# Parsers: what they refuse and what they compare is mutated. How a line is cut apart is tested by
# recordings.
_READ: dict[str, dict[str, str]] = {
    "core": {
        "plain_text": "tools/reading | tools/proof tools/log_prefix tools/topo",
    },
    "observe": {
        "block": "block",
        "disk_counts": "disk_counts",
        "dmi": "dmi | draft",
        "filesystem": "filesystem",
        "raid": "raid | suites/storage_suite",
        "self_test": "self_test | suites/storage_suite",
        "smart": "smart disk_counts | storage",
    },
    "tools": {
        "bandwidth_test": "bandwidth_test | every_parser log_prefix recordings",
        "cpuburn": "cpuburn",
        "device_query": "device_query | every_parser log_prefix recordings",
        "fio": "fio core/disk_error | every_parser recordings",
        "gpu_burn": "gpu_burn | every_parser suites/gpu_tools log_prefix recordings cuda_error",
        "nvbandwidth": "nvbandwidth | every_parser log_prefix recordings",
        "p2p_bandwidth": "p2p_bandwidth | every_parser recordings log_prefix",
        "proof": (
            "proof cuda_error | p2p_bandwidth nvbandwidth device_query gpu_burn bandwidth_test"
        ),
        "read/kernel_log": "observe/kernel_log | observe/kernel_log_variants",
        "read/log_prefix": "log_prefix | gpu_burn",
        "read/nccl_log": "nccl_log",
        "read/nccl_tests": "nccl_tests | recordings",
        "read/nccl_transports": "nccl_transports nccl_warnings",
        "read/nccl_warnings": "nccl_warnings | nccl_transports nccl_tests",
        "read/sheet": "read_sheet",
        "read/topo": "topo | every_parser log_prefix recordings",
        "reading": "reading | proof log_prefix topo",
        "stress_ng": "stress_ng core/disk_error | every_parser recordings suites/host_tools",
        "stressapptest": "stressapptest core/disk_error"
        " | every_parser recordings suites/host_tools",
    },
}
# The tables and rules that give what a machine tells of itself its weight.
_WEIGH: dict[str, dict[str, str]] = {
    "observe": {
        "aer_events": "kernel_records | kernel_events | kernel_log",
        "driver_events": "kernel_records | kernel_events | kernel_log",
        "event": "kernel_log | kernel_events tested_parts",
        "gpu_events": "gpu_events",
        "gpu_sample": "gpu_sample",
        "memory_events": "kernel_records | kernel_events | kernel_log",
        "part_names": "part_names",
        "unknown_line": "unknown_line | watch/unknown_lines",
    },
}
# What stands in tables are names and words, which exchanging would only shuffle.
_DECISIONS = frozenset(rules.RULES) - {"exchanged"}
# The tables that say which bit of the clock event reasons is what.
_BITS = frozenset({"shortened", "exchanged"})
_REFUSALS = frozenset({"compared", "joined", "negated", "forced", "silenced", "spoken", "chosen"})


def _file(room: str, name: str) -> str:
    """The file of `limit` (of the module's own room) or `suites/watch_suite`."""
    folder, _, own = name.rpartition("/")
    return f"tests/{folder or room}/test_{own}.py"


def _subjects(
    table: Mapping[str, Mapping[str, str]], words: Mapping[str, str], only: frozenset[str] | None
) -> tuple[Subject, ...]:
    return tuple(
        Subject(
            f"acceptance/{room}/{name}.py",
            tuple(tuple(_file(room, test) for test in stage.split()) for stage in tests.split("|")),
            words,
            only,
        )
        for room, modules in table.items()
        for name, tests in modules.items()
    )


SUBJECTS: tuple[Subject, ...] = (
    *_subjects(_DECIDE, rules.OUTCOMES, _DECISIONS),
    *_subjects(_READ, rules.OUTCOMES, _REFUSALS),
    *_subjects(_WEIGH, rules.SEVERITIES, None),
    Subject(
        "acceptance/resources.py",
        (("tests/machine/test_data_file.py",),),
        rules.OUTCOMES,
        _DECISIONS,
    ),
    Subject(
        "acceptance/suites/watch.py",
        (("tests/suites/test_watch_suite.py",),),
        rules.OUTCOMES,
        _BITS,
    ),
)
