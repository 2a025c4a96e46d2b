/* The words of the descriptions for NVML's numbers. */
#ifndef FAKE_WORDS_H
#define FAKE_WORDS_H

#include <stdbool.h>

struct word {
    const char *text; /* NULL after the last */
    unsigned number;
};

extern const struct word compute_modes[], virtualisation_modes[], fabric_states[], event_reasons[];
extern const struct word link_versions[], link_ends[], pair_paths[], p2p_states[];

/* Gives false for a word that is not in the table. */
bool word_number(const struct word *table, const char *text, unsigned *number);

#endif
