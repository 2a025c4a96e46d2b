/* The machine that a description describes, as it is at one moment. */
#ifndef FAKE_MACHINE_H
#define FAKE_MACHINE_H

#include "json.h"
#include "readings.h"

enum { MOST_GPUS = 16, MOST_LINKS = 36, MOST_PROCESSES = 16, MOST_REFUSALS = 16, MOST_STEPS = 64, CPU_WORDS = 16 };
enum { MOST_PAIRS = MOST_GPUS * (MOST_GPUS - 1) / 2 };

struct link {
    bool exists;
    struct reading readings[LINK_READING_COUNT];
    const char *texts[LINK_TEXT_COUNT];
};

struct process {
    unsigned pid;
    bool memory_known;
    double memory_bytes;
    const char *name;
};

struct processes {
    bool known;
    unsigned count;
    struct process list[MOST_PROCESSES];
};

/* A set of small numbers: logical CPUs, or NUMA nodes. */
struct set {
    bool known;
    unsigned long long words[CPU_WORDS];
};

/* A function that answers with an error, by its name; "field 82" for one value of nvmlDeviceGetFieldValues. */
struct refusal {
    const char *function;
    unsigned code;
};

struct refusals {
    unsigned count;
    struct refusal list[MOST_REFUSALS];
};

struct gpu {
    struct reading readings[GPU_READING_COUNT];
    const char *texts[GPU_TEXT_COUNT];
    bool has_links;
    struct link links[MOST_LINKS];
    struct processes compute, graphics;
    struct set cpu_affinity, memory_affinity;
    struct refusals refuse;
    double spent_j, spent_until_s; /* what it took until that moment, in seconds since boot, where its energy follows its power */
};

struct pair {
    unsigned a, b; /* a < b */
    struct reading path, p2p, p2p_nvlink;
};

/* What changes at a moment: of one GPU, or of all where `gpu` is -1. `xid` is 0 where no event comes. */
struct step {
    double after_s;
    int gpu;
    const struct json *set, *grow;
    unsigned xid;
};

struct machine {
    const char *driver_version, *nvml_version;
    bool has_cuda_version;
    int cuda_driver_version; /* as cuDriverGetVersion gives it: 12080 */
    unsigned init_error;
    bool init_hang, init_crash;
    unsigned gpu_count, pair_count, step_count, steps_done;
    struct gpu gpus[MOST_GPUS];
    struct pair pairs[MOST_PAIRS];
    struct step steps[MOST_STEPS];
    struct refusals refuse;
    double epoch_s; /* when the timeline begins, in seconds since boot */
};

/* load_machine.c: fills `machine` from a file. Gives false, and says why on standard error, for anything that it does not know. */
bool machine_load(struct machine *machine, const char *path);

/* load_gpu.c: what an object says of a GPU, and which of its readings grow from that moment on. */
bool gpu_set(struct gpu *gpu, const struct json *object, double at_s);
bool gpu_grow(struct gpu *gpu, const struct json *object, double at_s);

/* load_value.c: one value each; false, with a complaint, for another kind of value. */
bool complain(const struct json *where, const char *what);
bool value_reading(struct reading *reading, const struct reading_key *key, const struct json *value, double at_s);
bool value_text(const char **text, const struct json *value);
bool value_whole(const struct json *value, double least, double most, double *number);
bool value_set(struct set *set, const struct json *value);
bool value_processes(struct processes *processes, const struct json *value);
bool value_refusals(struct refusals *refusals, const struct json *value);

/* timeline.c: brings the machine to a moment, and reads what it then shows. */
bool machine_advance(struct machine *machine, double at_s);
double reading_at(const struct reading *reading, enum reading_kind kind, double at_s);
double energy_spent(const struct gpu *gpu, double boot_s);
bool gpu_flag(const struct gpu *gpu, enum gpu_reading which);

#endif
