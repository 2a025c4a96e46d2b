/* What this library and its callers agree on: return codes, numbers and layouts of NVML's binary interface that are used here. */
#ifndef FAKE_ABI_H
#define FAKE_ABI_H

#define EXPORT __attribute__((visibility("default")))

enum code {
    DONE = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMED_OUT = 10,
    FUNCTION_NOT_FOUND = 13,
    CORRUPTED_INFOROM = 14,
    GPU_IS_LOST = 15,
    OUT_OF_MEMORY = 20,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN_ERROR = 999,
};

enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY };
enum { THRESHOLD_SHUTDOWN, THRESHOLD_SLOWDOWN, THRESHOLD_MEMORY_MAX, THRESHOLD_GPU_MAX };
enum { CORRECTED, UNCORRECTED };
enum { VOLATILE, AGGREGATE };
enum { SINGLE_BIT, DOUBLE_BIT };
enum { LINK_REPLAYS, LINK_RECOVERIES, LINK_CRC_FLIT, LINK_CRC_DATA, LINK_ECC_DATA };
enum { P2P_READ, P2P_WRITE, P2P_NVLINK };
enum { POLICY_POWER, POLICY_THERMAL, POLICY_SYNC_BOOST };
enum { VALUE_UINT = 1, VALUE_ULLONG = 3, VALUE_INT = 5 };
enum { FIELD_END = 308, EVENT_XID = 8 };

struct pci_info {
    char short_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct memory {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct temperature {
    unsigned version, sensor;
    int celsius;
};

struct margin {
    unsigned version;
    int celsius;
};

struct utilisation {
    unsigned gpu, memory;
};

struct violation {
    unsigned long long reference_ns, violation_ns;
};

struct process_info {
    unsigned pid;
    unsigned long long memory_bytes; /* all ones: not known */
    unsigned gpu_instance, compute_instance;
};

struct field_value {
    unsigned field, scope;
    long long timestamp_us, latency_us;
    unsigned type, code;
    union {
        double real;
        unsigned number;
        int whole;
        unsigned long long wide;
    } value;
};

struct fabric_info {
    unsigned char cluster[16];
    unsigned status, clique, state;
};

/* Version 2, and version 3 with the summary. */
struct fabric_info_v {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique, state, health;
    unsigned char summary;
};

struct sram_errors {
    unsigned version;
    unsigned long long counts[11]; /* in all and since the driver's start, by the kind of SRAM */
    unsigned threshold_exceeded;
};

struct repair {
    unsigned version, channel_pending, tpc_pending;
};

struct unrepairable {
    unsigned version, unrepairable;
};

/* Banks by how many of their spare rows are left. */
struct bank_histogram {
    unsigned max, high, partial, low, none;
};

struct event_data {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

/* A version word: the size of the layout, and above it the number of the version. */
#define VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)
#define FABRIC_V2 0x02000024u
#define FABRIC_V3 0x03000028u

#endif
