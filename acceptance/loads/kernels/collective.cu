/* The numbers that ranks send and receive (`acceptance.loads.collective.pattern`), as the GPU where
 * they lie makes and compares them itself.
 *
 * C that is CUDA as well: the tests run this very text on a processor. */

typedef unsigned long long word;

/* Places in a tally: elements that are wrong, and steps that were taken. */
#define WRONG 0
#define STEPS 1

/* Formats of an element. */
#define F32 0
#define I32 1
#define BF16 2
#define F16 3

/* Which numbers stand at the places of a buffer, as `pattern.Rule` has it. */
typedef struct {
    word first;     /* the turn's first place, and the offset of its places */
    word share;     /* 0: the numbers are of one rank; else of the rank that has the place's share */
    unsigned total; /* 1: the sums over all ranks */
    unsigned rank;
    unsigned ranks;
    unsigned width; /* how many numbers a range has */
} rule;

/* Number `number` of the SplitMix64 sequence. */
static __device__ word mixed(word number)
{
    word x = number * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* The number of a rank at a place that has this hash. */
static __device__ unsigned own(word hashed, unsigned rank, unsigned ranks, unsigned width)
{
    const unsigned range = ((unsigned)(hashed & 0x7FFFFFFFull) + rank) % ranks;
    const word turned = hashed * (rank * 0x9E3779B97F4Aull + 1);
    return range * width + (unsigned)((turned >> 32) & 0x7FFFFFFFull) % width + 1;
}

/* What stands at a place. */
static __device__ unsigned number_at(word place, rule of)
{
    unsigned rank = of.rank, sum = 0;
    if (of.share != 0) {
        rank = (unsigned)(place / of.share);
        place %= of.share;
    }
    const word hashed = mixed(place + of.first);
    if (of.total == 0)
        return own(hashed, rank, of.ranks, of.width);
    for (unsigned each = 0; each < of.ranks; each++)
        sum += own(hashed, each, of.ranks, of.width);
    return sum;
}

/* The bits of a whole number above 0 that is exact in the format. */
static __device__ unsigned bits_of(unsigned number, unsigned format)
{
    if (format == I32)
        return number;
    const unsigned single = __float_as_uint((float)number);
    if (format == F32)
        return single;
    if (format == BF16)
        return single >> 16;
    /* float16: the exponent's bias is 15 instead of 127, and 10 bits of the mantissa are left. */
    return (((single >> 23) - 112) << 10) | ((single >> 13) & 0x3FF);
}

/* Write the numbers into a buffer of `count` elements. */
extern "C" __global__ void write_numbers(void *at, word count, unsigned format, rule of)
{
    const word own_place = (word)blockIdx.x * blockDim.x + threadIdx.x;
    const word all = (word)gridDim.x * blockDim.x;
    if (format < BF16)
        for (word i = own_place; i < count; i += all)
            ((unsigned *)at)[i] = bits_of(number_at(i, of), format);
    else
        for (word i = own_place; i < count; i += all)
            ((unsigned short *)at)[i] = (unsigned short)bits_of(number_at(i, of), format);
}

/* Compare a buffer with the numbers, each of which is made here. Every thread counts its steps: a
 * comparison that was not made is told from one that found nothing. */
extern "C" __global__ void compare_numbers(
    const void *at, word count, unsigned format, rule of, word *tally)
{
    const word own_place = (word)blockIdx.x * blockDim.x + threadIdx.x;
    const word all = (word)gridDim.x * blockDim.x;
    word steps = 0, wrong = 0;
    if (format < BF16)
        for (word i = own_place; i < count; i += all, steps++)
            wrong += __ldcs((const unsigned *)at + i) != bits_of(number_at(i, of), format);
    else
        for (word i = own_place; i < count; i += all, steps++)
            wrong += __ldcs((const unsigned short *)at + i) != bits_of(number_at(i, of), format);
    if (wrong != 0)
        atomicAdd(&tally[WRONG], wrong);
    atomicAdd(&tally[STEPS], steps);
}
