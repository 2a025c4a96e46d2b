/* CUDA C on a processor, for tests: threads one after the other, so no barriers, no shared memory, and no talk within a warp.
 *
 * `cuda_on_cpu.py` puts this before a .cu file, compiles both as C, and adds a function for each kernel that loops over its grid. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__ CUDA_KERNEL /* what cuda_on_cpu.py finds the kernels by; nothing, when they are compiled */
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ restrict
#define __align__(bytes) __attribute__((aligned(bytes)))

typedef struct { unsigned x, y, z; } uint3;
typedef struct __align__(8) { unsigned x, y; } uint2;
typedef struct __align__(16) { unsigned x, y, z, w; } uint4;
typedef struct __align__(16) { unsigned long long x, y; } ulonglong2;
static uint3 blockIdx __attribute__((unused)), threadIdx __attribute__((unused));
static uint3 blockDim __attribute__((unused)), gridDim __attribute__((unused));

#define __ldg(place) (*(place))
#define __ldcs(place) (*(place))
#define __ldcg(place) (*(place))
#define __stcs(place, value) ((void)(*(place) = (value)))
#define __stcg(place, value) ((void)(*(place) = (value)))

/* What each atomic operation makes of the value `old_` and the one given, `new_`; it gives back the old one. */
#define CUDA_ATOMIC(place, value, result)   \
    ({                                      \
        __typeof__(*(place)) *at_ = (place); \
        __typeof__(*at_) old_ = *at_;       \
        __typeof__(*at_) new_ = (value);    \
        *at_ = (result);                    \
        old_;                               \
    })
#define atomicAdd(place, value) CUDA_ATOMIC(place, value, old_ + new_)
#define atomicOr(place, value) CUDA_ATOMIC(place, value, old_ | new_)
#define atomicAnd(place, value) CUDA_ATOMIC(place, value, old_ & new_)
#define atomicXor(place, value) CUDA_ATOMIC(place, value, old_ ^ new_)
#define atomicMin(place, value) CUDA_ATOMIC(place, value, new_ < old_ ? new_ : old_)
#define atomicMax(place, value) CUDA_ATOMIC(place, value, new_ > old_ ? new_ : old_)
#define atomicExch(place, value) CUDA_ATOMIC(place, value, new_)
#define __threadfence() ((void)0)

#define __popc(value) __builtin_popcount(value)
#define __popcll(value) __builtin_popcountll(value)

#define CUDA_SAME_BITS(name, from, to)                   \
    static inline __attribute__((unused)) to name(from value) \
    {                                                    \
        to bits;                                         \
        memcpy(&bits, &value, sizeof bits);              \
        return bits;                                     \
    }
CUDA_SAME_BITS(__float_as_uint, float, unsigned)
CUDA_SAME_BITS(__uint_as_float, unsigned, float)
CUDA_SAME_BITS(__double_as_longlong, double, long long)
CUDA_SAME_BITS(__longlong_as_double, long long, double)
