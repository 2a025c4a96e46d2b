#include <math.h>
#include <stddef.h>

#include "machine.h"

double energy_spent(const struct gpu *gpu, double boot_s)
{
    bool follows = gpu_flag(gpu, GPU_energy_follows_power);
    return gpu->spent_j + (follows ? gpu->readings[GPU_power_w].value * (boot_s - gpu->spent_until_s) : 0.0);
}

static bool apply(struct gpu *gpu, const struct step *step, double boot_s)
{
    gpu->spent_j = energy_spent(gpu, boot_s);
    gpu->spent_until_s = boot_s;
    return (step->set == NULL || gpu_set(gpu, step->set, step->after_s)) &&
           (step->grow == NULL || gpu_grow(gpu, step->grow, step->after_s));
}

bool machine_advance(struct machine *machine, double at_s)
{
    for (; machine->steps_done < machine->step_count; machine->steps_done++) {
        const struct step *step = &machine->steps[machine->steps_done];
        if (step->after_s > at_s)
            return true;
        for (unsigned i = 0; i < machine->gpu_count; i++)
            if ((step->gpu < 0 || (unsigned)step->gpu == i) && !apply(&machine->gpus[i], step, machine->epoch_s + step->after_s))
                return false;
    }
    return true;
}

double reading_at(const struct reading *reading, enum reading_kind kind, double at_s)
{
    double now = reading->value + reading->per_s * fmax(0.0, at_s - reading->since_s);
    return kind == REAL || reading->per_s == 0.0 ? now : floor(now);
}

bool gpu_flag(const struct gpu *gpu, enum gpu_reading which)
{
    return gpu->readings[which].known && gpu->readings[which].value != 0.0;
}
