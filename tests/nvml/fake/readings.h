/* Every number and text that a description may hold, by its key there. One not described is not supported. */
#ifndef FAKE_READINGS_H
#define FAKE_READINGS_H

#include "words.h"

/* COUNT: a whole number from zero; WHOLE: one of either sign; REAL: any; FLAG: true or false; WORD: a word of a table; BITS: a list of
 * them. */
enum reading_kind { COUNT, WHOLE, REAL, FLAG, WORD, BITS };

#define GPU_READINGS(X) \
    X(minor, COUNT, NULL) \
    X(memory_total_bytes, COUNT, NULL) X(memory_used_bytes, COUNT, NULL) X(memory_reserved_bytes, COUNT, NULL) \
    X(cuda_cores, COUNT, NULL) X(memory_bus_bits, COUNT, NULL) \
    X(sm_clock_mhz, COUNT, NULL) X(memory_clock_mhz, COUNT, NULL) \
    X(max_sm_clock_mhz, COUNT, NULL) X(max_memory_clock_mhz, COUNT, NULL) \
    X(link_gen, COUNT, NULL) X(link_width, COUNT, NULL) X(max_link_gen, COUNT, NULL) \
    X(max_link_gen_here, COUNT, NULL) X(max_link_width_here, COUNT, NULL) X(pcie_replays, COUNT, NULL) \
    X(pcie_tx_kbs, COUNT, NULL) X(pcie_rx_kbs, COUNT, NULL) \
    X(temperature_c, WHOLE, NULL) X(memory_temperature_c, WHOLE, NULL) X(temperature_margin_c, WHOLE, NULL) \
    X(shutdown_temperature_c, COUNT, NULL) X(slowdown_temperature_c, COUNT, NULL) \
    X(memory_max_temperature_c, COUNT, NULL) X(max_temperature_c, COUNT, NULL) \
    X(shutdown_margin_c, WHOLE, NULL) X(slowdown_margin_c, WHOLE, NULL) \
    X(memory_max_margin_c, WHOLE, NULL) X(max_margin_c, WHOLE, NULL) \
    X(power_w, REAL, NULL) X(power_limit_w, REAL, NULL) X(power_limit_default_w, REAL, NULL) \
    X(power_limit_min_w, REAL, NULL) X(power_limit_max_w, REAL, NULL) X(energy_j, REAL, NULL) \
    X(power_swing_w, REAL, NULL) X(energy_follows_power, FLAG, NULL) \
    X(fans, COUNT, NULL) X(fan_percent, COUNT, NULL) \
    X(utilisation_percent, COUNT, NULL) X(memory_utilisation_percent, COUNT, NULL) \
    X(performance_state, COUNT, NULL) X(clock_event_reasons, BITS, event_reasons) \
    X(power_cap_ns, COUNT, NULL) X(sync_boost_ns, COUNT, NULL) X(sw_thermal_ns, COUNT, NULL) \
    X(hw_thermal_ns, COUNT, NULL) X(power_brake_ns, COUNT, NULL) \
    X(mig_enabled, FLAG, NULL) X(mig_pending, FLAG, NULL) X(compute_mode, WORD, compute_modes) \
    X(display_active, FLAG, NULL) X(display_connected, FLAG, NULL) X(persistence, FLAG, NULL) \
    X(ecc_enabled, FLAG, NULL) X(ecc_pending, FLAG, NULL) X(numa_node, COUNT, NULL) \
    X(virtualisation, WORD, virtualisation_modes) \
    X(fabric_state, WORD, fabric_states) X(fabric_status, COUNT, NULL) X(fabric_health_mask, COUNT, NULL) \
    X(fabric_health_summary, COUNT, NULL) X(fabric_record, COUNT, NULL) \
    X(ecc_corrected, COUNT, NULL) X(ecc_uncorrected, COUNT, NULL) \
    X(ecc_corrected_total, COUNT, NULL) X(ecc_uncorrected_total, COUNT, NULL) \
    X(remapped_corrected, COUNT, NULL) X(remapped_uncorrected, COUNT, NULL) \
    X(remap_pending, FLAG, NULL) X(remap_failed, FLAG, NULL) \
    X(retired_single, COUNT, NULL) X(retired_double, COUNT, NULL) X(retired_pending, FLAG, NULL) \
    X(sram_threshold_exceeded, FLAG, NULL) X(channel_repair_pending, FLAG, NULL) X(tpc_repair_pending, FLAG, NULL) \
    X(memory_unrepairable, FLAG, NULL) X(inforom_corrupt, FLAG, NULL) X(recovery_action, COUNT, NULL) \
    X(reset_needed, FLAG, NULL) X(drain_needed, FLAG, NULL) \
    X(banks_max, COUNT, NULL) X(banks_high, COUNT, NULL) X(banks_partial, COUNT, NULL) X(banks_low, COUNT, NULL) \
    X(banks_none, COUNT, NULL) \
    X(lost, FLAG, NULL) X(lost_after_calls, COUNT, NULL) X(hang, FLAG, NULL) X(crash, FLAG, NULL)

#define GPU_TEXTS(X) \
    X(uuid) X(name) X(pci_bus_id) X(pci_device_id) X(pci_subsystem_id) X(serial) X(vbios) X(board_part_number) X(compute_capability)

#define LINK_READINGS(X) \
    X(active, FLAG, NULL) X(version, WORD, link_versions) X(speed_mbs, COUNT, NULL) X(remote_kind, WORD, link_ends) \
    X(replays, COUNT, NULL) X(recoveries, COUNT, NULL) X(crc_errors, COUNT, NULL) X(crc_data_errors, COUNT, NULL) \
    X(ecc_errors, COUNT, NULL) X(data_tx_kib, COUNT, NULL) X(data_rx_kib, COUNT, NULL)

#define LINK_TEXTS(X) X(remote_address)

#define AS_GPU_READING(name, kind, table) GPU_##name,
#define AS_GPU_TEXT(name) GPU_TEXT_##name,
#define AS_LINK_READING(name, kind, table) LINK_##name,
#define AS_LINK_TEXT(name) LINK_TEXT_##name,

enum gpu_reading { GPU_READINGS(AS_GPU_READING) GPU_READING_COUNT };
enum gpu_text { GPU_TEXTS(AS_GPU_TEXT) GPU_TEXT_COUNT };
enum link_reading { LINK_READINGS(AS_LINK_READING) LINK_READING_COUNT };
enum link_text { LINK_TEXTS(AS_LINK_TEXT) LINK_TEXT_COUNT };

/* A reading that may grow: at the time t it is `value` and `per_s` for every second of t after `since_s`. */
struct reading {
    bool known;
    double value, per_s, since_s;
};

struct reading_key {
    const char *key;
    enum reading_kind kind;
    const struct word *table;
};

extern const struct reading_key gpu_readings[GPU_READING_COUNT], link_readings[LINK_READING_COUNT];
extern const char *const gpu_texts[GPU_TEXT_COUNT], *const link_texts[LINK_TEXT_COUNT];

#endif
