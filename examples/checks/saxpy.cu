// y = a x + y over 2^24 elements with whole numbers, so that every element is exact.
#include <cstdio>
#include <cstdlib>

const int N = 1 << 24;

#define CHECK(call)                                                           \
    do {                                                                      \
        cudaError_t error = (call);                                           \
        if (error != cudaSuccess) {                                           \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));    \
            exit(2);                                                          \
        }                                                                     \
    } while (0)

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
    float *x, *y, milliseconds = 0;
    CHECK(cudaMallocManaged(&x, N * sizeof(float)));
    CHECK(cudaMallocManaged(&y, N * sizeof(float)));
    for (int i = 0; i < N; i++) {
        x[i] = i % 1000;
        y[i] = i % 77;
    }
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin));
    saxpy<<<(N + 255) / 256, 256>>>(N, 3.0f, x, y);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    int wrong = 0;
    for (int i = 0; i < N; i++) wrong += y[i] != 3.0f * (i % 1000) + i % 77;
    printf("elements=%d\nwrong=%d\nseconds=%g\n", N, wrong, milliseconds / 1000);
    return 0;
}
