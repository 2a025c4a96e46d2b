/* Compares up to eight results with the one that they must all be, bit for bit, in one pass: each expected vector is read once for all
 * of them. Counts, for each result, the elements that differ, and of these the NaN and the infinite ones.
 *
 * C that is CUDA as well: the tests run this very text on a processor. Unused places of `results` hold `expected` itself.
 * Every pointer is a multiple of `width`; where one is no multiple of 16, elements are compared one by one. */

#define RESULTS 8

typedef struct {
    const unsigned char *at[RESULTS];
} Results;

/* What marks a number as infinite or NaN: all bits of the exponent. `kind` 0: integers, which are neither. */
#define KIND_INTEGER 0
#define KIND_F16 1
#define KIND_BF16 2
#define KIND_F32 3
#define KIND_F64 4

static __device__ unsigned long long element(const unsigned char *at, unsigned int width)
{
    if (width == 8)
        return *(const unsigned long long *)at;
    if (width == 4)
        return *(const unsigned int *)at;
    if (width == 2)
        return *(const unsigned short *)at;
    return *at;
}

static __device__ void count(unsigned long long got, unsigned int kind, unsigned long long *tally)
{
    unsigned long long exponent = 0, fraction = 0;
    if (kind == KIND_F16) {
        exponent = 0x7c00ull;
        fraction = 0x03ffull;
    } else if (kind == KIND_BF16) {
        exponent = 0x7f80ull;
        fraction = 0x007full;
    } else if (kind == KIND_F32) {
        exponent = 0x7f800000ull;
        fraction = 0x007fffffull;
    } else if (kind == KIND_F64) {
        exponent = 0x7ff0000000000000ull;
        fraction = 0x000fffffffffffffull;
    }
    atomicAdd(&tally[0], 1ull);
    if (kind != KIND_INTEGER && (got & exponent) == exponent)
        atomicAdd(&tally[(got & fraction) != 0 ? 1 : 2], 1ull);
}

/* The elements between two places of a result, one by one. */
static __device__ __noinline__ void elements(const unsigned char *expected, const unsigned char *got, unsigned long long from,
                                             unsigned long long to, unsigned int width, unsigned int kind,
                                             unsigned long long *tally)
{
    for (unsigned long long at = from; at < to; at += width) {
        const unsigned long long found = element(got + at, width);
        if (found != element(expected + at, width))
            count(found, kind, tally);
    }
}

/* tally: three counts for each of the eight results, then how many steps the first thread of each 32 took, all of which the caller has set
 * to 0: a comparison that was not made is told from one that found nothing. bytes: of one result, a multiple of `width`. */
extern "C" __global__ void compare(const unsigned char *expected, Results results, unsigned long long bytes,
                                   unsigned int width, unsigned int kind, unsigned long long *tally)
{
    const unsigned long long own = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long all = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long places = (unsigned long long)expected;
    for (int r = 0; r < RESULTS; r++)
        places |= (unsigned long long)results.at[r];
    unsigned long long steps = 0;
    const unsigned long long vectors = (places & 15ull) == 0 ? bytes / 16 : 0;
    for (unsigned long long v = own; v < vectors; v += all) {
        const uint4 want = __ldcs((const uint4 *)expected + v);
        steps++;
        uint4 have[RESULTS];
#pragma unroll
        for (int r = 0; r < RESULTS; r++)
            have[r] = __ldcs((const uint4 *)results.at[r] + v);
#pragma unroll
        for (int r = 0; r < RESULTS; r++)
            if (((want.x ^ have[r].x) | (want.y ^ have[r].y) | (want.z ^ have[r].z) | (want.w ^ have[r].w)) != 0)
                elements(expected, results.at[r], 16 * v, 16 * v + 16, width, kind, tally + 3 * r);
    }
    for (unsigned long long at = 16 * vectors + own * width; at < bytes; at += all * width) {
        steps++;
        for (int r = 0; r < RESULTS; r++)
            elements(expected, results.at[r], at, at + width, width, kind, tally + 3 * r);
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd(&tally[3 * RESULTS], steps);
}
