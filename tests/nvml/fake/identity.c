/* What a GPU is. */
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "pci_info.h"

EXPORT enum code nvmlDeviceGetName(struct gpu *device, char *name, unsigned size)
{
    return answer_text(device, __func__, GPU_TEXT_name, name, size);
}

EXPORT enum code nvmlDeviceGetUUID(struct gpu *device, char *uuid, unsigned size)
{
    return answer_text(device, __func__, GPU_TEXT_uuid, uuid, size);
}

EXPORT enum code nvmlDeviceGetSerial(struct gpu *device, char *serial, unsigned size)
{
    return answer_text(device, __func__, GPU_TEXT_serial, serial, size);
}

EXPORT enum code nvmlDeviceGetVbiosVersion(struct gpu *device, char *version, unsigned size)
{
    return answer_text(device, __func__, GPU_TEXT_vbios, version, size);
}

EXPORT enum code nvmlDeviceGetBoardPartNumber(struct gpu *device, char *number, unsigned size)
{
    return answer_text(device, __func__, GPU_TEXT_board_part_number, number, size);
}

EXPORT enum code nvmlDeviceGetMinorNumber(struct gpu *device, unsigned *minor)
{
    return answer_unsigned(device, __func__, GPU_minor, 1.0, minor);
}

EXPORT enum code nvmlDeviceGetNumGpuCores(struct gpu *device, unsigned *cores)
{
    return answer_unsigned(device, __func__, GPU_cuda_cores, 1.0, cores);
}

EXPORT enum code nvmlDeviceGetMemoryBusWidth(struct gpu *device, unsigned *bits)
{
    return answer_unsigned(device, __func__, GPU_memory_bus_bits, 1.0, bits);
}

EXPORT enum code nvmlDeviceGetCudaComputeCapability(struct gpu *device, int *major, int *minor)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    const char *capability = device->texts[GPU_TEXT_compute_capability];
    if (capability == NULL)
        return call_end(NOT_SUPPORTED);
    return call_end(sscanf(capability, "%d.%d", major, minor) == 2 ? DONE : UNKNOWN_ERROR);
}

void pci_info_fill(struct pci_info *info, const char *bus_id, unsigned device_id, unsigned subsystem_id)
{
    struct pci_address address;
    memset(info, 0, sizeof *info);
    if (pci_address(bus_id, &address)) { /* else the zeros stay: an address of nothing */
        info->domain = address.domain;
        info->bus = address.bus;
        info->device = address.device;
        snprintf(info->short_bus_id, sizeof info->short_bus_id, "%s", bus_id + 4);
    }
    info->device_id = device_id;
    info->subsystem_id = subsystem_id;
    snprintf(info->bus_id, sizeof info->bus_id, "%s", bus_id);
}

EXPORT enum code nvmlDeviceGetPciInfo_v3(struct gpu *device, struct pci_info *info)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (info == NULL)
        return call_end(INVALID_ARGUMENT);
    pci_info_fill(info, device->texts[GPU_TEXT_pci_bus_id], pci_id_word(device->texts[GPU_TEXT_pci_device_id]),
                  pci_id_word(device->texts[GPU_TEXT_pci_subsystem_id]));
    return call_end(DONE);
}

static enum code memory(const struct gpu *device, double *total, double *reserved, double *used)
{
    enum code code = gpu_value(device, GPU_memory_total_bytes, total);
    if (gpu_value(device, GPU_memory_reserved_bytes, reserved) != DONE)
        *reserved = 0.0;
    if (gpu_value(device, GPU_memory_used_bytes, used) != DONE)
        *used = 0.0;
    return code;
}

EXPORT enum code nvmlDeviceGetMemoryInfo(struct gpu *device, struct memory *info)
{
    double total = 0.0, reserved = 0.0, used = 0.0;
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    code = info == NULL ? INVALID_ARGUMENT : memory(device, &total, &reserved, &used);
    if (code == DONE) /* this version counts what is reserved as used */
        *info = (struct memory){(unsigned long long)total, (unsigned long long)(total - used - reserved),
                                (unsigned long long)(used + reserved)};
    return call_end(code);
}

EXPORT enum code nvmlDeviceGetMemoryInfo_v2(struct gpu *device, struct memory_v2 *info)
{
    double total = 0.0, reserved = 0.0, used = 0.0;
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (info == NULL || info->version != VERSION(struct memory_v2, 2))
        return call_end(info == NULL ? INVALID_ARGUMENT : ARGUMENT_VERSION_MISMATCH);
    code = memory(device, &total, &reserved, &used);
    if (code == DONE) {
        info->total = (unsigned long long)total;
        info->reserved = (unsigned long long)reserved;
        info->free = (unsigned long long)(total - used - reserved);
        info->used = (unsigned long long)used;
    }
    return call_end(code);
}
