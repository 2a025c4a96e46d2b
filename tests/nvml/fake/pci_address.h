/* PCI addresses and ids as NVML writes them. */
#ifndef FAKE_PCI_ADDRESS_H
#define FAKE_PCI_ADDRESS_H

#include <stdbool.h>

struct pci_address {
    unsigned domain, bus, device, function;
};

/* Reads "00000000:01:00.0"; false for anything else, NULL too. */
bool pci_address(const char *text, struct pci_address *address);

/* Whether it is "10de:2684" or NULL; `pci_id_word` gives it as NVML does, the device above the vendor, and 0 for NULL. */
bool pci_ids(const char *text);
unsigned pci_id_word(const char *text);

#endif
