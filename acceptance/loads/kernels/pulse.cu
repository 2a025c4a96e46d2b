/* Waves of work that follow the GPU's own clock, for those too short for the host to launch. */

typedef unsigned long long word;

/* Places in a tally: wrong chunks, all chunks, and waves in which a block worked. */
#define WRONG 0
#define CHUNKS 1
#define WAVES 2

#define CHAINS 8
#define ROUNDS 128

static __device__ word now_ns(void)
{
    word time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

/* A fixed piece of work: chains of multiplications and additions, and the bits of their ends. The
 * compiler must not know the seed, or it would do the work once. */
static __device__ unsigned chunk(unsigned seed)
{
    float at[CHAINS];
    unsigned bits = 0;
    asm volatile("" : "+r"(seed));
    for (int i = 0; i < CHAINS; i++)
        at[i] = (float)((seed * 2654435761u + i * 40503u) >> 16);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CHAINS; i++)
            at[i] = fmaf(at[i], 0.9990234375f, 0.3125f);
    for (int i = 0; i < CHAINS; i++)
        bits = bits * 31u + __float_as_uint(at[i]);
    return bits;
}

/* What the clock says. */
extern "C" __global__ void tell(word *at)
{
    *at = now_ns();
}

/* The first results, one of each thread. */
extern "C" __global__ void first(unsigned *expected)
{
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    expected[own] = chunk(own);
}

/* `count` waves from `begin` on: each thread works for `half`, compares every chunk with its first
 * one, and rests for as long. All blocks must be on the GPU at once. */
extern "C" __global__ void waves(const unsigned *expected, word begin, word half, unsigned count,
                                 word *tally)
{
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned due = expected[own];
    word wrong = 0, chunks = 0, worked = 0;
    for (unsigned wave = 0; wave < count; wave++) {
        const word on = begin + 2 * half * wave, off = on + half;
        const word before = chunks;
        while (now_ns() < on)
            __nanosleep(1000);
        while (now_ns() < off) {
            wrong += chunk(own) != due;
            chunks++;
        }
        worked += chunks != before;
    }
    if (wrong != 0)
        atomicAdd(&tally[WRONG], wrong);
    atomicAdd(&tally[CHUNKS], chunks);
    if (threadIdx.x == 0)
        atomicAdd(&tally[WAVES], worked);
}
