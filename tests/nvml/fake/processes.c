/* The processes that use a GPU. */
#include "call.h"

static enum code list(const struct gpu *device, const char *function, bool compute, unsigned *count, struct process_info *infos)
{
    enum code code = call_begin(device, function);
    if (code != DONE)
        return code;
    const struct processes *processes = compute ? &device->compute : &device->graphics;
    if (count == NULL || !processes->known)
        return call_end(count == NULL ? INVALID_ARGUMENT : NOT_SUPPORTED);
    unsigned room = *count;
    *count = processes->count;
    if (room < processes->count)
        return call_end(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < processes->count; i++) {
        const struct process *process = &processes->list[i];
        unsigned long long bytes = process->memory_known ? (unsigned long long)process->memory_bytes : ~0ULL;
        infos[i] = (struct process_info){process->pid, bytes, ~0u, ~0u};
    }
    return call_end(DONE);
}

EXPORT enum code nvmlDeviceGetComputeRunningProcesses_v3(struct gpu *device, unsigned *count, struct process_info *infos)
{
    return list(device, __func__, true, count, infos);
}

EXPORT enum code nvmlDeviceGetComputeRunningProcesses_v2(struct gpu *device, unsigned *count, struct process_info *infos)
{
    return list(device, __func__, true, count, infos);
}

EXPORT enum code nvmlDeviceGetGraphicsRunningProcesses_v3(struct gpu *device, unsigned *count, struct process_info *infos)
{
    return list(device, __func__, false, count, infos);
}

EXPORT enum code nvmlDeviceGetGraphicsRunningProcesses_v2(struct gpu *device, unsigned *count, struct process_info *infos)
{
    return list(device, __func__, false, count, infos);
}

static const char *name_of(const struct processes *processes, unsigned pid)
{
    for (unsigned i = 0; i < processes->count; i++)
        if (processes->list[i].pid == pid)
            return processes->list[i].name;
    return NULL;
}

EXPORT enum code nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size)
{
    enum code code = library_begin(__func__);
    if (code != DONE)
        return code;
    const char *found = NULL;
    for (unsigned i = 0; found == NULL && i < the_machine()->gpu_count; i++) {
        found = name_of(&the_machine()->gpus[i].compute, pid);
        if (found == NULL)
            found = name_of(&the_machine()->gpus[i].graphics, pid);
    }
    return call_end(found == NULL ? NOT_FOUND : copy_text(found, name, size));
}
