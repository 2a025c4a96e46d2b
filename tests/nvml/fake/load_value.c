#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "abi.h"
#include "machine.h"

#define AS_KEY(name, kind, table) {#name, kind, table},
#define AS_NAME(name) #name,

const struct reading_key gpu_readings[] = {GPU_READINGS(AS_KEY)};
const struct reading_key link_readings[] = {LINK_READINGS(AS_KEY)};
const char *const gpu_texts[] = {GPU_TEXTS(AS_NAME)};
const char *const link_texts[] = {LINK_TEXTS(AS_NAME)};

static const double LARGEST_WHOLE = 9007199254740992.0; /* above it a double skips numbers */

bool complain(const struct json *where, const char *what)
{
    fprintf(stderr, "fake NVML: line %d%s%s: %s\n", where->line, where->key == NULL ? "" : ": ",
            where->key == NULL ? "" : where->key, what);
    return false;
}

bool value_whole(const struct json *value, double least, double most, double *number)
{
    if (value->kind != JSON_NUMBER || value->number != floor(value->number))
        return complain(value, "a whole number was expected");
    if (value->number < least || value->number > most)
        return complain(value, "the number is outside its range");
    *number = value->number;
    return true;
}

static bool bits(const struct word *table, const struct json *value, double *number)
{
    unsigned sum = 0, bit;
    if (value->kind != JSON_LIST)
        return complain(value, "a list of words was expected");
    for (const struct json *entry = value->first; entry != NULL; entry = entry->next) {
        if (entry->kind != JSON_TEXT || !word_number(table, entry->text, &bit))
            return complain(entry, "an unknown word");
        sum |= bit;
    }
    *number = sum;
    return true;
}

bool value_reading(struct reading *reading, const struct reading_key *key, const struct json *value, double at_s)
{
    double number = 0.0;
    unsigned word = 0;
    bool good = true;
    if (value->kind == JSON_NULL) {
        *reading = (struct reading){false, 0.0, 0.0, at_s};
        return true;
    }
    switch (key->kind) {
    case COUNT:
        good = value_whole(value, 0.0, LARGEST_WHOLE, &number);
        break;
    case WHOLE:
        good = value_whole(value, -1e9, 1e9, &number);
        break;
    case REAL:
        good = value->kind == JSON_NUMBER || complain(value, "a number was expected");
        number = value->number;
        break;
    case FLAG:
        good = value->kind == JSON_BOOL || complain(value, "true or false was expected");
        number = value->truth;
        break;
    case WORD:
        good = (value->kind == JSON_TEXT && word_number(key->table, value->text, &word)) || complain(value, "an unknown word");
        number = word;
        break;
    case BITS:
        good = bits(key->table, value, &number);
        break;
    }
    if (good)
        *reading = (struct reading){true, number, 0.0, at_s};
    return good;
}

bool value_text(const char **text, const struct json *value)
{
    if (value->kind != JSON_TEXT && value->kind != JSON_NULL)
        return complain(value, "a text was expected");
    *text = value->kind == JSON_NULL ? NULL : value->text;
    return true;
}

/* One number, or a list of the first and the last of several. */
static bool span(const struct json *value, double *first, double *last)
{
    static const double most = CPU_WORDS * 64 - 1;
    if (value->kind == JSON_LIST && value->count == 2)
        return value_whole(value->first, 0.0, most, first) && value_whole(value->first->next, *first, most, last);
    bool good = value_whole(value, 0.0, most, first);
    *last = *first;
    return good;
}

bool value_set(struct set *set, const struct json *value)
{
    *set = (struct set){false, {0}};
    if (value->kind == JSON_NULL)
        return true;
    if (value->kind != JSON_LIST)
        return complain(value, "a list of numbers, or of [first, last], was expected");
    for (const struct json *entry = value->first; entry != NULL; entry = entry->next) {
        double first = 0.0, last = 0.0;
        if (!span(entry, &first, &last))
            return false;
        for (unsigned member = (unsigned)first; member <= (unsigned)last; member++)
            set->words[member / 64] |= 1ULL << (member % 64);
    }
    set->known = true;
    return true;
}

static bool one_process(struct process *process, const struct json *object)
{
    static const struct reading_key memory = {"memory_bytes", COUNT, NULL};
    struct reading bytes = {false, 0.0, 0.0, 0.0};
    double pid = 0.0;
    if (object->kind != JSON_OBJECT || json_member(object, "pid") == NULL)
        return complain(object, "a process is an object with at least a pid");
    *process = (struct process){0, false, 0.0, NULL};
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        bool good;
        if (strcmp(member->key, "pid") == 0)
            good = value_whole(member, 1.0, 4294967295.0, &pid);
        else if (strcmp(member->key, "memory_bytes") == 0)
            good = value_reading(&bytes, &memory, member, 0.0);
        else if (strcmp(member->key, "name") == 0)
            good = value_text(&process->name, member);
        else
            good = complain(member, "unknown key");
        if (!good)
            return false;
    }
    process->pid = (unsigned)pid;
    process->memory_known = bytes.known;
    process->memory_bytes = bytes.value;
    return true;
}

bool value_processes(struct processes *processes, const struct json *value)
{
    processes->count = 0;
    processes->known = value->kind != JSON_NULL;
    if (value->kind == JSON_NULL)
        return true;
    if (value->kind != JSON_LIST || value->count > MOST_PROCESSES)
        return complain(value, "a list of at most 16 processes was expected");
    for (const struct json *entry = value->first; entry != NULL; entry = entry->next)
        if (!one_process(&processes->list[processes->count++], entry))
            return false;
    return true;
}

/* Whether this library has that function: a misspelt name would refuse nothing. */
static bool is_function(const char *name)
{
    Dl_info here;
    unsigned field;
    int end = 0;
    if (sscanf(name, "field %u%n", &field, &end) == 1 && name[end] == '\0')
        return field > 0 && field < FIELD_END;
    if (strncmp(name, "nvml", 4) != 0 || dladdr((const void *)gpu_readings, &here) == 0)
        return false;
    void *self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return self != NULL && dlsym(self, name) != NULL;
}

bool value_refusals(struct refusals *refusals, const struct json *value)
{
    if (value->kind != JSON_OBJECT)
        return complain(value, "an object of functions and error codes was expected");
    for (const struct json *member = value->first; member != NULL; member = member->next) {
        double code = 0.0;
        if (!is_function(member->key))
            return complain(member, "unknown key: no function of this library");
        if (!value_whole(member, 1.0, 999.0, &code))
            return false;
        if (refusals->count == MOST_REFUSALS)
            return complain(member, "too many refusals");
        refusals->list[refusals->count++] = (struct refusal){member->key, (unsigned)code};
    }
    return true;
}
