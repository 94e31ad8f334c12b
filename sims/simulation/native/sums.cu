// Sums over keys for all queries and heads on an NVIDIA GPU: see sims/simulation/native/cuda.py.
//
// For the sizes of one problem, given as macros: REAL, GAUSSIAN (0 is softmax), HEADS, WIDTH (d_k)
// and COLUMNS, the last of which is ones. nvcc makes a library of all of it. Without it NVRTC
// compiles the kernels alone and a C++ compiler the rest, which launches them through the driver.
//
// A thread has one query and a part of a split
// of the keys: its sums stay in registers, and its block reads a tile of keys into shared memory.
// Exponents are <q, k> - |k|^2/2 (softmax: <q, k>), less a shift that is the largest of a few keys.
// A block that this serves badly, because rounding or a later key exceeds it by too much, is done
// again: with scores in double precision, less the largest of all its keys.

#ifdef __CUDACC_RTC__
using int64_t = long long;
#else
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "xla/ffi/api/ffi.h"
#endif

#ifndef THREADS
#define THREADS 128  // of a block, at most
#endif
#ifndef WAVES
#define WAVES 2  // blocks, as multiples of what the device holds at a time
#endif

#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)

namespace {

using Real = REAL;
constexpr bool kFloat = sizeof(Real) == 4;
constexpr int kRows = HEADS * WIDTH, kOthers = COLUMNS - 1;
constexpr int kPairs = HEADS * (HEADS + 1) / 2, kLinear = HEADS, kGram = HEADS + HEADS * COLUMNS;
constexpr int kEntries = kGram + kPairs;  // of a part: shifts, linear sums, pair sums
constexpr int kSize = HEADS * sizeof(Real);
constexpr int kChunk = kSize <= 32 ? 4 : kSize <= 48 ? 2 : 1;  // keys weighed together by a thread
// Registers of a thread are 255, and 168 where a multiprocessor holds 384 threads: sums come first,
// then the query, if there is room for all of it.
constexpr int kBytes = (kEntries + kChunk * HEADS) * sizeof(Real);
constexpr bool kResident = kBytes + kRows * sizeof(Real) <= 900;
constexpr int kUnroll = kResident ? WIDTH : 2;
constexpr int kBlocks =
    (kBytes + (kResident ? kRows * sizeof(Real) : 0) <= 600 ? 384 : 256) / THREADS;
constexpr int kSample = 16;                                   // keys that choose the shift
constexpr int64_t kLongest = 4096;  // keys that a thread sums in its own precision
constexpr double kLog2E = 1.4426950408889634, kLog2 = 0.6931471805599453;
constexpr Real kLimit = kFloat ? Real(5e33) : Real(1e240);  // of a pair sum: no weight overflows

template <typename S>
constexpr S kLowest = sizeof(S) == 4 ? S(-3.4e38) : S(-1.7e308);  // of all scores

template <typename S>
constexpr int Tile(int keys = 128) {
  const int bytes = (kRows + HEADS) * int(sizeof(S)) + kOthers * int(sizeof(Real));
  return keys * bytes <= 40960 || keys <= kChunk ? keys : Tile<S>(keys / 2);
}

struct Work {
  const Real *queries, *keys, *columns, *centres, *reach;  // (p, H, Q), (p, H, n), (c, n), (H, Q)
  Real *parts, *centred_parts;                             // (slot, entry, query) of every batch
  int *redo, *centred_redo;                                // of every block
  int64_t count, n, split;
  int slots;
  double *peak, *gram, *linear, *centred;
};

}  // namespace

#if defined(__CUDACC__) || defined(EMULATED)  // NVRTC defines the first, too
namespace {

__device__ inline float Exp2(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2(x);
#endif
}

__device__ inline double Exp2(double x) { return exp2(x); }

// Neighbours in shared memory, 16 bytes at a time where there are so many.
template <typename S>
__device__ inline void Load(const S* from, S (&to)[kChunk]) {
  constexpr int many = kChunk * sizeof(S) < 16 ? kChunk : 16 / sizeof(S);
  struct alignas(many * sizeof(S)) Piece {
    S value[many];
  };
  EACH(i, kChunk / many) {
    const Piece piece = reinterpret_cast<const Piece*>(from)[i];
    EACH(j, many) to[i * many + j] = piece.value[j];
  }
}

// The sums of weights against each other and the columns, or with `centred` those of the weights
// times (first column - centre) against each other. Of the blocks to be done again, if `careful`.
template <typename S, bool careful, bool centred>
__device__ inline void Weigh(const Work& w) {
  constexpr int kTile = Tile<S>();
  alignas(16) __shared__ S points[(kRows + HEADS) * kTile];  // the last rows: where scores start
  alignas(16) __shared__ Real columns[kOthers * kTile];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  const int part = threadIdx.y, parts = blockDim.y;
  const int64_t x = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, batch = blockIdx.z;
  const int64_t own = x < w.count ? x : w.count - 1;  // a thread without a query repeats the last
  int* redo = (centred ? w.centred_redo : w.redo) +
              (batch * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  if (careful && !*redo) return;
  const Real* query = w.queries + batch * kRows * w.count + own;
  const Real* keys = w.keys + batch * kRows * w.n;
  const Real reach = w.reach[batch] * w.reach[batch];
  const int64_t first = blockIdx.y * w.split;
  const int64_t last = first + w.split < w.n ? first + w.split : w.n;

  S q[kResident ? kRows : 1];
  Real centre[centred ? HEADS : 1];
  Real shift[HEADS], linear[centred ? 1 : COLUMNS][HEADS] = {}, pairs[kPairs] = {};
  S top[HEADS];
  EACH(r, kResident ? kRows : 0) q[r] = S(query[r * w.count]);
  EACH(h, HEADS) {
    if (centred) centre[h] = w.centres[(batch * HEADS + h) * w.count + own];
    top[h] = S(kLowest<Real>);
  }

  // A tile of keys, those beyond the last with weight 0; whether one is out of reach.
  auto load = [&](int64_t start) {
    bool far = false;
    __syncthreads();
    for (int i = thread; i < HEADS * kTile; i += threads) {
      const int h = i / kTile, k = i % kTile;
      const bool in = start + k < last;
      const Real* from = keys + h * w.n + start + k;
      S square = 0;
#pragma unroll 4
      for (int j = 0; j < WIDTH; ++j, from += HEADS * w.n) {
        const S v = in ? S(*from) : S(0);
        points[(j * HEADS + h) * kTile + k] = v;
        square += v * v;
      }
      points[(kRows + h) * kTile + k] =
          !in ? kLowest<S> : GAUSSIAN ? square * S(-0.5) : S(0);
      far |= !(square <= S(reach));
    }
    for (int i = thread; i < kOthers * kTile; i += threads) {
      const int64_t key = start + i % kTile;
      columns[i] = key < last ? w.columns[(batch * COLUMNS + i / kTile) * w.n + key] : Real(0);
    }
    return __syncthreads_or(far);
  };
  auto scores = [&](int h, int k, S(&s)[kChunk]) {
    Load(&points[(kRows + h) * kTile + k], s);
#pragma unroll kUnroll
    for (int j = 0; j < WIDTH; ++j) {
      const int row = j * HEADS + h;
      const S coordinate = kResident ? q[kResident ? row : 0] : S(query[row * w.count]);
      S key[kChunk];
      Load(&points[row * kTile + k], key);
      EACH(i, kChunk) s[i] += coordinate * key[i];
    }
  };
  auto rise = [&](int k) {
    EACH(h, HEADS) {
      S s[kChunk];
      scores(h, k, s);
      EACH(i, kChunk) top[h] = fmax(top[h], s[i]);
    }
  };
  auto choose = [&] {
    EACH(h, HEADS) shift[h] = Real(top[h] * S(kLog2E));
  };

  for (int64_t start = first; careful && start < last; start += kTile) {
    load(start);
#pragma unroll 1
    for (int k = part * kChunk; k < kTile; k += parts * kChunk) rise(k);
  }
  if (careful) choose();
  bool bad = false;
  for (int64_t start = first; start < last; start += kTile) {
    bad = load(start) && !careful;
    if (bad) break;
    if (!careful && start == first) {
#pragma unroll 1
      for (int k = 0; k < kSample && k < kTile; k += kChunk) rise(k);
      choose();
    }
    const int many = int(last - start < kTile ? last - start : kTile);
#pragma unroll 1
    for (int k = part * kChunk; k < many; k += parts * kChunk) {
      Real u[HEADS][kChunk], column[kOthers][kChunk];
      EACH(c, kOthers) Load(&columns[c * kTile + k], column[c]);
      EACH(h, HEADS) {
        S s[kChunk];
        scores(h, k, s);
        EACH(i, kChunk) {
          u[h][i] = Exp2(Real(s[i] * S(kLog2E) - S(shift[h])));
          if (centred) {
            u[h][i] *= column[0][i] - centre[centred ? h : 0];
          } else {
            EACH(c, kOthers)
              linear[centred ? 0 : c][h] += u[h][i] * column[c][i];
            linear[centred ? 0 : kOthers][h] += u[h][i];
          }
        }
      }
      EACH(i, kChunk)
#pragma unroll
        for (int h = 0, at = 0; h < HEADS; ++h)
#pragma unroll
          for (int g = h; g < HEADS; ++g, ++at) pairs[at] += u[h][i] * u[g][i];
    }
  }
  if (!careful) {
#pragma unroll
    for (int h = 0, at = 0; h < HEADS; at += HEADS - h++) bad |= !(pairs[at] <= kLimit);
    bad = __syncthreads_or(bad);
    if (thread == 0) *redo = bad;
    if (bad) return;
  }
  if (x >= w.count) return;
  const int64_t slot = batch * w.slots + blockIdx.y * parts + part;
  Real* to = (centred ? w.centred_parts : w.parts) + slot * kEntries * w.count + x;
  EACH(h, HEADS) {
    to[h * w.count] = shift[h];
    EACH(c, COLUMNS)
      if (!centred) to[(kLinear + h * COLUMNS + c) * w.count] = linear[centred ? 0 : c][h];
  }
  EACH(at, kPairs) to[(kGram + at) * w.count] = pairs[at];
}

}  // namespace

#define WEIGH(name, S, careful, centred)                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, careful ? 256 / THREADS : kBlocks)     \
      name(Work w) {                                                                           \
    Weigh<S, careful, centred>(w);                                                             \
  }
WEIGH(weigh, Real, false, false)
WEIGH(weigh_again, double, true, false)
WEIGH(weigh_centred, Real, false, true)
WEIGH(weigh_centred_again, double, true, true)

// One head's sums over all parts at a query, in double precision under their largest shift.
extern "C" __global__ void finish(Work w) {
  const int64_t x = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, batch = blockIdx.z;
  const int h = blockIdx.y;
  if (x >= w.count) return;
  auto entry = [&](const Real* parts, int slot, int number) {
    return double(parts[((batch * w.slots + slot) * kEntries + number) * w.count + x]);
  };
  auto largest = [&](int head) {
    double top = entry(w.parts, 0, head);
    for (int slot = 1; slot < w.slots; ++slot) top = fmax(top, entry(w.parts, slot, head));
    return top;
  };
  auto product = [&](const Real* parts, int g, double top, int at) {
    double sum = 0;
    for (int slot = 0; slot < w.slots; ++slot)
      sum += exp2(entry(parts, slot, h) + entry(parts, slot, g) - top) *
             entry(parts, slot, kGram + at);
    return sum;
  };
  const double top = largest(h);
  const int64_t row = (batch * w.count + x) * HEADS;
  double sums[COLUMNS] = {};
  for (int slot = 0; slot < w.slots; ++slot) {
    const double factor = exp2(entry(w.parts, slot, h) - top);
    for (int c = 0; c < COLUMNS; ++c)
      sums[c] += factor * entry(w.parts, slot, kLinear + h * COLUMNS + c);
  }
  w.peak[row + h] = top * kLog2;
  for (int c = 0; c < COLUMNS; ++c) w.linear[(row + h) * COLUMNS + c] = sums[c];
  for (int g = h, at = h * HEADS - h * (h - 1) / 2; g < HEADS; ++g, ++at) {
    const double both = top + largest(g);
    const int64_t one = (row + h) * HEADS + g, other = (row + g) * HEADS + h;
    w.gram[one] = w.gram[other] = product(w.parts, g, both, at);
    if (w.centred) w.centred[one] = w.centred[other] = product(w.centred_parts, g, both, at);
  }
}

#endif  // the kernels

#ifndef __CUDACC_RTC__

namespace ffi = xla::ffi;

struct Size {
  unsigned x = 1, y = 1, z = 1;
};

// CUDA as far as a call needs it: its runtime with nvcc, else its driver. Functions return errors.
#ifdef __CUDACC__
const void* kernels[] = {(void*)weigh, (void*)weigh_again, (void*)weigh_centred,
                         (void*)weigh_centred_again, (void*)finish};

int Launch(int kernel, Size grid, Size block, void* stream, Work w) {
  void* arguments[] = {&w};
  return cudaLaunchKernel(kernels[kernel], dim3(grid.x, grid.y, grid.z),
                          dim3(block.x, block.y, block.z), arguments, 0, cudaStream_t(stream));
}

int Multiprocessors(int* count) {
  int device = 0, error = cudaGetDevice(&device);
  return error ? error : cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

int BlocksOfEach(int* count) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, kernels[0], THREADS, 0);
}

const char* ErrorText(int error) { return cudaGetErrorString(cudaError_t(error)); }
#else
void* kernels[5];

extern "C" {
void sims_kernels(void** handles) { std::copy(handles, handles + 5, kernels); }

int cuLaunchKernel(void* kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned shared_bytes, void* stream, void** arguments, void** extra);
int cuCtxGetDevice(int* device);
int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* kernel, int threads, size_t);
int cuGetErrorString(int error, const char** text);
}

int Launch(int kernel, Size grid, Size block, void* stream, Work w) {
  void* arguments[] = {&w};
  return cuLaunchKernel(kernels[kernel], grid.x, grid.y, grid.z, block.x, block.y, block.z, 0,
                        stream, arguments, nullptr);
}

int Multiprocessors(int* count) {
  int device = 0, error = cuCtxGetDevice(&device);
  const int multiprocessor_count = 16;  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
  return error ? error : cuDeviceGetAttribute(count, multiprocessor_count, device);
}

int BlocksOfEach(int* count) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(count, kernels[0], THREADS, 0);
}

const char* ErrorText(int error) {
  const char* text = nullptr;
  cuGetErrorString(error, &text);
  return text ? text : "an unknown error";
}
#endif

// How a call is cut into blocks, and the memory that its parts take.
struct Cut {
  Size grid, block;
  int64_t entries, blocks;
  Cut(Work& w, int64_t batches, int64_t resident) {
    const int64_t tile = Tile<Real>(), groups = (w.count + THREADS - 1) / THREADS;
    const int64_t queries = (w.count + groups - 1) / groups;
    const int64_t parts = std::max<int64_t>(1, std::min(THREADS / queries, tile / kChunk));
    const int64_t fill = WAVES * resident / (batches * groups);
    int64_t splits = std::max(std::min(fill, w.n / (2 * tile)), w.n / (kLongest * parts) + 1);
    w.split = ((w.n + splits - 1) / splits + tile - 1) / tile * tile;
    splits = (w.n + w.split - 1) / w.split;
    w.slots = int(splits * parts);
    grid = {unsigned(groups), unsigned(splits), unsigned(batches)};
    block = {unsigned(queries), unsigned(parts), 1};
    entries = batches * w.slots * kEntries * w.count;
    blocks = batches * splits * groups;
  }
};

int Run(Work w, const Cut& cut, void* scratch, void* stream) {
  w.parts = static_cast<Real*>(scratch);
  w.centred_parts = w.parts + (w.centred ? cut.entries : 0);
  w.redo = reinterpret_cast<int*>(w.centred_parts + cut.entries);
  w.centred_redo = w.redo + cut.blocks;
  int error = 0;
  for (int kernel = 0; !error && kernel < (w.centred ? 4 : 2); ++kernel)
    error = Launch(kernel, cut.grid, cut.block, stream, w);
  const Size grid = {unsigned((w.count + 63) / 64), HEADS, cut.grid.z};
  return error ? error : Launch(4, grid, {64, 1, 1}, stream, w);
}

constexpr auto kType = kFloat ? ffi::F32 : ffi::F64;
using In = ffi::Buffer<kType>;
using Out = ffi::ResultBuffer<ffi::F64>;

ffi::Error Sums(void* stream, ffi::ScratchAllocator scratch, In queries, In keys, In columns,
                In centres, In reach, int64_t with, Out peak, Out gram, Out linear, Out centred) {
  Work w = {queries.typed_data(), keys.typed_data(), columns.typed_data(), centres.typed_data(),
            reach.typed_data()};
  w.count = queries.dimensions().back();
  w.n = keys.dimensions().back();
  w.peak = peak->typed_data();
  w.gram = gram->typed_data();
  w.linear = linear->typed_data();
  w.centred = with ? centred->typed_data() : nullptr;
  int processors = 0, each = 0, error = Multiprocessors(&processors);
  if (!error) error = BlocksOfEach(&each);
  if (error) return ffi::Error::Internal(ErrorText(error));
  const Cut cut(w, int64_t(reach.element_count()), int64_t(processors) * each);
  const size_t bytes = cut.entries * (with ? 2 : 1) * sizeof(Real) + 2 * cut.blocks * sizeof(int);
  const std::optional<void*> memory = scratch.Allocate(bytes, 16);
  if (!memory) return ffi::Error::Internal("sums on the GPU: no memory for " + std::to_string(bytes) + " bytes");
  error = Run(w, cut, *memory, stream);
  return error ? ffi::Error::Internal(std::string("sums on the GPU: ") + ErrorText(error))
               : ffi::Error::Success();
}

#define OUT Ret<ffi::Buffer<ffi::F64>>()
XLA_FFI_DEFINE_HANDLER_SYMBOL(sims_sums_cuda, Sums,
                              ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::ScratchAllocator>().Arg<In>().Arg<In>().Arg<In>()
                                  .Arg<In>().Arg<In>().Attr<int64_t>("centred")
                                  .OUT.OUT.OUT.OUT);

#endif
