#include "pci_address.h"

#include <stdio.h>
#include <string.h>

bool pci_address(const char *text, struct pci_address *address)
{
    int end = 0;
    if (text == NULL || strlen(text) != strlen("00000000:00:00.0"))
        return false;
    int found = sscanf(text, "%8x:%2x:%2x.%1u%n", &address->domain, &address->bus, &address->device, &address->function, &end);
    return found == 4 && text[end] == '\0' && text[8] == ':' && text[11] == ':';
}

static bool both(const char *text, unsigned *vendor, unsigned *device)
{
    int end = 0;
    return strlen(text) == strlen("10de:2684") && sscanf(text, "%4x:%4x%n", vendor, device, &end) == 2 && text[end] == '\0';
}

bool pci_ids(const char *text)
{
    unsigned vendor, device;
    return text == NULL || both(text, &vendor, &device);
}

unsigned pci_id_word(const char *text)
{
    unsigned vendor, device;
    return text != NULL && both(text, &vendor, &device) ? device << 16 | vendor : 0;
}
