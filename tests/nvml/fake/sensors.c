/* What a GPU does at this moment: temperatures, power, clocks, fans, load. */
#include "call.h"

static enum code whole(const struct gpu *device, enum gpu_reading which, int *answer)
{
    double value = 0.0;
    enum code code = gpu_value(device, which, &value);
    if (code == DONE)
        *answer = (int)value;
    return code;
}

EXPORT enum code nvmlDeviceGetTemperatureV(struct gpu *device, struct temperature *answer)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (answer == NULL || answer->version != VERSION(struct temperature, 1))
        return call_end(answer == NULL ? INVALID_ARGUMENT : ARGUMENT_VERSION_MISMATCH);
    return call_end(answer->sensor == 0 ? whole(device, GPU_temperature_c, &answer->celsius) : INVALID_ARGUMENT);
}

EXPORT enum code nvmlDeviceGetTemperature(struct gpu *device, unsigned sensor, unsigned *celsius)
{
    return answer_unsigned(device, __func__, GPU_temperature_c, 1.0, sensor == 0 ? celsius : NULL);
}

EXPORT enum code nvmlDeviceGetMarginTemperature(struct gpu *device, struct margin *answer)
{
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (answer == NULL || answer->version != VERSION(struct margin, 1))
        return call_end(answer == NULL ? INVALID_ARGUMENT : ARGUMENT_VERSION_MISMATCH);
    return call_end(whole(device, GPU_temperature_margin_c, &answer->celsius));
}

EXPORT enum code nvmlDeviceGetTemperatureThreshold(struct gpu *device, unsigned threshold, unsigned *celsius)
{
    static const enum gpu_reading readings[] = {
        [THRESHOLD_SHUTDOWN] = GPU_shutdown_temperature_c,
        [THRESHOLD_SLOWDOWN] = GPU_slowdown_temperature_c,
        [THRESHOLD_MEMORY_MAX] = GPU_memory_max_temperature_c,
        [THRESHOLD_GPU_MAX] = GPU_max_temperature_c,
    };
    bool known = threshold < sizeof readings / sizeof *readings;
    return answer_unsigned(device, __func__, readings[known ? threshold : 0], 1.0, known ? celsius : NULL);
}

EXPORT enum code nvmlDeviceGetPowerUsage(struct gpu *device, unsigned *milliwatts)
{
    return answer_unsigned(device, __func__, GPU_power_w, 1e3, milliwatts);
}

EXPORT enum code nvmlDeviceGetTotalEnergyConsumption(struct gpu *device, unsigned long long *millijoules)
{
    return answer_wide(device, __func__, GPU_energy_j, 1e3, millijoules);
}

EXPORT enum code nvmlDeviceGetEnforcedPowerLimit(struct gpu *device, unsigned *milliwatts)
{
    return answer_unsigned(device, __func__, GPU_power_limit_w, 1e3, milliwatts);
}

EXPORT enum code nvmlDeviceGetPowerManagementLimit(struct gpu *device, unsigned *milliwatts)
{
    return answer_unsigned(device, __func__, GPU_power_limit_w, 1e3, milliwatts);
}

EXPORT enum code nvmlDeviceGetPowerManagementDefaultLimit(struct gpu *device, unsigned *milliwatts)
{
    return answer_unsigned(device, __func__, GPU_power_limit_default_w, 1e3, milliwatts);
}

EXPORT enum code nvmlDeviceGetPowerManagementLimitConstraints(struct gpu *device, unsigned *least, unsigned *most)
{
    enum code code = answer_unsigned(device, __func__, GPU_power_limit_min_w, 1e3, least);
    return code == DONE ? answer_unsigned(device, __func__, GPU_power_limit_max_w, 1e3, most) : code;
}

static enum code clock(const struct gpu *device, const char *function, enum gpu_reading sm, enum gpu_reading memory,
                       unsigned which, unsigned *mhz)
{
    if (which == CLOCK_GRAPHICS || which == CLOCK_SM)
        return answer_unsigned(device, function, sm, 1.0, mhz);
    return answer_unsigned(device, function, memory, 1.0, which == CLOCK_MEMORY ? mhz : NULL);
}

EXPORT enum code nvmlDeviceGetClockInfo(struct gpu *device, unsigned which, unsigned *mhz)
{
    return clock(device, __func__, GPU_sm_clock_mhz, GPU_memory_clock_mhz, which, mhz);
}

EXPORT enum code nvmlDeviceGetMaxClockInfo(struct gpu *device, unsigned which, unsigned *mhz)
{
    return clock(device, __func__, GPU_max_sm_clock_mhz, GPU_max_memory_clock_mhz, which, mhz);
}

EXPORT enum code nvmlDeviceGetPerformanceState(struct gpu *device, unsigned *state)
{
    return answer_unsigned(device, __func__, GPU_performance_state, 1.0, state);
}

EXPORT enum code nvmlDeviceGetCurrentClocksEventReasons(struct gpu *device, unsigned long long *reasons)
{
    return answer_wide(device, __func__, GPU_clock_event_reasons, 1.0, reasons);
}

EXPORT enum code nvmlDeviceGetCurrentClocksThrottleReasons(struct gpu *device, unsigned long long *reasons)
{
    return answer_wide(device, __func__, GPU_clock_event_reasons, 1.0, reasons);
}

EXPORT enum code nvmlDeviceGetViolationStatus(struct gpu *device, unsigned policy, struct violation *answer)
{
    static const enum gpu_reading readings[] = {
        [POLICY_POWER] = GPU_power_cap_ns,
        [POLICY_THERMAL] = GPU_sw_thermal_ns,
        [POLICY_SYNC_BOOST] = GPU_sync_boost_ns,
    };
    double value = 0.0;
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    if (answer == NULL || policy >= sizeof readings / sizeof *readings)
        return call_end(answer == NULL ? INVALID_ARGUMENT : NOT_SUPPORTED);
    code = gpu_value(device, readings[policy], &value);
    if (code == DONE)
        *answer = (struct violation){(unsigned long long)(call_time() * 1e9), (unsigned long long)value};
    return call_end(code);
}

EXPORT enum code nvmlDeviceGetUtilizationRates(struct gpu *device, struct utilisation *answer)
{
    double gpu = 0.0, memory = 0.0;
    enum code code = call_begin(device, __func__);
    if (code != DONE)
        return code;
    code = answer == NULL ? INVALID_ARGUMENT : gpu_value(device, GPU_utilisation_percent, &gpu);
    if (code == DONE && gpu_value(device, GPU_memory_utilisation_percent, &memory) != DONE)
        memory = 0.0;
    if (code == DONE)
        *answer = (struct utilisation){(unsigned)gpu, (unsigned)memory};
    return call_end(code);
}

EXPORT enum code nvmlDeviceGetNumFans(struct gpu *device, unsigned *fans)
{
    return answer_unsigned(device, __func__, GPU_fans, 1.0, fans);
}

EXPORT enum code nvmlDeviceGetFanSpeed(struct gpu *device, unsigned *percent)
{
    return answer_unsigned(device, __func__, GPU_fan_percent, 1.0, percent);
}

EXPORT enum code nvmlDeviceGetFanSpeed_v2(struct gpu *device, unsigned fan, unsigned *percent)
{
    unsigned fans = 0;
    enum code code = answer_unsigned(device, __func__, GPU_fans, 1.0, &fans);
    return code == DONE ? answer_unsigned(device, __func__, GPU_fan_percent, 1.0, fan < fans ? percent : NULL) : code;
}
