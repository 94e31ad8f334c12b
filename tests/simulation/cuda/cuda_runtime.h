// CUDA's runtime, as far as sums.cu uses it, on a CPU: blocks one after another, a block's threads
// side by side. Compiled with the source as C++, so that its numbers are tested without a GPU.

#pragma once

#include <barrier>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)

using std::exp2;
using std::fmax;

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  dim3(unsigned a, unsigned b, unsigned c) : x(a), y(b), z(c) {}
};

typedef int cudaError_t;
typedef void* cudaStream_t;
enum { cudaDevAttrMultiProcessorCount };
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  cudaStream_t stream;
};

inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
inline std::unique_ptr<std::barrier<>> together;
inline std::atomic<int> any[2];

inline void __syncthreads() { together->arrive_and_wait(); }

inline int __syncthreads_or(int one) {
  static thread_local int turn = 0;
  if (one) any[turn] = 1;
  __syncthreads();
  const int found = any[turn];
  turn = 1 - turn;
  __syncthreads();
  any[1 - turn] = 0;
  return found;
}

template <typename Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* launch, void (*kernel)(Arguments), Arguments given) {
  const dim3 grid = launch->gridDim, block = launch->blockDim;
  together = std::make_unique<std::barrier<>>(block.x * block.y);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < block.x * block.y; ++t)
    threads.emplace_back([=] {
      blockDim = block;
      gridDim = grid;
      threadIdx = dim3(t % block.x, t / block.x, 0);
      for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
          for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
            kernel(given);
            __syncthreads();
          }
    });
  for (auto& thread : threads) thread.join();
  any[0] = any[1] = 0;
  return 0;
}

inline cudaError_t cudaGetDevice(int*) { return 0; }
inline cudaError_t cudaDeviceGetAttribute(int* value, int, int) { return *value = 2, 0; }
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* value, Kernel, int, int) { return *value = 2, 0; }
inline const char* cudaGetErrorString(cudaError_t) { return "none"; }
