/* Faults made on purpose (`--inject`), to prove that they are found. */

static __device__ unsigned long long now_ns(void)
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

/* One thread that waits: the GPU stands still for so long. */
extern "C" __global__ void pause_ns(unsigned long long duration)
{
    const unsigned long long begin = now_ns();
    while (now_ns() - begin < duration)
        __nanosleep(1000);
}

/* Ends the context with an error, as a GPU does that is lost. */
extern "C" __global__ void give_up(void)
{
    __trap();
}
