/* Events: an Xid comes to every set that had its GPU registered when it happened. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "call.h"

struct event_set {
    struct {
        bool registered;
        unsigned long long types;
        double since_s;
    } gpus[MOST_GPUS];
    unsigned next; /* the first step that was not looked at */
};

EXPORT enum code nvmlEventSetCreate(struct event_set **made)
{
    enum code code = library_begin(__func__);
    if (code != DONE)
        return code;
    if (made == NULL)
        return call_end(INVALID_ARGUMENT);
    *made = calloc(1, sizeof **made);
    return call_end(*made == NULL ? OUT_OF_MEMORY : DONE);
}

EXPORT enum code nvmlEventSetFree(struct event_set *set)
{
    enum code code = library_begin(__func__);
    if (code != DONE)
        return code;
    free(set);
    return call_end(DONE);
}

EXPORT enum code nvmlDeviceGetSupportedEventTypes(struct gpu *device, unsigned long long *types)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (types == NULL)
        return call_end(INVALID_ARGUMENT);
    *types = EVENT_XID;
    return call_end(DONE);
}

EXPORT enum code nvmlDeviceRegisterEvents(struct gpu *device, unsigned long long types, struct event_set *set)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (set == NULL)
        return call_end(INVALID_ARGUMENT);
    if ((types & ~(unsigned long long)EVENT_XID) != 0)
        return call_end(NOT_SUPPORTED);
    unsigned index = (unsigned)(device - the_machine()->gpus);
    if (!set->gpus[index].registered)
        set->gpus[index].since_s = call_time();
    set->gpus[index].registered = true;
    set->gpus[index].types |= types;
    return call_end(DONE);
}

/* The next event that has happened, or GPU_IS_LOST where a GPU of the set is lost and nothing else is to tell; else TIMED_OUT. */
static enum code look(struct event_set *set, struct event_data *data)
{
    struct machine *machine = the_machine();
    while (set->next < machine->steps_done) {
        const struct step *step = &machine->steps[set->next++];
        if (step->xid == 0 || (set->gpus[step->gpu].types & EVENT_XID) == 0 || step->after_s < set->gpus[step->gpu].since_s)
            continue;
        *data = (struct event_data){&machine->gpus[step->gpu], EVENT_XID, step->xid, ~0u, ~0u};
        return DONE;
    }
    for (unsigned i = 0; i < machine->gpu_count; i++)
        if (set->gpus[i].registered && gpu_look(&machine->gpus[i]) == GPU_IS_LOST)
            return GPU_IS_LOST;
    return TIMED_OUT;
}

EXPORT enum code nvmlEventSetWait_v2(struct event_set *set, struct event_data *data, unsigned timeout_ms)
{
    static const struct timespec nap = {0, 5000000};
    double start = NAN; /* the time itself may be negative */
    for (;;) {
        enum code code = library_begin(__func__);
        if (code != DONE)
            return code;
        double now = call_time();
        start = isnan(start) ? now : start;
        code = set == NULL || data == NULL ? INVALID_ARGUMENT : look(set, data);
        call_end(code);
        if (code != TIMED_OUT || (now - start) * 1e3 >= timeout_ms)
            return code;
        nanosleep(&nap, NULL);
    }
}
