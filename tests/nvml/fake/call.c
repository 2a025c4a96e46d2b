#define _GNU_SOURCE
#include "call.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct machine machine;
static enum { UNREAD, READ, UNREADABLE } state;
static unsigned users;
static double epoch_s;
static unsigned long calls[MOST_GPUS]; /* that this process has made on each GPU */
static const char *beginning; /* a file that will hold the epoch: until it is there, nothing of the timeline happens */

enum { NEVER_S = 1000000000 };
static const double SWING_PER_S = 1.7; /* radians: no two of the samples that are taken beside each other are alike */

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void look_for_beginning(void)
{
    double found;
    FILE *file = fopen(beginning, "r");
    if (file == NULL)
        return;
    if (fscanf(file, "%lf", &found) == 1) {
        epoch_s = found;
        beginning = NULL;
    }
    fclose(file);
}

static bool read_description(void)
{
    const char *path = getenv("RIGPROOF_FAKE_NVML"), *epoch = getenv("RIGPROOF_FAKE_NVML_EPOCH");
    char *end = NULL;
    if (path == NULL) {
        fprintf(stderr, "fake NVML: RIGPROOF_FAKE_NVML names no description\n");
        return false;
    }
    if (epoch != NULL && epoch[0] == '/') {
        beginning = epoch;
        epoch_s = now_s() + NEVER_S;
        return machine_load(&machine, path);
    }
    epoch_s = epoch == NULL ? now_s() : strtod(epoch, &end);
    if (epoch != NULL && (end == epoch || *end != '\0')) {
        fprintf(stderr, "fake NVML: RIGPROOF_FAKE_NVML_EPOCH is not a number of seconds\n");
        return false;
    }
    return machine_load(&machine, path);
}

static void stand_still(void)
{
    for (;;)
        pause();
}

enum code library_open(void)
{
    pthread_mutex_lock(&lock);
    if (state == UNREAD)
        state = read_description() ? READ : UNREADABLE;
    enum code code = state == UNREADABLE ? UNKNOWN_ERROR : machine.init_error;
    bool hang = state == READ && machine.init_hang, crash = state == READ && machine.init_crash;
    users += code == DONE;
    pthread_mutex_unlock(&lock);
    if (crash)
        abort();
    if (hang)
        stand_still();
    return code;
}

enum code library_close(void)
{
    pthread_mutex_lock(&lock);
    enum code code = users == 0 ? UNINITIALIZED : DONE;
    users -= users > 0;
    return call_end(code);
}

static enum code refusal(const struct refusals *refusals, const char *function)
{
    for (unsigned i = 0; i < refusals->count; i++)
        if (strcmp(refusals->list[i].function, function) == 0)
            return refusals->list[i].code;
    return DONE;
}

enum code library_begin(const char *function)
{
    pthread_mutex_lock(&lock);
    if (users == 0)
        return call_end(UNINITIALIZED);
    if (beginning != NULL)
        look_for_beginning();
    machine.epoch_s = epoch_s;
    machine_advance(&machine, call_time());
    enum code code = refusal(&machine.refuse, function);
    return code == DONE ? DONE : call_end(code);
}

enum code gpu_look(const struct gpu *gpu)
{
    unsigned i = 0;
    while (i < machine.gpu_count && gpu != &machine.gpus[i])
        i++;
    if (i == machine.gpu_count)
        return INVALID_ARGUMENT;
    if (gpu_flag(gpu, GPU_crash))
        abort();
    if (gpu_flag(gpu, GPU_hang)) {
        call_end(DONE); /* the other GPUs go on */
        stand_still();
    }
    const struct reading *most = &gpu->readings[GPU_lost_after_calls];
    bool over = calls[i]++ >= most->value && most->known;
    return gpu_flag(gpu, GPU_lost) || over ? GPU_IS_LOST : DONE;
}

enum code call_begin(const struct gpu *gpu, const char *function)
{
    enum code code = library_begin(function);
    if (code != DONE)
        return code;
    code = gpu_look(gpu);
    if (code == DONE)
        code = refusal(&gpu->refuse, function);
    return code == DONE ? DONE : call_end(code);
}

enum code call_end(enum code code)
{
    pthread_mutex_unlock(&lock);
    return code;
}

struct machine *the_machine(void)
{
    return &machine;
}

double call_time(void)
{
    return now_s() - epoch_s;
}

enum code refused(const struct gpu *gpu, const char *function)
{
    enum code code = refusal(&machine.refuse, function);
    return code == DONE ? refusal(&gpu->refuse, function) : code;
}

enum code gpu_value(const struct gpu *gpu, enum gpu_reading which, double *value)
{
    const struct reading *reading = &gpu->readings[which];
    *value = reading_at(reading, gpu_readings[which].kind, call_time());
    if (which == GPU_energy_j)
        *value += energy_spent(gpu, now_s());
    if (which == GPU_power_w && gpu->readings[GPU_power_swing_w].known)
        *value += gpu->readings[GPU_power_swing_w].value * sin(SWING_PER_S * now_s());
    return reading->known ? DONE : NOT_SUPPORTED;
}

enum code link_value(const struct link *link, enum link_reading which, double *value)
{
    const struct reading *reading = &link->readings[which];
    *value = reading_at(reading, link_readings[which].kind, call_time());
    return reading->known ? DONE : NOT_SUPPORTED;
}

enum code copy_text(const char *text, char *answer, unsigned size)
{
    if (text == NULL)
        return NOT_SUPPORTED;
    if (answer == NULL)
        return INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(answer, text);
    return DONE;
}

enum code answer_wide(const struct gpu *gpu, const char *function, enum gpu_reading which, double scale, unsigned long long *answer)
{
    double value = 0.0;
    enum code code = call_begin(gpu, function);
    if (code != DONE)
        return code;
    code = answer == NULL ? INVALID_ARGUMENT : gpu_value(gpu, which, &value);
    if (code == DONE)
        *answer = (unsigned long long)(value * scale + 0.5 * (scale != 1.0));
    return call_end(code);
}

enum code answer_unsigned(const struct gpu *gpu, const char *function, enum gpu_reading which, double scale, unsigned *answer)
{
    unsigned long long wide = 0;
    enum code code = answer == NULL ? INVALID_ARGUMENT : answer_wide(gpu, function, which, scale, &wide);
    if (code == DONE)
        *answer = (unsigned)wide;
    return code;
}

enum code answer_text(const struct gpu *gpu, const char *function, enum gpu_text which, char *answer, unsigned size)
{
    enum code code = call_begin(gpu, function);
    return code == DONE ? call_end(copy_text(gpu->texts[which], answer, size)) : code;
}
