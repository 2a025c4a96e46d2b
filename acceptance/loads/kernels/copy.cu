/* The words that copies carry (`acceptance.loads.copy.pattern`), as the GPU where they lie makes,
 * overwrites and compares them itself.
 *
 * C that is CUDA as well: the tests run this very text on a processor. All words are of 64 bits. */

typedef unsigned long long word;

/* Places in a tally: words that are wrong, of these the words that nothing was written over, and
 * steps that were taken. */
#define WRONG 0
#define UNWRITTEN 1
#define STEPS 2
#define PLACES 3

/* Number `number` of the SplitMix64 sequence, as `loads.copy.pattern` has it. */
static __device__ word made(word number)
{
    word x = number * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

/* Fill a buffer with the words that begin at number `first`. */
extern "C" __global__ void write_words(word *at, word count, word first)
{
    const word own = (word)blockIdx.x * blockDim.x + threadIdx.x;
    const word all = (word)gridDim.x * blockDim.x;
    for (word i = own; i < count; i += all)
        at[i] = made(first + i);
}

/* Fill a buffer with one word that no copy carries, and begin its tally. */
extern "C" __global__ void spoil(word *at, word count, word spoiled, word *tally)
{
    const word own = (word)blockIdx.x * blockDim.x + threadIdx.x;
    const word all = (word)gridDim.x * blockDim.x;
    if (own < PLACES)
        tally[own] = 0;
    for (word i = own; i < count; i += all)
        at[i] = spoiled;
}

/* Compare a buffer with the words that begin at number `first`, each of which is made here. The first
 * thread of each 32 also counts its steps: a comparison that was not made is told from one that found
 * nothing. */
extern "C" __global__ void verify(const word *at, word count, word first, word spoiled, word *tally)
{
    const word own = (word)blockIdx.x * blockDim.x + threadIdx.x;
    const word all = (word)gridDim.x * blockDim.x;
    word steps = 0, wrong = 0, unwritten = 0;
    for (word i = own; i < count; i += all) {
        const word got = __ldcs(at + i);
        steps++;
        if (got != made(first + i)) {
            wrong++;
            unwritten += got == spoiled;
        }
    }
    if (wrong != 0) {
        atomicAdd(&tally[WRONG], wrong);
        atomicAdd(&tally[UNWRITTEN], unwritten);
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd(&tally[STEPS], steps);
}
