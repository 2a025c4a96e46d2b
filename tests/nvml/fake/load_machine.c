#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "pci_address.h"

static bool gpus(struct machine *machine, const struct json *list, const struct json *every)
{
    if (list == NULL || list->kind != JSON_LIST || list->count > MOST_GPUS) {
        fprintf(stderr, "fake NVML: the key gpus must be a list of at most %d GPUs\n", MOST_GPUS);
        return false;
    }
    for (const struct json *entry = list->first; entry != NULL; entry = entry->next) {
        struct gpu *gpu = &machine->gpus[machine->gpu_count++];
        struct pci_address address;
        int major, minor, end = 0;
        if ((every != NULL && !gpu_set(gpu, every, 0.0)) || !gpu_set(gpu, entry, 0.0))
            return false;
        if (gpu->texts[GPU_TEXT_uuid] == NULL || !pci_address(gpu->texts[GPU_TEXT_pci_bus_id], &address))
            return complain(entry, "a GPU has at least a uuid and a pci_bus_id like 00000000:01:00.0");
        if (!pci_ids(gpu->texts[GPU_TEXT_pci_device_id]) || !pci_ids(gpu->texts[GPU_TEXT_pci_subsystem_id]))
            return complain(entry, "PCI device and subsystem ids are like 10de:2684");
        const char *capability = gpu->texts[GPU_TEXT_compute_capability];
        if (capability != NULL && (sscanf(capability, "%d.%d%n", &major, &minor, &end) != 2 || capability[end] != '\0'))
            return complain(entry, "a compute_capability is like 9.0");
    }
    return true;
}

static bool one_pair(struct machine *machine, const struct json *object, unsigned a, unsigned b)
{
    static const struct reading_key path = {"path", WORD, pair_paths}, p2p = {"p2p", WORD, p2p_states};
    struct pair *pair = machine->pairs;
    while (pair < machine->pairs + machine->pair_count && (pair->a != a || pair->b != b))
        pair++;
    if (pair == machine->pairs + machine->pair_count) {
        machine->pair_count++;
        pair->a = a;
        pair->b = b;
    }
    if (object->kind != JSON_OBJECT)
        return complain(object, "an object was expected");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        bool good;
        if (strcmp(member->key, "path") == 0)
            good = value_reading(&pair->path, &path, member, 0.0);
        else if (strcmp(member->key, "p2p") == 0)
            good = value_reading(&pair->p2p, &p2p, member, 0.0);
        else if (strcmp(member->key, "p2p_nvlink") == 0)
            good = value_reading(&pair->p2p_nvlink, &p2p, member, 0.0);
        else
            good = complain(member, "unknown key");
        if (!good)
            return false;
    }
    return true;
}

/* "every" for all pairs, "0,1" for one; a later entry changes what an earlier one said. */
static bool pairs(struct machine *machine, const struct json *object)
{
    if (object->kind != JSON_OBJECT)
        return complain(object, "an object was expected");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        unsigned a, b;
        int end = 0;
        if (strcmp(member->key, "every") == 0) {
            for (a = 0; a < machine->gpu_count; a++)
                for (b = a + 1; b < machine->gpu_count; b++)
                    if (!one_pair(machine, member, a, b))
                        return false;
        } else if (sscanf(member->key, "%u,%u%n", &a, &b, &end) == 2 && member->key[end] == '\0' && a < b &&
                   b < machine->gpu_count) {
            if (!one_pair(machine, member, a, b))
                return false;
        } else
            return complain(member, "a pair is every or like 0,1: two GPUs that are described, the lower one first");
    }
    return true;
}

static bool one_step(struct machine *machine, const struct json *object)
{
    struct step *step = &machine->steps[machine->step_count];
    double number = 0.0;
    *step = (struct step){-1.0, -1, NULL, NULL, 0};
    if (object->kind != JSON_OBJECT)
        return complain(object, "an object was expected");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        bool good = true;
        if (strcmp(member->key, "after_s") == 0) {
            good = member->kind == JSON_NUMBER || complain(member, "seconds were expected");
            step->after_s = member->number;
        } else if (strcmp(member->key, "gpu") == 0) {
            good = value_whole(member, 0.0, (double)machine->gpu_count - 1.0, &number);
            step->gpu = good ? (int)number : -1;
        } else if (strcmp(member->key, "xid") == 0) {
            good = value_whole(member, 1.0, 9999.0, &number);
            step->xid = good ? (unsigned)number : 0;
        } else if (strcmp(member->key, "set") == 0)
            step->set = member;
        else if (strcmp(member->key, "grow") == 0)
            step->grow = member;
        else
            good = complain(member, "unknown key");
        if (!good)
            return false;
    }
    if (step->after_s < 0.0 || (machine->step_count > 0 && step->after_s < step[-1].after_s))
        return complain(object, "steps say after_s, and come in order of time");
    if (step->xid != 0 && step->gpu < 0)
        return complain(object, "an xid needs its gpu");
    machine->step_count++;
    return step->set != NULL || step->grow != NULL || step->xid != 0 || complain(object, "nothing happens in this step");
}

/* Every step is tried on a copy, so that a mistake is found now and not when its time has come. */
static bool timeline(struct machine *machine, const struct json *list)
{
    if (list->kind != JSON_LIST || list->count > MOST_STEPS)
        return complain(list, "a list of at most 64 steps was expected");
    for (const struct json *entry = list->first; entry != NULL; entry = entry->next)
        if (!one_step(machine, entry))
            return false;
    struct machine *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return complain(list, "no memory");
    *copy = *machine;
    bool good = machine_advance(copy, INFINITY);
    free(copy);
    return good;
}

static bool one_key(struct machine *machine, const struct json *member)
{
    double number = 0.0;
    if (strcmp(member->key, "driver_version") == 0)
        return value_text(&machine->driver_version, member);
    if (strcmp(member->key, "nvml_version") == 0)
        return value_text(&machine->nvml_version, member);
    if (strcmp(member->key, "cuda_driver_version") == 0) {
        machine->has_cuda_version = value_whole(member, 0.0, 1e6, &number);
        machine->cuda_driver_version = machine->has_cuda_version ? (int)number : 0;
        return machine->has_cuda_version;
    }
    if (strcmp(member->key, "init_error") == 0) {
        bool good = value_whole(member, 1.0, 999.0, &number);
        machine->init_error = good ? (unsigned)number : 0;
        return good;
    }
    if (strcmp(member->key, "init_hang") == 0 || strcmp(member->key, "init_crash") == 0) {
        *(member->key[5] == 'h' ? &machine->init_hang : &machine->init_crash) = member->truth;
        return member->kind == JSON_BOOL || complain(member, "true or false was expected");
    }
    if (strcmp(member->key, "refuse") == 0)
        return value_refusals(&machine->refuse, member);
    if (strcmp(member->key, "synthetic") == 0)
        return member->kind == JSON_BOOL || complain(member, "true or false was expected");
    if (strcmp(member->key, "source") == 0)
        return member->kind == JSON_TEXT || complain(member, "a text was expected");
    static const char *const later[] = {"gpus", "every_gpu", "pairs", "timeline"};
    for (unsigned i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(member->key, later[i]) == 0)
            return true;
    return complain(member, "unknown key");
}

bool machine_load(struct machine *machine, const char *path)
{
    char trouble[512];
    const struct json *document = json_read(path, trouble, sizeof trouble);
    if (document == NULL) {
        fprintf(stderr, "fake NVML: %s\n", trouble);
        return false;
    }
    if (document->kind != JSON_OBJECT)
        return complain(document, "an object was expected");
    for (const struct json *member = document->first; member != NULL; member = member->next)
        if (!one_key(machine, member))
            return false;
    if (json_member(document, "synthetic") == NULL)
        return complain(document, "a description says whether it is synthetic");
    const struct json *two = json_member(document, "pairs"), *steps = json_member(document, "timeline");
    return gpus(machine, json_member(document, "gpus"), json_member(document, "every_gpu")) &&
           (two == NULL || pairs(machine, two)) && (steps == NULL || timeline(machine, steps));
}
