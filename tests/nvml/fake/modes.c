/* How a GPU is set up, and where it sits. */
#include <string.h>

#include "call.h"

EXPORT enum code nvmlDeviceGetComputeMode(struct gpu *device, unsigned *mode)
{
    return answer_unsigned(device, __func__, GPU_compute_mode, 1.0, mode);
}

EXPORT enum code nvmlDeviceGetDisplayActive(struct gpu *device, unsigned *active)
{
    return answer_unsigned(device, __func__, GPU_display_active, 1.0, active);
}

EXPORT enum code nvmlDeviceGetDisplayMode(struct gpu *device, unsigned *connected)
{
    return answer_unsigned(device, __func__, GPU_display_connected, 1.0, connected);
}

EXPORT enum code nvmlDeviceGetPersistenceMode(struct gpu *device, unsigned *mode)
{
    return answer_unsigned(device, __func__, GPU_persistence, 1.0, mode);
}

EXPORT enum code nvmlDeviceGetVirtualizationMode(struct gpu *device, unsigned *mode)
{
    return answer_unsigned(device, __func__, GPU_virtualisation, 1.0, mode);
}

/* A mode that is now and one that comes with the next start; where that is not described it is the same. */
static enum code two_modes(const struct gpu *device, const char *function, enum gpu_reading now, enum gpu_reading then,
                           unsigned *current, unsigned *pending)
{
    enum code code = answer_unsigned(device, function, now, 1.0, current);
    if (code == DONE && answer_unsigned(device, function, then, 1.0, pending) != DONE)
        *pending = *current;
    return code;
}

EXPORT enum code nvmlDeviceGetEccMode(struct gpu *device, unsigned *current, unsigned *pending)
{
    return two_modes(device, __func__, GPU_ecc_enabled, GPU_ecc_pending, current, pending);
}

EXPORT enum code nvmlDeviceGetMigMode(struct gpu *device, unsigned *current, unsigned *pending)
{
    return two_modes(device, __func__, GPU_mig_enabled, GPU_mig_pending, current, pending);
}

EXPORT enum code nvmlDeviceGetNumaNodeId(struct gpu *device, unsigned *node)
{
    return answer_unsigned(device, __func__, GPU_numa_node, 1.0, node);
}

static enum code affinity(const struct gpu *device, const char *function, bool memory, unsigned count, unsigned long *words)
{
    enum code code = call_begin(device, function);
    if (code != DONE)
        return code;
    const struct set *set = memory ? &device->memory_affinity : &device->cpu_affinity;
    if (!set->known || words == NULL || count == 0)
        return call_end(set->known ? INVALID_ARGUMENT : NOT_SUPPORTED);
    for (unsigned i = count; i < CPU_WORDS; i++)
        if (set->words[i] != 0)
            return call_end(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < count; i++)
        words[i] = i < CPU_WORDS ? set->words[i] : 0;
    return call_end(DONE);
}

EXPORT enum code nvmlDeviceGetCpuAffinity(struct gpu *device, unsigned count, unsigned long *words)
{
    return affinity(device, __func__, false, count, words);
}

EXPORT enum code nvmlDeviceGetCpuAffinityWithinScope(struct gpu *device, unsigned count, unsigned long *words, unsigned scope)
{
    return affinity(device, __func__, false, scope <= 1 ? count : 0, words);
}

EXPORT enum code nvmlDeviceGetMemoryAffinity(struct gpu *device, unsigned count, unsigned long *words, unsigned scope)
{
    return affinity(device, __func__, true, scope <= 1 ? count : 0, words);
}

static double value_or(const struct gpu *device, enum gpu_reading which, double otherwise)
{
    double value = 0.0;
    return gpu_value(device, which, &value) == DONE ? value : otherwise;
}

static enum code fabric(const struct gpu *device, double *state, double *status, double *health)
{
    enum code code = gpu_value(device, GPU_fabric_state, state);
    *status = value_or(device, GPU_fabric_status, 0.0);
    *health = value_or(device, GPU_fabric_health_mask, 0.0);
    return code;
}

EXPORT enum code nvmlDeviceGetGpuFabricInfo(struct gpu *device, struct fabric_info *info)
{
    double state = 0.0, status = 0.0, health = 0.0;
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    code = info == NULL ? INVALID_ARGUMENT : fabric(device, &state, &status, &health);
    if (code == DONE)
        *info = (struct fabric_info){{0}, (unsigned)status, 0, (unsigned)state};
    return call_end(code);
}

EXPORT enum code nvmlDeviceGetGpuFabricInfoV(struct gpu *device, struct fabric_info_v *info)
{
    double state = 0.0, status = 0.0, health = 0.0;
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    double newest = value_or(device, GPU_fabric_record, 3.0); /* the newest version of the record that this driver knows */
    if (newest < 2.0)
        return call_end(FUNCTION_NOT_FOUND);
    if (info == NULL || (info->version != FABRIC_V2 && (info->version != FABRIC_V3 || newest < 3.0)))
        return call_end(info == NULL ? INVALID_ARGUMENT : ARGUMENT_VERSION_MISMATCH);
    code = fabric(device, &state, &status, &health);
    if (code == DONE) {
        memset(info->cluster, 0, sizeof info->cluster);
        info->status = (unsigned)status;
        info->clique = 0;
        info->state = (unsigned)state;
        info->health = (unsigned)health;
        if (info->version == FABRIC_V3) /* version 2 ends before it */
            info->summary = (unsigned char)value_or(device, GPU_fabric_health_summary, 0.0);
    }
    return call_end(code);
}
