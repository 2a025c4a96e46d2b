/* nvmlDeviceGetFieldValues: many values in one call, each with a code of its own. */
#include <stdio.h>

#include "call.h"

struct field {
    unsigned number;
    enum gpu_reading which;
    double scale;
    unsigned type;
};

static const struct field fields[] = {
    {1, GPU_ecc_enabled, 1.0, VALUE_UINT},
    {3, GPU_ecc_corrected, 1.0, VALUE_ULLONG},
    {4, GPU_ecc_uncorrected, 1.0, VALUE_ULLONG},
    {5, GPU_ecc_corrected_total, 1.0, VALUE_ULLONG},
    {6, GPU_ecc_uncorrected_total, 1.0, VALUE_ULLONG},
    {29, GPU_retired_single, 1.0, VALUE_UINT},
    {30, GPU_retired_double, 1.0, VALUE_UINT},
    {31, GPU_retired_pending, 1.0, VALUE_UINT},
    {74, GPU_power_cap_ns, 1.0, VALUE_ULLONG},
    {75, GPU_sw_thermal_ns, 1.0, VALUE_ULLONG},
    {76, GPU_sync_boost_ns, 1.0, VALUE_ULLONG},
    {82, GPU_memory_temperature_c, 1.0, VALUE_UINT},
    {83, GPU_energy_j, 1e3, VALUE_ULLONG},
    {94, GPU_pcie_replays, 1.0, VALUE_UINT},
    {142, GPU_remapped_corrected, 1.0, VALUE_UINT},
    {143, GPU_remapped_uncorrected, 1.0, VALUE_UINT},
    {144, GPU_remap_pending, 1.0, VALUE_UINT},
    {145, GPU_remap_failed, 1.0, VALUE_UINT},
    {185, GPU_power_w, 1e3, VALUE_UINT},
    {186, GPU_power_w, 1e3, VALUE_UINT},
    {187, GPU_power_limit_min_w, 1e3, VALUE_UINT},
    {188, GPU_power_limit_max_w, 1e3, VALUE_UINT},
    {189, GPU_power_limit_default_w, 1e3, VALUE_UINT},
    {190, GPU_power_limit_w, 1e3, VALUE_UINT},
    {193, GPU_shutdown_margin_c, 1.0, VALUE_INT},
    {194, GPU_slowdown_margin_c, 1.0, VALUE_INT},
    {195, GPU_memory_max_margin_c, 1.0, VALUE_INT},
    {196, GPU_max_margin_c, 1.0, VALUE_INT},
    {226, GPU_reset_needed, 1.0, VALUE_UINT},
    {227, GPU_drain_needed, 1.0, VALUE_UINT},
    {230, GPU_recovery_action, 1.0, VALUE_UINT},
    {269, GPU_sw_thermal_ns, 1.0, VALUE_ULLONG},
    {270, GPU_hw_thermal_ns, 1.0, VALUE_ULLONG},
    {271, GPU_power_brake_ns, 1.0, VALUE_ULLONG},
};

enum { LINK_COUNT = 91, SPEED_OF_ALL = 90, GET_SPEED = 164, GET_STATE = 165, GET_VERSION = 166, DATA_TX = 138, DATA_RX = 139 };

static const unsigned ALL_LINKS = 0xffffffffu; /* as scope of DATA_TX and DATA_RX: their sum */

struct link_field {
    unsigned first, last; /* fields, one a link from `link` on; a single one takes the link from its scope where `link` is ANY */
    unsigned link;
    enum link_reading which;
};

enum { ANY = MOST_LINKS };

static const struct link_field link_fields[] = {
    {32, 37, 0, LINK_crc_errors},      {96, 101, 6, LINK_crc_errors},   {39, 44, 0, LINK_crc_data_errors},
    {102, 107, 6, LINK_crc_data_errors}, {46, 51, 0, LINK_replays},     {108, 113, 6, LINK_replays},
    {53, 58, 0, LINK_recoveries},      {114, 119, 6, LINK_recoveries},  {84, 89, 0, LINK_speed_mbs},
    {132, 137, 6, LINK_speed_mbs},     {161, 161, ANY, LINK_replays},   {162, 162, ANY, LINK_recoveries},
    {163, 163, ANY, LINK_crc_errors},  {215, 215, ANY, LINK_recoveries}, {GET_SPEED, GET_SPEED, ANY, LINK_speed_mbs},
    {DATA_TX, DATA_TX, ANY, LINK_data_tx_kib}, {DATA_RX, DATA_RX, ANY, LINK_data_rx_kib},
    {GET_STATE, GET_STATE, ANY, LINK_active}, {GET_VERSION, GET_VERSION, ANY, LINK_version},
};

static void give(struct field_value *answer, unsigned type, double value)
{
    answer->type = type;
    if (type == VALUE_INT)
        answer->value.whole = (int)value;
    else if (type == VALUE_UINT)
        answer->value.number = (unsigned)value;
    else
        answer->value.wide = (unsigned long long)value;
}

static enum code of_link(const struct gpu *device, struct field_value *answer, unsigned number, enum link_reading which)
{
    double value = 0.0;
    if (!device->has_links)
        return NOT_SUPPORTED;
    if (number >= MOST_LINKS || !device->links[number].exists)
        return INVALID_ARGUMENT;
    enum code code = link_value(&device->links[number], which, &value);
    bool counter = which == LINK_data_tx_kib || which == LINK_data_rx_kib || which == LINK_crc_errors || which == LINK_crc_data_errors || which == LINK_replays || which == LINK_recoveries;
    if (code == DONE)
        give(answer, counter ? VALUE_ULLONG : VALUE_UINT, value);
    return code;
}

static enum code link_total(const struct gpu *device, struct field_value *answer, unsigned field)
{
    static const struct { unsigned field; enum link_reading which; } totals[] = {
        {38, LINK_crc_errors}, {45, LINK_crc_data_errors}, {52, LINK_replays}, {59, LINK_recoveries},
        {DATA_TX, LINK_data_tx_kib}, {DATA_RX, LINK_data_rx_kib},
    };
    double sum = 0.0, count = 0.0;
    for (unsigned i = 0; i < sizeof totals / sizeof *totals; i++)
        for (unsigned link = 0; totals[i].field == field && link < MOST_LINKS; link++) {
            double value = 0.0;
            if (device->links[link].exists && link_value(&device->links[link], totals[i].which, &value) == DONE) {
                sum += value;
                count += 1.0;
            }
        }
    if (count == 0.0)
        return NOT_SUPPORTED;
    give(answer, VALUE_ULLONG, sum);
    return DONE;
}

static enum code one(const struct gpu *device, struct field_value *answer)
{
    unsigned field = answer->field;
    char name[32];
    snprintf(name, sizeof name, "field %u", field);
    enum code code = refused(device, name);
    if (code != DONE || field == 0 || field >= FIELD_END)
        return code != DONE ? code : INVALID_ARGUMENT;
    for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].number == field) {
            double value = 0.0;
            code = gpu_value(device, fields[i].which, &value);
            if (code == DONE)
                give(answer, fields[i].type, value * fields[i].scale);
            return code;
        }
    if ((field == DATA_TX || field == DATA_RX) && answer->scope == ALL_LINKS)
        return link_total(device, answer, field);
    for (unsigned i = 0; i < sizeof link_fields / sizeof *link_fields; i++)
        if (link_fields[i].first <= field && field <= link_fields[i].last) {
            unsigned link = link_fields[i].link == ANY ? answer->scope : link_fields[i].link + field - link_fields[i].first;
            return of_link(device, answer, link, link_fields[i].which);
        }
    if (field == SPEED_OF_ALL)
        return of_link(device, answer, 0, LINK_speed_mbs);
    if (field != LINK_COUNT)
        return link_total(device, answer, field);
    unsigned links = 0;
    for (unsigned i = 0; i < MOST_LINKS; i++)
        links += device->links[i].exists;
    give(answer, VALUE_UINT, links);
    return device->has_links ? DONE : NOT_SUPPORTED;
}

EXPORT enum code nvmlDeviceGetFieldValues(struct gpu *device, int count, struct field_value *values)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (count <= 0 || values == NULL)
        return call_end(INVALID_ARGUMENT);
    for (int i = 0; i < count; i++) {
        values[i].timestamp_us = (long long)(call_time() * 1e6);
        values[i].latency_us = 0;
        values[i].code = one(device, &values[i]);
    }
    return call_end(DONE);
}
