"""The conditions of the host's families and of events: confirmed, excluded, and cannot tell."""

from __future__ import annotations

import fnmatch

from cases import each
from host_cases import (
    ALL,
    NONE,
    READ,
    Case,
    cause,
    clauses,
    counts,
    finding,
    grew,
    kernel,
    links,
    low,
    measured,
)

from acceptance.core.advice import Condition, LikelyCause
from acceptance.core.finding import Finding
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message
from acceptance.diagnosis import note_rules
from acceptance.diagnosis.causes import NO_EVIDENCE, RULES, standing
from acceptance.expect import measurements
from acceptance.reports import advice

LOST = ("gpu-lost", "nvml", "0000:41:00.0", 50.0)
NVLINK = ("xid", 74, "0000:41:00.0", 9.5)
FAULT = ("xid", 13, "0000:41:00.0", 9.5)
NEAR = (  # the last sample before it went
    ("gpu_temperature_margin", "gpu1", 3, ALL),
    ("gpu_hw_thermal_slowdown", "gpu1", 0, NONE),
)


def there(*models: str) -> Message:
    found = tuple(Message("disk_there", {"disk": "sda", "model": one}) for one in models)
    return Message("disks_found", {"disks": Listed(found) if found else Message("none")})


CASES = [
    # gpu: rows of its memory
    Case("gpu_ecc_uncorrected", 1, "gpu0", "confirmed", (("gpu_remap_pending", "gpu0", 1, NONE),)),
    Case("gpu_ecc_uncorrected", 1, "gpu0", "open", (("gpu_remap_pending", "gpu1", 1, NONE),)),
    Case(
        "gpu_ecc_uncorrected",
        2,
        "gpu0",
        "confirmed",
        (("gpu_hw_thermal_slowdown", "gpu0", 3, NONE),),
    ),
    Case(
        "gpu_ecc_uncorrected_total",
        1,
        "gpu0",
        "confirmed",
        (
            ("gpu_remapped_uncorrected", "gpu0", 1, None),
            ("gpu_remap_pending", "gpu0", 0, NONE),
            ("gpu_remap_failed", "gpu0", 0, NONE),
        ),
    ),
    Case(
        "gpu_ecc_uncorrected_total",
        1,
        "gpu0",
        "excluded",
        (("gpu_remapped_uncorrected", "gpu0", 0, None),),
    ),
    Case(
        "gpu_ecc_uncorrected_total",
        1,
        "gpu0",
        "open",
        (("gpu_remapped_uncorrected", "gpu0", 1, None),),
    ),
    Case(
        "gpu_in_nvml", 1, "gpu1", "confirmed", events=(("rm-init", "power", "0000:41:00.0", 9.0),)
    ),
    Case("gpu_in_nvml", 1, "gpu0", "open", (READ,), (("rm-init", "power", "0000:41:00.0", 9.0),)),
    Case("gpu_in_nvml", 4, "gpu1", "confirmed", events=(("driver", "mismatch", None, 9.0),)),
    Case(
        "gpu_model_differs",
        2,
        "gpu0",
        "excluded",
        (("gpu_model_differs", "gpu0", 1, NONE), ("gpu_model_differs", "gpu1", 0, NONE)),
    ),
    Case(
        "gpu_model_differs",
        2,
        "gpu0",
        "open",
        (("gpu_model_differs", "gpu0", 1, NONE), ("gpu_model_differs", "gpu1", 1, NONE)),
    ),
    # gpu-health
    Case("gpu_recovery_action", 1, "gpu0", "confirmed", (("gpu_remap_pending", "gpu0", 1, NONE),)),
    Case("gpu_recovery_action", 1, "gpu1", "confirmed", events=(("xid", 48, "0000:41:00.0", 9.0),)),
    Case("gpu_recovery_action", 1, "gpu0", "open", (("gpu_remap_pending", "gpu0", 0, NONE),)),
    Case("gpu_fabric_faults", 1, "gpu0", "confirmed", (("nvlink_active", "gpu0", 0, ALL),)),
    Case("gpu_fabric_faults", 1, "gpu0", "open", (("nvlink_active", "gpu0", 1, ALL),)),
    # links
    Case(
        "p2p_supported",
        1,
        "gpu0->gpu1",
        "confirmed",
        (
            ("p2p_supported", "gpu0->gpu1", 0, ALL),
            ("nvlink_active", "gpu0", 0, None),
            ("nvlink_active", "gpu1", 0, None),
        ),
    ),
    Case(
        "p2p_supported",
        1,
        "gpu0->gpu1",
        "excluded",
        (
            ("p2p_supported", "gpu0->gpu1", 0, ALL),
            ("nvlink_active", "gpu0", 4, None),
            ("nvlink_active", "gpu1", 4, None),
        ),
    ),
    Case("p2p_supported", 1, "gpu0->gpu1", "open", (("p2p_supported", "gpu0->gpu1", 0, ALL),)),
    Case(
        "p2p_supported", 3, "gpu0->gpu1", "confirmed", (("p2p_supported", "gpu0->gpu1", 1, NONE),)
    ),
    Case("p2p_supported", 2, "gpu0->gpu1", "excluded", (("p2p_supported", "gpu0->gpu1", 1, NONE),)),
    Case(
        "nvlink_active",
        2,
        "gpu0",
        "excluded",
        (("nvlink_active", "gpu0", 0, ALL), ("nvlink_active", "gpu1", 4, ALL)),
    ),
    Case("nvlink_active", 3, "gpu0", "confirmed", events=(("xid", 74, "0000:01:00.0", 9.0),)),
    Case(
        "gpu_path_differs",
        1,
        "gpu0->gpu1",
        "confirmed",
        (("gpu_address_differs", "gpu1", 1, NONE), ("gpu_address_differs", "gpu0", 0, NONE)),
    ),
    Case(
        "gpu_path_differs",
        1,
        "gpu0->gpu1",
        "excluded",
        (("gpu_address_differs", "gpu1", 0, NONE), ("gpu_address_differs", "gpu0", 0, NONE)),
    ),
    Case("gpu_path_differs", 1, "gpu0->gpu1", "open"),
    # network
    Case(
        "network_link_share",
        4,
        "net:ens7",
        "confirmed",
        events=(("aer", "corrected", "0000:5c:00.0", 9.0),),
    ),
    Case("network_link_share", 4, "net:ens7", "open", (READ,)),
    Case(
        "network_remote_errors",
        4,
        "net:ens7",
        "confirmed",
        (("network_remote_errors", "net:ens7", 500, NONE), ("network_errors", "net:ens7", 0, NONE)),
    ),
    Case(
        "network_remote_errors",
        4,
        "net:ens7",
        "excluded",
        (("network_remote_errors", "net:ens7", 500, NONE), ("network_errors", "net:ens7", 7, NONE)),
    ),
    Case(
        "network_remote_errors",
        4,
        "net:ens7",
        "open",
        (("network_remote_errors", "net:ens7", 500, NONE),),
    ),
    Case("network_port_lost", 4, "net:ens7", "confirmed", note=Message("network_port_gone")),
    Case("network_port_lost", 4, "net:ens7", "excluded", note=Message("network_port_fell")),
    Case("network_port_lost", 1, "net:ens7", "excluded", note=Message("network_port_gone")),
    Case("network_port_lost", 4, "net:ens7", "open"),
    # power
    Case("power_step_made", 3, "gpus", "confirmed", events=(LOST,)),
    Case("power_step_made", 3, "gpus", "open", (READ,)),
    Case("power_step_made", 5, "gpus", "confirmed", (("cpu_temperature", "cpu", 104, NONE),)),
    Case(
        "power_step_made",
        5,
        "gpus",
        "open",
        (
            *tuple(
                (name, "gpu0", 0.0, NONE)
                for name in (
                    "gpu_hw_thermal_slowdown",
                    "gpu_sw_thermal_slowdown",
                    "gpu_temperature_margin",
                )
            ),
            ("cpu_temperature", "cpu", 0.0, NONE),
        ),
    ),
    # watch
    Case(
        "gpu_hw_slowdown",
        2,
        "gpu0",
        "confirmed",
        (("gpu_power_brake", "gpu0", 9, NONE), ("gpu_power_brake", "gpu1", 9, NONE)),
    ),
    Case(
        "gpu_hw_slowdown",
        2,
        "gpu0",
        "open",
        (("gpu_power_brake", "gpu0", 9, NONE), ("gpu_power_brake", "gpu1", 0, NONE)),
    ),
    Case("gpu_hw_slowdown", 2, "gpu0", "excluded", (("gpu_power_brake", "gpu0", 0, NONE),)),
    Case(
        "gpu_hw_slowdown",
        3,
        "gpu0",
        "excluded",
        (("gpu_hw_thermal_slowdown", "gpu0", 0, NONE), ("gpu_temperature_margin", "gpu0", 9, ALL)),
    ),
    Case(
        "gpu_link_gen", 4, "gpu1", "confirmed", events=(("aer", "corrected", "0000:40:01.1", 9.0),)
    ),
    Case("gpu_link_gen", 4, "gpu1", "confirmed", (("gpu_pcie_replays", "gpu1", 5, NONE),)),
    Case("gpu_link_gen", 4, "gpu1", "open", (READ, ("gpu_pcie_replays", "gpu1", 0, NONE))),
    # kernel-log
    Case("kernel_faults_before", 1, "system", "confirmed", note=kernel("xid 79")),
    Case("kernel_faults_before", 1, "system", "excluded", note=kernel("mce bank6")),
    Case("kernel_faults_before", 2, "system", "confirmed", note=kernel("mce bank6")),
    Case("kernel_faults_before", 3, "system", "open", note=kernel("mce bank6"), count=2.0),
    Case("kernel_faults_before", 3, "system", "open", note=kernel("iommu dmar")),
    Case("kernel_faults_before", 4, "system", "excluded", note=kernel("mce bank6")),
    Case(
        "kernel_faults_before", 4, "system", "open", note=kernel("mce bank6", "disk io"), count=2.0
    ),
    Case(
        "kernel_faults_before",
        2,
        "system",
        "confirmed",
        note=Message("clauses", {"why": ("a storm", *kernel("edac UE").values["text"])}),
    ),
    # cpu, memory
    Case("cpu_gemm_f64", 3, "cpu", "confirmed", (("cpu_throttle_events", "cpu", 4, NONE),)),
    Case(
        "cpu_gemm_f64",
        3,
        "cpu",
        "excluded",
        (("cpu_throttle_events", "cpu", 0, NONE), ("cpu_temperature", "cpu", 0, NONE)),
    ),
    Case("cpu_gemm_f64", 3, "cpu", "open", (("cpu_throttle_events", "cpu", 0, NONE),)),
    Case("memory_copy", 3, "memory", "confirmed", (("dimm_count", "memory", 0, ALL),)),
    Case(
        "memory_copy",
        3,
        "memory",
        "excluded",
        (("dimm_count", "memory", 4, ALL), ("dimm_present", "dimm:A1", 1, ALL)),
    ),
    Case("memory_copy", 3, "memory", "open", (("dimm_count", "memory", 4, ALL),)),
    Case("memory_copy", 2, "memory", "confirmed", (("dimm_configured_speed", "dimm:A1", 0, ALL),)),
    Case("memory_random", 2, "socket0", "confirmed", (("memory_triad", "memory", 0, ALL),)),
    Case("memory_random", 2, "socket0", "open", (("memory_triad", "memory", 9, ALL),)),
    Case(
        "memory_random_remote",
        1,
        "socket0->socket1",
        "confirmed",
        (("memory_random", "socket1", 0, ALL),),
    ),
    Case(
        "memory_random_remote",
        2,
        "socket0->socket1",
        "excluded",
        (("memory_random", "socket1", 0, ALL),),
    ),
    # inventory
    Case(
        "memory_total",
        5,
        "memory",
        "confirmed",
        (
            ("memory_total", "memory", 0, ALL),
            ("dimm_count", "memory", 4, ALL),
            ("dimm_size", "dimm:A1", 32, ALL),
        ),
    ),
    Case(
        "memory_total",
        1,
        "memory",
        "excluded",
        (("dimm_count", "memory", 4, ALL), ("dimm_present", "dimm:A1", 1, ALL)),
    ),
    Case("memory_total", 1, "memory", "open", (("dimm_count", "memory", 4, ALL),)),
    # A small module explains less memory, and not a missing module.
    Case("memory_total", 4, "memory", "confirmed", (("dimm_size", "dimm:B1", 0, ALL),)),
    Case("dimm_count", 4, "memory", "open", (("dimm_size", "dimm:B1", 0, ALL),)),
    # Without XMP many firmwares say the base speed for it too.
    Case("dimm_rated_speed", 5, "dimm:A1", "open", (("dimm_rated_speed", "dimm:A1", 0, ALL),)),
    Case("dimm_rated_speed", 1, "dimm:A1", "open", (("dimm_rated_speed", "dimm:A1", 0, ALL),)),
    Case(
        "dimm_rated_speed",
        5,
        "dimm:A1",
        "confirmed",
        (
            ("dimm_rated_speed", "dimm:A1", 0, ALL),
            ("dimm_part_number_differs", "dimm:A1", 1, NONE),
        ),
    ),
    Case("dimm_rated_speed", 5, "dimm:A1", "excluded", (("dimm_rated_speed", "dimm:A1", 9, ALL),)),
    Case("dimm_rated_speed", 5, "dimm:A1", "open", (("dimm_rated_speed", "dimm:B1", 9, ALL),)),
    Case("link_up", 3, "net:eth0", "confirmed", note=links("eth1")),
    Case(
        "link_up",
        3,
        "net:eth0",
        "confirmed",
        note=Message("links_found", {"links": Message("none")}),
    ),
    Case("link_up", 3, "net:eth0", "excluded", note=links("eth0", "eth1")),
    Case("link_up", 1, "net:eth0", "excluded", note=links("eth1")),
    Case("link_up", 3, "net:eth0", "open"),
    # storage
    Case("disk_faults", 4, "disk:nvme0n1", "confirmed", note=clauses("disk_hot")),
    Case(
        "disk_faults",
        1,
        "disk:nvme0n1",
        "excluded",
        note=clauses("disk_hot", "smart_status_failed"),
    ),
    Case("disk_faults", 1, "disk:nvme0n1", "confirmed", note=clauses("smart_status_failed")),
    Case("disk_faults", 3, "disk:sda", "confirmed", note=clauses(low("UDMA_CRC_Error_Count"))),
    Case("disk_faults", 4, "disk:sda", "confirmed", note=clauses(low("Airflow_Temperature_Cel"))),
    Case("disk_faults", 1, "disk:sda", "confirmed", note=clauses(low("Reallocated_Sector_Ct"))),
    Case("disk_faults", 4, "disk:sda", "open", note=Message("disk_not_shown")),
    Case("disk_growth", 1, "disk:nvme0n1", "confirmed", note=clauses(grew("disk_power_cycles"))),
    Case("disk_growth", 4, "disk:sda", "confirmed", note=clauses(grew("disk_crc_errors"))),
    Case(
        "disk_growth",
        4,
        "disk:sda",
        "excluded",
        note=clauses(grew("disk_crc_errors"), grew("disk_media_errors")),
    ),
    Case("disk_growth", 3, "disk:sda", "excluded", note=clauses(grew("disk_media_errors"))),
    Case("disk_growth", 2, "disk:sda", "open", note=Message("disk_not_shown")),
    Case("disk_warnings", 1, "disk:sda", "confirmed", note=clauses("disk_used_up")),
    Case("disk_warnings", 1, "disk:sda", "excluded", note=clauses("disk_status_alone")),
    Case(
        "disk_warnings",
        1,
        "disk:sda",
        "open",
        note=clauses(
            Message("smart_attribute_was_low", {"names": Listed(("Reallocated_Sector_Ct",))})
        ),
    ),
    Case("disk_warnings", 3, "disk:sda", "confirmed", note=clauses("disk_status_alone")),
    Case("disk_lifetime_faults", 1, "disk:sda", "confirmed", note=clauses("disk_used_new")),
    Case("disk_lifetime_faults", 1, "disk:sda", "open", note=clauses(counts("disk_grown_defects"))),
    Case("raid_faults", 4, "system", "confirmed", note=clauses("raid_blocked")),
    Case("raid_faults", 1, "system", "excluded", note=clauses("raid_mismatches")),
    Case("raid_faults", 5, "system", "confirmed", note=clauses("raid_mismatches")),
    Case("raid_faults", 1, "system", "open", note=clauses("zfs_pool_faulty")),
    Case("raid_growth", 3, "system", "excluded", note=clauses("raid_errors_grew")),
    Case("filesystems_read_only", 3, "system", "confirmed", (READ,)),
    Case(
        "filesystems_read_only",
        3,
        "system",
        "excluded",
        (READ,),
        (("disk", "filesystem", None, 9.0),),
    ),
    Case("filesystems_read_only", 3, "system", "open"),
    Case(
        "filesystems_read_only",
        2,
        "system",
        "confirmed",
        (READ,),
        (("disk", "filesystem", None, 9.0),),
    ),
    Case(
        "storage_read",
        1,
        "disk:nvme0n1",
        "confirmed",
        (("disk_link_share", "disk:nvme0n1", 0, ALL),),
    ),
    Case(
        "storage_read",
        1,
        "disk:nvme0n1",
        "excluded",
        (("disk_link_share", "disk:nvme0n1", 1, ALL),),
    ),
    Case("storage_read", 1, "disk:nvme0n1", "open", (("disk_link_share", "disk:sda", 0, ALL),)),
    Case(
        "storage_read",
        2,
        "disk:nvme0n1",
        "confirmed",
        (("disk_temperature_margin", "disk:nvme0n1", 0, ALL),),
    ),
    Case(
        "storage_feed_miscompares",
        4,
        "disk:sda",
        "confirmed",
        (
            ("storage_feed_miscompares", "disk:sda", 3, NONE),
            ("storage_memmap_miscompares", "disk:sda", 0, NONE),
            ("copy_own_miscompares", "gpu0", 2, NONE),
        ),
    ),
    Case(
        "storage_feed_miscompares",
        4,
        "disk:sda",
        "excluded",
        (("storage_memmap_miscompares", "disk:sda", 2, NONE),),
    ),
    Case(
        "storage_wrong_blocks",
        3,
        "disk:sda",
        "open",
        tuple(
            (name, "memory", 0.0, NONE)
            for name in (
                "memory_copy_miscompares",
                "memory_triad_miscompares",
                "stressapptest_errors",
            )
        ),
    ),
    Case(
        "storage_wrong_blocks",
        3,
        "disk:sda",
        "confirmed",
        (
            ("stressapptest_errors", "memory", 0, NONE),
            ("memory_errors_uncorrected", "memory", 1, NONE),
        ),
    ),
    Case(
        "storage_failed",
        4,
        "disk:nvme0n1",
        "confirmed",
        events=(("disk", "controller", "nvme0", 9.0),),
    ),
    Case(
        "storage_failed",
        1,
        "disk:nvme0n1",
        "confirmed",
        events=(("disk", "media", "nvme0n1", 9.0),),
    ),
    Case("storage_failed", 1, "disk:nvme0n1", "open", events=(("disk", "io", "nvme0n1", 9.0),)),
    Case(
        "storage_failed",
        1,
        "disk:nvme0n1",
        "confirmed",
        events=(("disk", "io", "nvme0n1", 9.0),),
        text="critical medium error, dev nvme0n1, sector 7",
    ),
    # events
    Case("xid.31", 1, "0000:41:00.0", "excluded", code="xid_again_in_loads"),
    Case("xid.31", 1, "0000:41:00.0", "open", code="xid_in_load"),
    Case("xid.31", 3, "0000:41:00.0", "confirmed", code="xid_again_in_loads"),
    Case("xid.31", 3, "0000:41:00.0", "confirmed", (("vram_miscompares", "gpu1", 1, NONE),)),
    Case("xid.31", 3, "0000:41:00.0", "open", (("vram_miscompares", "gpu1", 0, NONE),)),
    Case(
        "xid.45",
        2,
        "0000:41:00.0",
        "confirmed",
        events=(("xid", 31, "0000:41:00.0", 9.0), ("xid", 45, "0000:41:00.0", 9.5)),
    ),
    Case(
        "xid.45",
        2,
        "0000:41:00.0",
        "excluded",
        (READ,),
        (("xid", 31, "0000:01:00.0", 9.0), ("xid", 45, "0000:41:00.0", 9.5)),
    ),
    Case("xid.45", 2, "0000:41:00.0", "open", (), (("xid", 45, "0000:41:00.0", 9.5),)),
    Case("xid.45", 2, "0000:41:00.0", "open", (READ,), (("xid", 45, "0000:41:00.0", None),)),
    Case("xid.48", 3, "0000:41:00.0", "confirmed", events=(("xid", 64, "0000:41:00.0", 9.0),)),
    # between two checks: of the run
    Case("xid.48", 3, "0000:41:00.0", "confirmed", events=(("xid", 64, "0000:41:00.0", -50.0),)),
    Case("xid.48", 3, "0000:41:00.0", "excluded", (READ, ("gpu_remap_failed", "gpu1", 0, NONE))),
    Case("xid.48", 3, "0000:41:00.0", "open", (("gpu_remap_failed", "gpu1", 0, NONE),)),
    Case(
        "xid.79",
        2,
        "0000:41:00.0",
        "confirmed",
        events=(("aer", "fatal", "0000:40:01.1", 9.0), ("xid", 79, "0000:41:00.0", 9.5)),
    ),
    Case(
        "xid.79",
        2,
        "0000:41:00.0",
        "open",
        events=(("xid", 79, "0000:41:00.0", 9.5), ("aer", "fatal", "0000:40:01.1", 9.9)),
    ),
    Case(
        "xid.79",
        3,
        "0000:41:00.0",
        "excluded",
        (("gpu_temperature_margin", "gpu1", 30, ALL), ("gpu_hw_thermal_slowdown", "gpu1", 0, NONE)),
    ),
    Case("xid.79", 3, "0000:41:00.0", "open", NEAR),
    Case("gpu_hw_slowdown", 3, "gpu1", "open", NEAR),
    Case("xid.79", 3, "0000:41:00.0", "confirmed", (("gpu_temperature_margin", "gpu1", 0, ALL),)),
    # the other end of an NVLink: a GPU, or a switch
    *(
        Case("xid.74", 2, "0000:41:00.0", stands, events=(before, NVLINK))
        for before, stands in (
            (("xid", 79, "0000:01:00.0", 9.0), "confirmed"),
            (("sxid", 12028, "0000:c0:00.0", 9.0), "confirmed"),
            (("xid", 79, "0000:41:00.0", 9.0), "open"),
            (("sxid", 12028, "0000:c0:00.0", 9.9), "open"),
        )
    ),
    # the driver names a GPU as NVML does or by its PCI function
    Case("xid.13", 2, "0000:41:00.0", "confirmed", (READ,), (("xid", 48, "gpu1", 9.0), FAULT)),
    Case("xid.13", 2, "0000:41:00.0", "excluded", (READ,), (("xid", 48, "gpu0", 9.0), FAULT)),
    Case("xid.13", 2, "0000:41:00.0", "excluded", (READ,), (FAULT, ("xid", 48, "gpu1", 9.9))),
    Case("xid.13", 2, "0000:41:00.0", "open", (READ,), (("xid", 48, None, 9.0), FAULT)),
    Case("xid.13", 2, "0000:41:00.0", "open", (READ,), (("xid", 48, "gpu1", None), FAULT)),
    Case(
        "filesystems_read_only",
        2,
        "system",
        "open",
        (READ,),
        (("disk", "io", "sda", 8.0), ("disk", "filesystem", None, 9.0)),
    ),
    Case("filesystems_read_only", 3, "system", "open", (READ,), (("disk", "io", "sda", 8.0),)),
    Case(
        "power_step_miscompares", 3, "gpu1", "confirmed", (("vram_miscompares", "gpu1", 1, NONE),)
    ),
    Case(
        "power_step_host_failures",
        3,
        "machine",
        "confirmed",
        (
            ("cpu_gemm_miscompares_f64", "cpu", 0, NONE),
            ("cpu_gemm_miscompares_f32", "cpu", 2, NONE),
            ("stressapptest_errors", "memory", 0, NONE),
        ),
    ),
    Case("disk.ata", 2, "sda", "confirmed", events=(("disk", "comreset", "sda", 9.0),)),
    Case("disk.ata", 2, "sda", "open", (READ,), (("disk", "comreset", "sdb", 9.0),)),
    Case("driver.mismatch", 1, None, "confirmed"),
    Case("driver.mismatch", 2, None, "excluded"),
    Case("apei.PCIe error", 2, "0000:c9:02.0", "confirmed"),
    Case("apei.PCIe error", 1, "0000:c9:02.0", "excluded"),
    Case("inventory.less", 1, "gpu0", "excluded"),
    Case("inventory.less", 1, "memory", "open"),
    Case("inventory.link", 1, "dimm:A1", "excluded"),
    Case("inventory.link", 1, "gpu0", "open"),
    Case("kernel_faults_before", 1, "system", "confirmed", note=kernel("apei PCIe error")),
    Case("kernel_faults_before", 2, "system", "confirmed", note=kernel("apei memory error")),
    Case("kernel_faults_before", 2, "system", "open", note=kernel("apei None")),
    Case("mce.bank6", 2, "cpu15", "confirmed", events=(("edac", "UE", None, 9.0),)),
    Case("oom.4544", 2, None, "confirmed", (("memory_total", "memory", 0, ALL),)),
    Case("oom.4544", 2, None, "excluded", (("memory_total", "memory", 9, ALL),)),
    Case("oom.4544", 2, None, "open"),
]


@each("case", CASES)
def test_how_a_cause_stands_by_what_was_measured(case: Case) -> None:
    stands = standing(cause(case.of, case.number), finding(case), measured(case))
    assert stands == case.stands


def test_disk_report_that_counts_media_errors_confirms_a_failing_disk() -> None:
    case = Case("storage_failed", 1, "disk:nvme0n1", "confirmed")
    found = measured(Case("x", 1, None, "", (("disk_growth", "disk:nvme0n1", 1, NONE),)))
    assert standing(cause("storage_failed", 1), finding(case), found) == "open"
    (one,) = found.values["disk_growth"]
    noted = type(one)(
        one.due, one.value, one.serial, clauses(grew("disk_media_errors")), one.findings
    )
    seen = type(found)({"disk_growth": (noted,)}, (), found.functions)
    assert standing(cause("storage_failed", 1), finding(case), seen) == "confirmed"


DECLARED = Message("declares_disk", {"model": "'Maker 1'", "firmware": "'F2'"})


@each(
    "note, declared, stands",
    [
        (there("Maker 1"), 1, "confirmed"),
        (there("Maker 1"), 2, "open"),
        (there("Maker 2"), 1, "open"),
        (there(), 1, "open"),
        (None, 1, "open"),
    ],
)
def test_a_declared_disk_that_is_there_differs_in_what_is_declared_of_it(
    note: Message | None, declared: int, stands: str
) -> None:
    limit = Limit("count", DECLARED, low=float(declared))
    case = Case(
        "disk_count", 4, "declared-disk:1", "", (("disk_count", "declared-disk:1", 0, limit),)
    )
    about = finding(case)
    told = Finding(
        about.kind,
        about.check,
        about.code,
        {"basis": DECLARED},
        about.measurement,
        about.component,
        note=note,
    )
    assert standing(cause("disk_count", 4), told, measured(case)) == stands
    unknown = Finding(about.kind, about.check, about.code, {"basis": "a basis"}, note=note)
    assert standing(cause("disk_count", 4), unknown, measured(case)) == "open"


def test_what_a_report_does_not_have_says_nothing() -> None:
    lacks = Message("disk_not_offered", {"what": Listed((Message("disk_media_errors"),))})
    assert note_rules.codes(clauses(lacks)) == {"clauses", "disk_not_offered"}


def test_a_rule_of_another_version_says_nothing() -> None:
    other = LikelyCause("a cause", "a tell", Condition(rule="of_another_version"))
    assert standing(other, finding(CASES[0]), NO_EVIDENCE) == "open"


def test_every_condition_is_about_what_there_is() -> None:
    book, names = advice.shipped(), measurements.shipped().by_name
    every = {id(one): one for one in book.entries()}
    unknown = [
        name
        for entry in every.values()
        for one in entry.causes
        for condition in one.conditions
        for name in (*condition.measurements, *([condition.rule] if condition.rule else []))
        if not fnmatch.filter(names, name) and name not in RULES
    ]
    assert not unknown
