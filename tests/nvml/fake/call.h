/* What every call does first and last. */
#ifndef FAKE_CALL_H
#define FAKE_CALL_H

#include "abi.h"
#include "machine.h"

/* Locks the library and brings its machine to this moment. Anything but DONE is the call's answer, and the lock is open again. */
enum code library_begin(const char *function);

/* The same for a call of a GPU: one that hangs is waited for without end, one that crashes ends the process. */
enum code call_begin(const struct gpu *gpu, const char *function);

/* Between begin and end: whether it is a GPU of ours that answers, for a call of several. */
enum code gpu_look(const struct gpu *gpu);

/* Opens the lock; gives `code` back. */
enum code call_end(enum code code);

/* Between begin and end: the machine, and seconds since its start. */
struct machine *the_machine(void);
double call_time(void);

/* Between begin and end: the code with which a description refuses this function (or field) for this GPU; DONE if it does not. */
enum code refused(const struct gpu *gpu, const char *function);

/* A GPU's reading as the answer of a whole call: `scale` times the value. */
enum code answer_unsigned(const struct gpu *gpu, const char *function, enum gpu_reading which, double scale, unsigned *answer);
enum code answer_wide(const struct gpu *gpu, const char *function, enum gpu_reading which, double scale, unsigned long long *answer);
enum code answer_text(const struct gpu *gpu, const char *function, enum gpu_text which, char *answer, unsigned size);

/* Between begin and end: a reading's value now; NOT_SUPPORTED where it is not described. */
enum code gpu_value(const struct gpu *gpu, enum gpu_reading which, double *value);
enum code link_value(const struct link *link, enum link_reading which, double *value);
enum code copy_text(const char *text, char *answer, unsigned size);

#endif
