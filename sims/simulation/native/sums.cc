// Sums over a block of keys, for all queries and heads: see sims/simulation/native/__init__.py.
//
// One pass over the keys a query: exponents, their maximum, exponentials, sums, a sub-block at a
// time in the first-level cache. Sums stay spread over the lanes of a vector until the end.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kSlack = 20;  // exponents may exceed the shift by so much: no sum overflows

// Exponentials in place of exponents less `top`, and their sums against the columns; with
// `centred`, also the exponentials times (first column − centre).
template <typename T, int width>
inline void Weigh(typename Real<T>::V* u, T top, const T* columns, int64_t stride, int64_t vectors,
                  typename Real<T>::V* sums, T centre, typename Real<T>::V* centred) {
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;
  V acc[width] = {};
  for (int64_t i = 0; i < vectors; ++i) {
    const V weight = Exp<T>(u[i] - top);
    u[i] = weight;
    for (int c = 0; c < width; ++c)
      acc[c] += weight * reinterpret_cast<const Load*>(columns + c * stride)[i];
  }
  for (int c = 0; c < width; ++c) sums[c] += acc[c];
  if (centred)
    for (int64_t i = 0; i < vectors; ++i)
      centred[i] = u[i] * (reinterpret_cast<const Load*>(columns)[i] - centre);
}

template <typename T, int kind, int tile, int width>
void Run(const T* queries, const T* anchors, const T* keys, const T* columns, int64_t count,
         int64_t p, int64_t heads, int64_t padded, int64_t n, double* peak,
         double* gram, double* linear, const T* centres, double* centred) {
  using V = typename Real<T>::V;
  constexpr int kLanes = kBytes / sizeof(T);
  constexpr int64_t kVectors = kSubBlock / kLanes;
  const int64_t tiles = heads / tile;
  const int64_t size = tiles * (tiles + 1) / 2 * tile * tile;
  std::vector<V> others(centres ? heads * kVectors : 0), weights(heads * kVectors), pairs((centres ? 2 : 1) * size),
      sums(heads * width);
  std::vector<T> top(heads);
  for (int64_t x = 0; x < count; ++x, peak += heads, gram += heads * heads, linear += heads * width,
               centred += centres ? heads * heads : 0) {
    std::fill(pairs.begin(), pairs.end(), V{});
    std::fill(sums.begin(), sums.end(), V{});
    std::fill(top.begin(), top.end(), -std::numeric_limits<T>::infinity());
    for (int64_t start = 0; start < n; start += kSubBlock) {
      const int64_t left = n - start < kSubBlock ? n - start : kSubBlock;
      const int64_t vectors = (left + kLanes - 1) / kLanes;
      for (int64_t h = 0; h < heads; ++h) {
        V* u = &weights[h * kVectors];
        V largest = Exponents<T, kind>(queries + x * p * heads + h, anchors + x * p * heads + h,
                                       heads, keys + h * padded + start, heads * padded, p,
                                       vectors, u);
        if (left < vectors * kLanes) {
          for (int64_t i = left; i < vectors * kLanes; ++i)
            u[i / kLanes][i % kLanes] = -std::numeric_limits<T>::infinity();
          largest = u[0];
          for (int64_t i = 1; i < vectors; ++i) largest = u[i] > largest ? u[i] : largest;
        }
        const T now = LargestLane<T>(largest);
        if (start == 0) top[h] = now;
        if (now > top[h] + kSlack) {
          // What was summed under an earlier shift is scaled to the new one.
          const T factor = std::exp(top[h] - now);
          for (int c = 0; c < width; ++c) sums[h * width + c] *= factor;
          for (V* from = pairs.data(); from < pairs.data() + pairs.size(); from += size)
            for (int64_t i = 0, at = 0; i < tiles; ++i)
              for (int64_t j = i; j < tiles; ++j, at += tile * tile)
                for (int a = 0; a < tile; ++a)
                  for (int b = 0; b < tile; ++b) {
                    if (i * tile + a == h) from[at + a * tile + b] *= factor;
                    if (j * tile + b == h) from[at + a * tile + b] *= factor;
                  }
          top[h] = now;
        }
        Weigh<T, width>(u, top[h], columns + start, padded, vectors, &sums[h * width],
                        centres ? centres[x * heads + h] : T(0),
                        centres ? &others[h * kVectors] : nullptr);
        for (int64_t i = left; i < vectors * kLanes; ++i) {
          u[i / kLanes][i % kLanes] = 0;
          if (centres) others[h * kVectors + i / kLanes][i % kLanes] = 0;
        }
      }
      for (int64_t i = 0, at = 0; i < tiles; ++i)
        for (int64_t j = i; j < tiles; ++j, at += tile * tile)
          Products<T, tile>(&weights[i * tile * kVectors], &weights[j * tile * kVectors], kVectors,
                            vectors, &pairs[at]);
      for (int64_t i = 0, at = size; centres && i < tiles; ++i)
        for (int64_t j = i; j < tiles; ++j, at += tile * tile)
          Products<T, tile>(&others[i * tile * kVectors], &others[j * tile * kVectors], kVectors,
                            vectors, &pairs[at]);
    }
    for (int64_t h = 0; h < heads; ++h) {
      peak[h] = top[h];
      for (int64_t c = 0; c < width; ++c) linear[h * width + c] = SumOfLanes<T>(sums[h * width + c]);
    }
    for (int64_t i = 0, at = 0; i < tiles; ++i)
      for (int64_t j = i; j < tiles; ++j, at += tile * tile)
        for (int a = 0; a < tile; ++a)
          for (int b = 0; b < tile; ++b) {
            const int64_t h = i * tile + a, g = j * tile + b;
            gram[h * heads + g] = gram[g * heads + h] = SumOfLanes<T>(pairs[at + a * tile + b]);
            if (centres)
              centred[h * heads + g] = centred[g * heads + h] =
                  SumOfLanes<T>(pairs[size + at + a * tile + b]);
          }
  }
}

template <typename T, int kind, int width>
auto ByHeads(int64_t heads) {
  return heads % 4 == 0   ? Run<T, kind, 4, width>
         : heads % 2 == 0 ? Run<T, kind, 2, width>
                          : Run<T, kind, 1, width>;
}

template <typename T, int kind>
auto ByWidth(int64_t heads, int64_t width) {
  return width == 2 ? ByHeads<T, kind, 2>(heads) : ByHeads<T, kind, 3>(heads);
}

template <ffi::DataType type, typename T>
ffi::Error Sums(ffi::Buffer<type> queries, ffi::Buffer<type> anchors, ffi::Buffer<type> keys,
                ffi::Buffer<type> columns, ffi::Buffer<type> centres, int64_t n, int64_t kind,
                ffi::ResultBuffer<ffi::F64> peak, ffi::ResultBuffer<ffi::F64> gram,
                ffi::ResultBuffer<ffi::F64> linear, ffi::ResultBuffer<ffi::F64> centred) {
  const auto q = queries.dimensions(), c = columns.dimensions();
  if (c[0] != 2 && c[0] != 3) return ffi::Error::InvalidArgument("columns: 2 or 3");
  auto run = kind == kGaussian ? ByWidth<T, kGaussian>(q[2], c[0]) : ByWidth<T, kSoftmax>(q[2], c[0]);
  run(queries.typed_data(), anchors.typed_data(), keys.typed_data(), columns.typed_data(), q[0],
      q[1], q[2], c[1], n, peak->typed_data(), gram->typed_data(), linear->typed_data(),
      centres.element_count() ? centres.typed_data() : nullptr, centred->typed_data());
  return ffi::Error::Success();
}

}  // namespace

#define SIMS_HANDLER(name, type, T)                                                     \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (Sums<type, T>),                                  \
                                ffi::Ffi::Bind()                                        \
                                    .Arg<ffi::Buffer<type>>()                           \
                                    .Arg<ffi::Buffer<type>>()                           \
                                    .Arg<ffi::Buffer<type>>()                           \
                                    .Arg<ffi::Buffer<type>>()                           \
                                    .Arg<ffi::Buffer<type>>()                           \
                                    .Attr<int64_t>("n")                                 \
                                    .Attr<int64_t>("kind")                              \
                                    .Ret<ffi::Buffer<ffi::F64>>()                       \
                                    .Ret<ffi::Buffer<ffi::F64>>()                       \
                                    .Ret<ffi::Buffer<ffi::F64>>()                       \
                                    .Ret<ffi::Buffer<ffi::F64>>())

SIMS_HANDLER(sims_sums_float32, ffi::F32, float);
SIMS_HANDLER(sims_sums_float64, ffi::F64, double);
