// CUDA's device and driver, as far as sums.cu uses them, on a CPU: blocks one after another, a block's
// threads side by side. Compiled with the source as C++, so that its numbers are tested without a GPU.

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

void Call(void* kernel, void* arguments);  // on this thread

extern "C" int cuLaunchKernel(void* kernel, unsigned x, unsigned y, unsigned z, unsigned wide, unsigned high,
                              unsigned deep, unsigned, void*, void** arguments, void**) {
  const dim3 grid = {x, y, z}, block = {wide, high, deep};
  together = std::make_unique<std::barrier<>>(wide * high * deep);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < wide * high * deep; ++t)
    threads.emplace_back([=] {
      blockDim = block;
      gridDim = grid;
      threadIdx = {t % wide, t / wide % high, t / wide / high};
      for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
          for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
            Call(kernel, arguments[0]);
            __syncthreads();
          }
    });
  for (auto& thread : threads) thread.join();
  any[0] = any[1] = 0;
  return 0;
}

extern "C" int cuCtxGetDevice(int*) { return 0; }
extern "C" int cuDeviceGetAttribute(int* value, int, int) { return *value = 2, 0; }
extern "C" int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* value, void*, int, size_t) { return *value = 2, 0; }
extern "C" int cuGetErrorString(int, const char** text) { return *text = "none", 0; }
