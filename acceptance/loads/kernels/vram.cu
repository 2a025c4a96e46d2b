// Pattern tests of a GPU's memory: the sweeps of `acceptance.loads.vram`. Compiled by NVRTC for the GPU at hand.
//
// The C++ here is also C11, behind a header of a few macros, so that the tests of the house run this very file on a processor.
//
// A sweep goes over tiles of 16 KiB, in ascending or descending order: it fills them, verifies them, or verifies them and writes the
// words that come next in the same pass. All threads together have some megabytes in flight, so the order holds for tiles only roughly.
// Where the words are right, nothing but the memory is touched. Wrong words take a slow path, whose cost is bounded: however many they
// are, they are all counted, in the thread first; the bits of about the first million of a pass are counted one by one.

typedef unsigned long long word;

#define THREADS 256
#define WARP 32
#define VECTORS 4 // of 16 bytes, that a thread has in flight
#define TILE ((word)THREADS * VECTORS)

// The families of words; what a word is follows from its number, a seed and a mask alone.
#define NUMBER 0
#define CONSTANT 1
#define WALK 2
#define RANDOM 3

// The record of what was wrong: places in an array of words. `acceptance.loads.vram.passes` knows the same.
#define SEEN 0     // words that were written or compared, so that a sweep which did not do its work is found
#define TOLD 1     // words whose bits were counted
#define EVERY 2    // bits that were wrong in all wrong words
#define BITS 3     // 64: how often each bit was wrong
#define REGIONS 67 // 256: wrong words in each region of the memory
#define ANY 323    // 256: bits that were wrong there
#define LIST 579   // 32 times: number, expected, got
#define LISTED 32
#define MOST (1ull << 20)

// All in 16-byte vectors, but for `rest`, the words behind the last whole tile.
typedef struct {
    word begin;        // a multiple of TILE: where the sweep begins
    word tiles;        // how many it visits
    word rest;         // words, after all tiles; only without stripes
    word shift;        // the number of a vector is its place and this, modulo 2**64
    word read_seed, read_mask;
    word write_seed, write_mask;
    word stripe;       // of every two stripes of 2**stripe tiles it visits one; 62: there are no stripes
    word role;         // which one: 0 or 1
    word descending;
    word region_tiles; // tiles in a region of the map
} Sweep;

// 128 random bits from a number: about a dozen 32-bit operations. Both halves are one-to-one maps of the number: odd factors, and the upper
// half mixed into the lower one.
static __device__ __forceinline__ ulonglong2 random_pair(word number, word seed)
{
    ulonglong2 pair;
    word mixed = number * 0x9e3779b97f4a7c15ull + seed;
    mixed ^= mixed >> 32;
    mixed *= 0xbf58476d1ce4e5b9ull;
    mixed ^= mixed >> 32;
    pair.x = mixed;
    mixed = (mixed << 32 | mixed >> 32) * 0x94d049bb133111ebull + 0xd1b54a32d192ed03ull;
    pair.y = mixed ^ mixed >> 32;
    return pair;
}

// The two words of vector `number`.
static __device__ __forceinline__ ulonglong2 pair_of(const int family, word number, word seed, word mask)
{
    ulonglong2 pair;
    if (family == NUMBER) {
        pair.x = 2 * number;
        pair.y = 2 * number + 1;
    } else if (family == CONSTANT) {
        pair.x = pair.y = 0;
    } else if (family == WALK) {
        pair.x = 1ull << ((2 * number + seed) & 63);
        pair.y = 1ull << ((2 * number + 1 + seed) & 63);
    } else {
        pair = random_pair(number, seed);
    }
    pair.x ^= mask;
    pair.y ^= mask;
    return pair;
}

// One word: 1 if it is wrong. Looks before it writes, so that a memory which is wrong all over does not queue its threads at one place.
static __device__ __noinline__ unsigned tell(word *record, unsigned region, word place, word expected, word got)
{
    volatile word *now = record;
    const word differs = expected ^ got;
    word before;
    int bit;
    if (!differs)
        return 0;
    if (differs & ~now[ANY + region])
        atomicOr(&record[ANY + region], differs);
    if (now[EVERY] & ~differs)
        atomicAnd(&record[EVERY], differs);
    if (now[TOLD] >= MOST)
        return 1;
    before = atomicAdd(&record[TOLD], 1ull);
    for (bit = 0; bit < 64; bit++)
        if (differs >> bit & 1)
            atomicAdd(&record[BITS + bit], 1ull);
    if (before < LISTED) {
        record[LIST + 3 * before] = place;
        record[LIST + 3 * before + 1] = expected;
        record[LIST + 3 * before + 2] = got;
    }
    return 1;
}

static __device__ __forceinline__ void sweep_over(
    const int family, const int reads, const int writes, ulonglong2 *memory, word *record, const Sweep sweep)
{
    unsigned region = 0, wrong = 0; // the region of the memory that the thread is in, and its wrong words there
    word seen = 0;
    for (word turn = blockIdx.x; turn < sweep.tiles; turn += gridDim.x) {
        const word ordered = sweep.descending ? sweep.tiles - 1 - turn : turn;
        const word tile = (ordered >> sweep.stripe << sweep.stripe << 1) + (ordered & ((1ull << sweep.stripe) - 1))
            + (sweep.role << sweep.stripe);
        const word first = sweep.begin + tile * TILE + threadIdx.x;
        if (reads) {
            ulonglong2 got[VECTORS];
            word differs = 0;
            #pragma unroll
            for (int i = 0; i < VECTORS; i++)
                got[i] = __ldcs(&memory[first + i * THREADS]);
            #pragma unroll
            for (int i = 0; i < VECTORS; i++) {
                const ulonglong2 right =
                    pair_of(family, first + sweep.shift + i * THREADS, sweep.read_seed, sweep.read_mask);
                differs |= (got[i].x ^ right.x) | (got[i].y ^ right.y);
            }
            if (differs) {
                const unsigned here = (unsigned)(sweep.begin / TILE + tile) / (unsigned)sweep.region_tiles;
                if (here != region) {
                    if (wrong)
                        atomicAdd(&record[REGIONS + region], (word)wrong);
                    region = here;
                    wrong = 0;
                }
                #pragma unroll
                for (int i = 0; i < VECTORS; i++) {
                    const word place = first + i * THREADS;
                    const ulonglong2 right = pair_of(family, place + sweep.shift, sweep.read_seed, sweep.read_mask);
                    wrong += tell(record, region, 2 * place, right.x, got[i].x);
                    wrong += tell(record, region, 2 * place + 1, right.y, got[i].y);
                }
            }
        }
        if (writes) {
            #pragma unroll
            for (int i = 0; i < VECTORS; i++)
                __stcs(
                    &memory[first + i * THREADS],
                    pair_of(family, first + sweep.shift + i * THREADS, sweep.write_seed, sweep.write_mask));
        }
        seen += 2 * VECTORS;
    }
    seen = threadIdx.x % WARP ? 0 : seen * WARP; // the first thread of a warp tells for all of them: few atomics at one place
    if (wrong)
        atomicAdd(&record[REGIONS + region], (word)wrong);
    // What is left is less than a tile: word by word, beside the last tiles.
    for (word turn = (word)blockIdx.x * THREADS + threadIdx.x; turn < sweep.rest; turn += (word)gridDim.x * THREADS) {
        const word place = 2 * (sweep.begin + sweep.tiles * TILE) + turn;
        const word number = (place >> 1) + sweep.shift;
        word *cell = (word *)memory + place;
        if (reads) {
            const ulonglong2 pair = pair_of(family, number, sweep.read_seed, sweep.read_mask);
            const word right = place & 1 ? pair.y : pair.x;
            const word got = __ldcs(cell);
            if (got != right) {
                const unsigned here = (unsigned)(place / (2 * TILE)) / (unsigned)sweep.region_tiles;
                atomicAdd(&record[REGIONS + here], 1ull);
                tell(record, here, place, right, got);
            }
        }
        if (writes) {
            const ulonglong2 pair = pair_of(family, number, sweep.write_seed, sweep.write_mask);
            __stcs(cell, place & 1 ? pair.y : pair.x);
        }
        seen++;
    }
    if (seen)
        atomicAdd(&record[SEEN], seen);
}

// Four blocks at a time on each multiprocessor, for which 64 registers a thread are there: enough loads in flight for every memory so far.
#define KERNEL(name, family, reads, writes)                                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, 4) name(ulonglong2 *memory, word *record, Sweep sweep)                   \
    {                                                                                                                             \
        sweep_over(family, reads, writes, memory, record, sweep);                                                                  \
    }

KERNEL(fill_number, NUMBER, 0, 1)
KERNEL(verify_number, NUMBER, 1, 0)
KERNEL(turn_number, NUMBER, 1, 1)
KERNEL(fill_constant, CONSTANT, 0, 1)
KERNEL(verify_constant, CONSTANT, 1, 0)
KERNEL(turn_constant, CONSTANT, 1, 1)
KERNEL(fill_walk, WALK, 0, 1)
KERNEL(verify_walk, WALK, 1, 0)
KERNEL(turn_walk, WALK, 1, 1)
KERNEL(fill_random, RANDOM, 0, 1)
KERNEL(verify_random, RANDOM, 1, 0)
KERNEL(turn_random, RANDOM, 1, 1)

// Reads one word again and again until it is not 0, `times` at most: a GPU that does not come back, to prove that this is found.
extern "C" __global__ void spin(word *flag, word times)
{
    volatile word *now = flag;
    while (times && !*now)
        times--;
}
