/* How two GPUs reach each other. */
#include "call.h"

/* The pair's record; NULL where it is not described. */
static const struct pair *find(const struct gpu *one, const struct gpu *other)
{
    const struct machine *machine = the_machine();
    unsigned a = (unsigned)(one - machine->gpus), b = (unsigned)(other - machine->gpus);
    for (unsigned i = 0; i < machine->pair_count; i++) {
        const struct pair *pair = &machine->pairs[i];
        if ((pair->a == a && pair->b == b) || (pair->a == b && pair->b == a))
            return pair;
    }
    return NULL;
}

static enum code pair_begin(const struct gpu *one, const struct gpu *other, const char *function)
{
    enum code code = call_begin(one, function);
    if (code != DONE)
        return code;
    code = one == other ? INVALID_ARGUMENT : gpu_look(other);
    if (code == DONE)
        code = find(one, other) == NULL ? NOT_SUPPORTED : DONE;
    return code == DONE ? DONE : call_end(code);
}

EXPORT enum code nvmlDeviceGetTopologyCommonAncestor(struct gpu *one, struct gpu *other, unsigned *path)
{
    enum code code = pair_begin(one, other, __func__);
    if (code != DONE)
        return code;
    const struct reading *reading = &find(one, other)->path;
    if (!reading->known || path == NULL)
        return call_end(path == NULL ? INVALID_ARGUMENT : NOT_SUPPORTED);
    *path = (unsigned)reading->value;
    return call_end(DONE);
}

EXPORT enum code nvmlDeviceGetP2PStatus(struct gpu *one, struct gpu *other, unsigned what, unsigned *state)
{
    enum code code = pair_begin(one, other, __func__);
    if (code != DONE)
        return code;
    const struct pair *pair = find(one, other);
    const struct reading *reading = what == P2P_NVLINK ? &pair->p2p_nvlink : &pair->p2p;
    if (state == NULL || what > P2P_NVLINK)
        return call_end(INVALID_ARGUMENT);
    if (!reading->known)
        return call_end(NOT_SUPPORTED);
    *state = (unsigned)reading->value;
    return call_end(DONE);
}
