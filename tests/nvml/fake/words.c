#include "words.h"

#include <stddef.h>
#include <string.h>

const struct word compute_modes[] = {
    {"default", 0}, {"exclusive-thread", 1}, {"prohibited", 2}, {"exclusive-process", 3}, {NULL, 0},
};
const struct word virtualisation_modes[] = {
    {"none", 0}, {"passthrough", 1}, {"vgpu", 2}, {"host-vgpu", 3}, {"host-vsga", 4}, {NULL, 0},
};
const struct word fabric_states[] = {
    {"not-supported", 0}, {"not-started", 1}, {"in-progress", 2}, {"completed", 3}, {NULL, 0},
};
const struct word event_reasons[] = { /* bits */
    {"gpu-idle", 0x1}, {"clocks-setting", 0x2}, {"sw-power-cap", 0x4}, {"hw-slowdown", 0x8}, {"sync-boost", 0x10},
    {"sw-thermal", 0x20}, {"hw-thermal", 0x40}, {"hw-power-brake", 0x80}, {"display-clocks", 0x100},
    {"one-of-tomorrow", 0x8000}, {NULL, 0},
};
const struct word link_versions[] = {
    {"1.0", 1}, {"2.0", 2}, {"2.2", 3}, {"3.0", 4}, {"3.1", 5}, {"4.0", 6}, {"5.0", 7}, {"6.0", 8}, {NULL, 0},
};
const struct word link_ends[] = {{"gpu", 0}, {"npu", 1}, {"switch", 2}, {"unknown", 0xff}, {NULL, 0}};
const struct word pair_paths[] = {
    {"INTERNAL", 0}, {"PIX", 10}, {"PXB", 20}, {"PHB", 30}, {"NODE", 40}, {"SYS", 50}, {NULL, 0},
};
const struct word p2p_states[] = {
    {"ok", 0}, {"chipset-not-supported", 1}, {"gpu-not-supported", 2}, {"topology-not-supported", 3},
    {"disabled-by-regkey", 4}, {"not-supported", 5}, {"unknown", 6}, {NULL, 0},
};

bool word_number(const struct word *table, const char *text, unsigned *number)
{
    for (; table->text != NULL; table++)
        if (strcmp(table->text, text) == 0) {
            *number = table->number;
            return true;
        }
    return false;
}
