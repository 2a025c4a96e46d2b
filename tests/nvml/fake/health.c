/* What a GPU counts of its own errors, its repairs, and its PCI Express link. */
#include "call.h"

EXPORT enum code nvmlDeviceGetTotalEccErrors(struct gpu *device, unsigned kind, unsigned since, unsigned long long *count)
{
    static const enum gpu_reading readings[2][2] = {
        [CORRECTED] = {[VOLATILE] = GPU_ecc_corrected, [AGGREGATE] = GPU_ecc_corrected_total},
        [UNCORRECTED] = {[VOLATILE] = GPU_ecc_uncorrected, [AGGREGATE] = GPU_ecc_uncorrected_total},
    };
    bool known = kind < 2 && since < 2;
    return answer_wide(device, __func__, readings[known ? kind : 0][known ? since : 0], 1.0, known ? count : NULL);
}

EXPORT enum code nvmlDeviceGetRemappedRows(struct gpu *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                           unsigned *failed)
{
    static const enum gpu_reading readings[] = {
        GPU_remapped_corrected, GPU_remapped_uncorrected, GPU_remap_pending, GPU_remap_failed,
    };
    unsigned *answers[] = {corrected, uncorrected, pending, failed};
    enum code code = DONE;
    for (unsigned i = 0; code == DONE && i < 4; i++)
        code = answer_unsigned(device, __func__, readings[i], 1.0, answers[i]);
    return code;
}

/* Pages have made-up addresses, one above the other; only their number is described. */
static enum code retired(const struct gpu *device, const char *function, unsigned cause, unsigned *count,
                         unsigned long long *addresses, unsigned long long *times)
{
    double pages = 0.0;
    enum code code = call_begin(device, function);
    if (code != DONE)
        return code;
    if (count == NULL || (cause != SINGLE_BIT && cause != DOUBLE_BIT))
        return call_end(INVALID_ARGUMENT);
    code = gpu_value(device, cause == SINGLE_BIT ? GPU_retired_single : GPU_retired_double, &pages);
    if (code != DONE)
        return call_end(code);
    unsigned room = *count;
    *count = (unsigned)pages;
    if (room < *count)
        return call_end(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < *count; i++) {
        if (addresses != NULL)
            addresses[i] = 0x1000ULL * (i + 1);
        if (times != NULL)
            times[i] = 0;
    }
    return call_end(DONE);
}

EXPORT enum code nvmlDeviceGetRetiredPages(struct gpu *device, unsigned cause, unsigned *count, unsigned long long *addresses)
{
    return retired(device, __func__, cause, count, addresses, NULL);
}

EXPORT enum code nvmlDeviceGetRetiredPages_v2(struct gpu *device, unsigned cause, unsigned *count, unsigned long long *addresses,
                                              unsigned long long *times)
{
    return retired(device, __func__, cause, count, addresses, times);
}

EXPORT enum code nvmlDeviceGetRetiredPagesPendingStatus(struct gpu *device, unsigned *pending)
{
    return answer_unsigned(device, __func__, GPU_retired_pending, 1.0, pending);
}

/* A record whose flags are described each by a reading of its own. */
static enum code flags(const struct gpu *device, const char *function, bool asked, unsigned count, const enum gpu_reading *which,
                       unsigned *const *answers)
{
    enum code code = call_begin(device, function);
    if (code != DONE)
        return code;
    if (!asked)
        return call_end(ARGUMENT_VERSION_MISMATCH);
    for (unsigned i = 0; code == DONE && i < count; i++) {
        double value = 0.0;
        code = gpu_value(device, which[i], &value);
        *answers[i] = (unsigned)value;
    }
    return call_end(code);
}

EXPORT enum code nvmlDeviceGetSramEccErrorStatus(struct gpu *device, struct sram_errors *errors)
{
    static const enum gpu_reading which[] = {GPU_sram_threshold_exceeded};
    return flags(device, __func__, errors->version == VERSION(*errors, 1), 1, which, (unsigned *[]){&errors->threshold_exceeded});
}

EXPORT enum code nvmlDeviceGetRepairStatus(struct gpu *device, struct repair *repair)
{
    static const enum gpu_reading which[] = {GPU_channel_repair_pending, GPU_tpc_repair_pending};
    return flags(device, __func__, repair->version == VERSION(*repair, 1), 2, which,
                 (unsigned *[]){&repair->channel_pending, &repair->tpc_pending});
}

EXPORT enum code nvmlDeviceGetUnrepairableMemoryFlag_v1(struct gpu *device, struct unrepairable *flag)
{
    static const enum gpu_reading which[] = {GPU_memory_unrepairable};
    return flags(device, __func__, flag->version == VERSION(*flag, 1), 1, which, (unsigned *[]){&flag->unrepairable});
}

EXPORT enum code nvmlDeviceGetRowRemapperHistogram(struct gpu *device, struct bank_histogram *banks)
{
    static const enum gpu_reading which[] = {GPU_banks_max, GPU_banks_high, GPU_banks_partial, GPU_banks_low, GPU_banks_none};
    return flags(device, __func__, true, 5, which,
                 (unsigned *[]){&banks->max, &banks->high, &banks->partial, &banks->low, &banks->none});
}

EXPORT enum code nvmlDeviceValidateInforom(struct gpu *device)
{
    unsigned corrupt = 0;
    enum code code = answer_unsigned(device, __func__, GPU_inforom_corrupt, 1.0, &corrupt);
    return code == DONE && corrupt != 0 ? CORRUPTED_INFOROM : code;
}

EXPORT enum code nvmlDeviceGetPcieReplayCounter(struct gpu *device, unsigned *replays)
{
    return answer_unsigned(device, __func__, GPU_pcie_replays, 1.0, replays);
}

EXPORT enum code nvmlDeviceGetCurrPcieLinkGeneration(struct gpu *device, unsigned *generation)
{
    return answer_unsigned(device, __func__, GPU_link_gen, 1.0, generation);
}

EXPORT enum code nvmlDeviceGetCurrPcieLinkWidth(struct gpu *device, unsigned *lanes)
{
    return answer_unsigned(device, __func__, GPU_link_width, 1.0, lanes);
}

EXPORT enum code nvmlDeviceGetMaxPcieLinkGeneration(struct gpu *device, unsigned *generation)
{
    return answer_unsigned(device, __func__, GPU_max_link_gen_here, 1.0, generation);
}

EXPORT enum code nvmlDeviceGetGpuMaxPcieLinkGeneration(struct gpu *device, unsigned *generation)
{
    return answer_unsigned(device, __func__, GPU_max_link_gen, 1.0, generation);
}

EXPORT enum code nvmlDeviceGetMaxPcieLinkWidth(struct gpu *device, unsigned *lanes)
{
    return answer_unsigned(device, __func__, GPU_max_link_width_here, 1.0, lanes);
}
