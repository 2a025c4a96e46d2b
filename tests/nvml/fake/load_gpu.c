#include <string.h>

#include "machine.h"

static bool link_numbers(const struct json *object, unsigned *first, unsigned *last)
{
    const struct json *which = object->kind == JSON_OBJECT ? json_member(object, "link") : NULL;
    double low = 0.0, high = 0.0;
    if (which == NULL)
        return complain(object, "a link is an object with at least the key link");
    if (which->kind == JSON_LIST && which->count == 2) {
        if (!value_whole(which->first, 0.0, MOST_LINKS - 1, &low) ||
            !value_whole(which->first->next, low, MOST_LINKS - 1, &high))
            return false;
    } else {
        if (!value_whole(which, 0.0, MOST_LINKS - 1, &low))
            return false;
        high = low;
    }
    *first = (unsigned)low;
    *last = (unsigned)high;
    return true;
}

/* Where a key stands among the readings; `count` where it does not. */
static unsigned place(const struct reading_key *keys, unsigned count, const char *key)
{
    unsigned i = 0;
    while (i < count && strcmp(keys[i].key, key) != 0)
        i++;
    return i;
}

static unsigned text_place(const char *const *keys, unsigned count, const char *key)
{
    unsigned i = 0;
    while (i < count && strcmp(keys[i], key) != 0)
        i++;
    return i;
}

static bool link_set(struct link *link, const struct json *object, double at_s)
{
    link->exists = true;
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        unsigned reading = place(link_readings, LINK_READING_COUNT, member->key);
        unsigned text = text_place(link_texts, LINK_TEXT_COUNT, member->key);
        bool good = true;
        if (reading < LINK_READING_COUNT)
            good = value_reading(&link->readings[reading], &link_readings[reading], member, at_s);
        else if (text < LINK_TEXT_COUNT)
            good = value_text(&link->texts[text], member);
        else if (strcmp(member->key, "link") != 0)
            good = complain(member, "unknown key");
        if (!good)
            return false;
    }
    return link->readings[LINK_active].known || complain(object, "a link says whether it is active");
}

static bool reading_grow(struct reading *reading, const struct reading_key *key, const struct json *rate, double at_s)
{
    if (key->kind != COUNT && key->kind != REAL && key->kind != WHOLE)
        return complain(rate, "only a number can grow");
    if (rate->kind != JSON_NUMBER || !reading->known)
        return complain(rate, "a number each second was expected, of a reading that is described");
    reading->value = reading_at(reading, REAL, at_s);
    reading->per_s = rate->number;
    reading->since_s = at_s;
    return true;
}

static bool link_grow(struct link *link, const struct json *object, double at_s)
{
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        unsigned reading = place(link_readings, LINK_READING_COUNT, member->key);
        if (reading < LINK_READING_COUNT) {
            if (!reading_grow(&link->readings[reading], &link_readings[reading], member, at_s))
                return false;
        } else if (strcmp(member->key, "link") != 0)
            return complain(member, "unknown key");
    }
    return true;
}

/* The links of a list, each changed by `change`; a later entry for a link changes what an earlier one said. */
static bool links(struct gpu *gpu, const struct json *list, double at_s, bool (*change)(struct link *, const struct json *, double))
{
    if (list->kind != JSON_LIST)
        return complain(list, "a list of links was expected");
    gpu->has_links = true;
    for (const struct json *entry = list->first; entry != NULL; entry = entry->next) {
        unsigned first = 0, last = 0;
        if (!link_numbers(entry, &first, &last))
            return false;
        for (unsigned i = first; i <= last; i++)
            if (!change(&gpu->links[i], entry, at_s))
                return false;
    }
    return true;
}

/* One member of a GPU that is neither a reading nor a text. */
static bool compound(struct gpu *gpu, const struct json *member, double at_s)
{
    if (strcmp(member->key, "links") == 0)
        return links(gpu, member, at_s, link_set);
    if (strcmp(member->key, "compute_processes") == 0)
        return value_processes(&gpu->compute, member);
    if (strcmp(member->key, "graphics_processes") == 0)
        return value_processes(&gpu->graphics, member);
    if (strcmp(member->key, "cpu_affinity") == 0)
        return value_set(&gpu->cpu_affinity, member);
    if (strcmp(member->key, "memory_affinity") == 0)
        return value_set(&gpu->memory_affinity, member);
    if (strcmp(member->key, "refuse") == 0)
        return value_refusals(&gpu->refuse, member);
    return complain(member, "unknown key");
}

bool gpu_set(struct gpu *gpu, const struct json *object, double at_s)
{
    if (object->kind != JSON_OBJECT)
        return complain(object, "an object was expected");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        unsigned reading = place(gpu_readings, GPU_READING_COUNT, member->key);
        unsigned text = text_place(gpu_texts, GPU_TEXT_COUNT, member->key);
        bool good;
        if (reading < GPU_READING_COUNT)
            good = value_reading(&gpu->readings[reading], &gpu_readings[reading], member, at_s);
        else if (text < GPU_TEXT_COUNT)
            good = value_text(&gpu->texts[text], member);
        else
            good = compound(gpu, member, at_s);
        if (!good)
            return false;
    }
    return true;
}

bool gpu_grow(struct gpu *gpu, const struct json *object, double at_s)
{
    if (object->kind != JSON_OBJECT)
        return complain(object, "an object was expected");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        unsigned reading = place(gpu_readings, GPU_READING_COUNT, member->key);
        bool good;
        if (reading < GPU_READING_COUNT)
            good = reading_grow(&gpu->readings[reading], &gpu_readings[reading], member, at_s);
        else if (strcmp(member->key, "links") == 0)
            good = links(gpu, member, at_s, link_grow);
        else
            good = complain(member, "unknown key");
        if (!good)
            return false;
    }
    return true;
}
