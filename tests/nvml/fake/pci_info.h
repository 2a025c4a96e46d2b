/* NVML's record of a PCI address. */
#ifndef FAKE_PCI_INFO_H
#define FAKE_PCI_INFO_H

#include "abi.h"
#include "pci_address.h"

void pci_info_fill(struct pci_info *info, const char *bus_id, unsigned device_id, unsigned subsystem_id);

#endif
