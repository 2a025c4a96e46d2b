/* NVLink, and what PCIe moves. A GPU without links does not support it; a link beyond the last is no argument. */
#define _POSIX_C_SOURCE 200809L
#include <stddef.h>
#include <time.h>

#include "call.h"
#include "pci_info.h"

static enum code link_begin(const struct gpu *device, const char *function, unsigned number, const struct link **link)
{
    enum code code = call_begin(device, function);
    if (code != DONE)
        return code;
    if (!device->has_links)
        return call_end(NOT_SUPPORTED);
    if (number >= MOST_LINKS || !device->links[number].exists)
        return call_end(INVALID_ARGUMENT);
    *link = &device->links[number];
    return DONE;
}

static enum code answer(const struct gpu *device, const char *function, unsigned number, enum link_reading which, unsigned *value)
{
    const struct link *link = NULL;
    double real = 0.0;
    enum code code = link_begin(device, function, number, &link);
    if (code != DONE)
        return code;
    code = value == NULL ? INVALID_ARGUMENT : link_value(link, which, &real);
    if (code == DONE)
        *value = (unsigned)real;
    return call_end(code);
}

EXPORT enum code nvmlDeviceGetNvLinkState(struct gpu *device, unsigned link, unsigned *active)
{
    return answer(device, __func__, link, LINK_active, active);
}

EXPORT enum code nvmlDeviceGetNvLinkVersion(struct gpu *device, unsigned link, unsigned *version)
{
    return answer(device, __func__, link, LINK_version, version);
}

EXPORT enum code nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu *device, unsigned link, unsigned *kind)
{
    return answer(device, __func__, link, LINK_remote_kind, kind);
}

EXPORT enum code nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *device, unsigned number, struct pci_info *info)
{
    const struct link *link = NULL;
    enum code code = link_begin(device, __func__, number, &link);
    if (code != DONE)
        return code;
    const char *address = link->texts[LINK_TEXT_remote_address];
    if (address == NULL || info == NULL)
        return call_end(info == NULL ? INVALID_ARGUMENT : NOT_SUPPORTED);
    pci_info_fill(info, address, 0, 0);
    return call_end(DONE);
}

EXPORT enum code nvmlDeviceGetNvLinkErrorCounter(struct gpu *device, unsigned number, unsigned counter, unsigned long long *count)
{
    static const enum link_reading readings[] = {
        [LINK_REPLAYS] = LINK_replays,         [LINK_RECOVERIES] = LINK_recoveries,   [LINK_CRC_FLIT] = LINK_crc_errors,
        [LINK_CRC_DATA] = LINK_crc_data_errors, [LINK_ECC_DATA] = LINK_ecc_errors,
    };
    const struct link *link = NULL;
    double value = 0.0;
    enum code code = link_begin(device, __func__, number, &link);
    if (code != DONE)
        return code;
    if (count == NULL || counter >= sizeof readings / sizeof *readings)
        return call_end(INVALID_ARGUMENT);
    code = link_value(link, readings[counter], &value);
    if (code == DONE)
        *count = (unsigned long long)value;
    return call_end(code);
}

/* The driver measures while it is asked. */
EXPORT enum code nvmlDeviceGetPcieThroughput(struct gpu *device, unsigned counter, unsigned *kilobytes_per_second)
{
    const struct timespec measured = {0, 20000000};
    enum gpu_reading which = counter == 0 ? GPU_pcie_tx_kbs : GPU_pcie_rx_kbs;
    enum code code = answer_unsigned(device, __func__, which, 1.0, counter <= 1 ? kilobytes_per_second : NULL);
    if (code == DONE)
        nanosleep(&measured, NULL);
    return code;
}
