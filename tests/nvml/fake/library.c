/* The library itself, the system, and the handles of the GPUs. */
#include "library.h"

#include <string.h>
#include <strings.h>

#include "call.h"

EXPORT enum code nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return library_open();
}

EXPORT enum code nvmlInit_v2(void)
{
    return library_open();
}

EXPORT enum code nvmlShutdown(void)
{
    return library_close();
}

EXPORT const char *nvmlErrorString(unsigned code)
{
    static const char *const texts[] = {
        "done", "not initialised", "invalid argument", "not supported", "no permission", "initialised already", "not found",
        "the buffer is too small", "a power cable is missing", "the driver is not loaded", "timed out", "an interrupt is stuck",
        "the library is missing", "no such function", "the inforom is corrupted", "the GPU is lost", "the GPU needs a reset",
        "the operating system refuses", "the driver and the library differ", "in use", "no memory", "no data", "not with a vGPU",
        "too few resources", "no such frequency", "no such version of the argument", "removed", "not ready", "no such GPU",
        "not in this state",
    };
    return code < sizeof texts / sizeof *texts ? texts[code] : "unknown error";
}

static enum code system_text(const char *function, bool nvml, char *answer, unsigned size)
{
    enum code code = library_begin(function);
    if (code != DONE)
        return code;
    return call_end(copy_text(nvml ? the_machine()->nvml_version : the_machine()->driver_version, answer, size));
}

EXPORT enum code nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    return system_text(__func__, false, version, size);
}

EXPORT enum code nvmlSystemGetNVMLVersion(char *version, unsigned size)
{
    return system_text(__func__, true, version, size);
}

static enum code cuda_version(const char *function, int *version)
{
    enum code code = library_begin(function);
    if (code != DONE)
        return code;
    if (version == NULL)
        return call_end(INVALID_ARGUMENT);
    *version = the_machine()->cuda_driver_version;
    return call_end(the_machine()->has_cuda_version ? DONE : NOT_SUPPORTED);
}

EXPORT enum code nvmlSystemGetCudaDriverVersion(int *version)
{
    return cuda_version(__func__, version);
}

EXPORT enum code nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuda_version(__func__, version);
}

EXPORT enum code nvmlDeviceGetCount_v2(unsigned *count)
{
    enum code code = library_begin(__func__);
    if (code != DONE)
        return code;
    if (count == NULL)
        return call_end(INVALID_ARGUMENT);
    *count = the_machine()->gpu_count;
    return call_end(DONE);
}

static bool same_bus_id(const struct gpu *gpu, const char *wanted)
{
    const char *full = gpu->texts[GPU_TEXT_pci_bus_id]; /* a short one leaves out half of the domain's digits */
    return strcasecmp(full, wanted) == 0 || strcasecmp(full + 4, wanted) == 0;
}

/* The first GPU of that index, or of that text; an index that is not wanted is beyond the last. */
static enum code handle(const char *function, unsigned index, const char *uuid, const char *bus_id, struct gpu **device)
{
    enum code code = library_begin(function);
    if (code != DONE)
        return code;
    if (device == NULL)
        return call_end(INVALID_ARGUMENT);
    struct machine *machine = the_machine();
    for (unsigned i = 0; i < machine->gpu_count; i++) {
        struct gpu *gpu = &machine->gpus[i];
        if (index == i || (uuid != NULL && strcmp(gpu->texts[GPU_TEXT_uuid], uuid) == 0) ||
            (bus_id != NULL && same_bus_id(gpu, bus_id))) {
            *device = gpu;
            code = gpu_look(gpu);
            return call_end(code == DONE ? refused(gpu, function) : code);
        }
    }
    return call_end(uuid == NULL && bus_id == NULL ? INVALID_ARGUMENT : NOT_FOUND);
}

EXPORT enum code nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **device)
{
    return handle(__func__, index, NULL, NULL, device);
}

EXPORT enum code nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **device)
{
    return handle(__func__, MOST_GPUS, uuid, NULL, device);
}

EXPORT enum code nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct gpu **device)
{
    return handle(__func__, MOST_GPUS, NULL, bus_id, device);
}

EXPORT enum code nvmlDeviceGetIndex(struct gpu *device, unsigned *index)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (index == NULL)
        return call_end(INVALID_ARGUMENT);
    *index = (unsigned)(device - the_machine()->gpus);
    return call_end(DONE);
}
