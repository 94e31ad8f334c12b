// Sums over a block of keys, for all queries and heads: see sims/simulation/native/__init__.py.
//
// One pass over the keys a query: exponents, exponentials, sums, a sub-block at a time in the
// first-level cache. Sums stay spread over the lanes of a vector until the end. Exponents are base-2
// logarithms of K, up to a part that all keys share: ⟨q, k⟩ − |k|²/2 (softmax: ⟨q, k⟩) where that
// loses no more than 1e-6 to rounding, −|q − k|²/2 for a query among the keys, and otherwise
// differences from an anchor, less a running maximum.

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

// Keys of a sub-block: 2 KiB of weights a head.
template <typename T> constexpr int64_t kPart = 2048 / sizeof(T);

enum Way { kProducts, kDifferences, kAnchored };

// Of a way without a shift: |q||k| up to which products serve, and what the weights of the first
// keys must sum to, lest their products underflow.
template <typename T> constexpr double kLongest = sizeof(T) == 4 ? 16 : 100;
template <typename T> constexpr double kLeast = sizeof(T) == 4 ? 1e-6 : 1e-60;

// A sub-block of keys beside one head at one query: weights and their sums against the columns, with
// `centred` also the weights times (first column − centre).
template <typename T> struct Block {
  using V = typename Real<T>::V;
  const T* columns;
  int64_t stride, vectors, full;  // vectors of which all lanes are keys
  V *weights, *sums;
  T centre;
  V* centred;
};

template <typename T, int width, typename Exponent>
inline void Weigh(const Block<T>& block, Exponent exponent) {
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;
  V acc[width] = {};
  auto absorb = [&](int64_t i, auto products) {
    const V weight = Exp2<T>(exponent(i));
    block.weights[i] = weight;
    for (int c = 0; c < width; ++c)
      acc[c] += c < products ? weight * reinterpret_cast<const Load*>(block.columns + c * block.stride)[i] : weight;
  };
  for (int64_t i = 0; i < block.full; ++i) absorb(i, std::integral_constant<int, width - 1>());
  if (block.full < block.vectors) absorb(block.full, std::integral_constant<int, width>());
  for (int c = 0; c < width; ++c) block.sums[c] += acc[c];
  if (block.centred)
    for (int64_t i = 0; i < block.vectors; ++i)
      block.centred[i] = block.weights[i] * (reinterpret_cast<const Load*>(block.columns)[i] - block.centre);
}

// By products or differences, four coordinates at a time: the exponents of all but the last four
// wait in the place of the weights.
template <typename T, int width, Way way>
__attribute__((noinline)) void WeighUnshifted(const T* query, int64_t heads, const T* keys, int64_t stride, int64_t p,
                                              const T* start, const Block<T>& block) {
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;
  for (int64_t from = 0; from < p; from += 4) {
    const int64_t left = p - from;
    V q[4];
    const T* row[4];
    for (int64_t j = 0; j < 4 && j < left; ++j) {
      q[j] = V{} + query[(from + j) * heads] * T(way == kProducts ? kLog2E : 1);
      row[j] = keys + (from + j) * stride;
    }
    auto part = [&](auto many) {
      auto exponent = [&](int64_t i) {
        V sum = from ? block.weights[i] : way == kProducts ? reinterpret_cast<const Load*>(start)[i] : V{};
        for (int j = 0; j < many; ++j) {
          const V key = reinterpret_cast<const Load*>(row[j])[i];
          sum += way == kProducts ? q[j] * key : -(key - q[j]) * (key - q[j]);
        }
        return sum;
      };
      if (left > 4)
        for (int64_t i = 0; i < block.vectors; ++i) block.weights[i] = exponent(i);
      else
        Weigh<T, width>(block, [&](int64_t i) { return exponent(i) * T(way == kProducts ? 1 : kLog2E / 2); });
    };
    if (left >= 4) part(std::integral_constant<int, 4>());
    else if (left == 3) part(std::integral_constant<int, 3>());
    else if (left == 2) part(std::integral_constant<int, 2>());
    else part(std::integral_constant<int, 1>());
  }
}

template <typename T, int width>
__attribute__((noinline)) void WeighShifted(T top, const Block<T>& block) {
  using V = typename Real<T>::V;
  const V lowest = V{} + Real<T>::kLowest;
  Weigh<T, width>(block, [&](int64_t i) {
    const V exponent = block.weights[i] - top;
    return exponent > lowest ? exponent : lowest;
  });
}

// Base-2 logarithms of exp(−|k|²/2), or 0, of the keys of a head; returns the largest |k|.
template <typename T>
double Starts(const T* keys, int64_t stride, int64_t p, int64_t padded, bool gaussian, T* start) {
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;
  const T factor = gaussian ? T(-kLog2E / 2) : T(0);
  V largest = {};
  for (int64_t i = 0; i < padded; i += kLanes<T>) {
    V square = {};
    for (int64_t j = 0; j < p; ++j) {
      const V key = *reinterpret_cast<const Load*>(keys + j * stride + i);
      square += key * key;
    }
    largest = square > largest ? square : largest;
    *reinterpret_cast<Load*>(start + i) = factor * square;
  }
  return std::sqrt(double(LargestLane<T>(largest)));
}

template <typename T, int tile, int width>
void Run(int64_t kind, const T* queries, const T* anchors, const T* keys, const T* columns, int64_t count,
         int64_t p, int64_t heads, int64_t padded, int64_t n, double* peak,
         double* gram, double* linear, const T* centres, double* centred) {
  using V = typename Real<T>::V;
  constexpr int kLanes = kBytes / sizeof(T);
  constexpr int64_t kVectors = kPart<T> / kLanes;
  const int64_t tiles = heads / tile, stride = heads * padded;
  const int64_t size = tiles * (tiles + 1) / 2 * tile * tile;
  std::vector<V> others(centres ? heads * kVectors : 0), weights(heads * kVectors), pairs((centres ? 2 : 1) * size),
      sums(heads * width);
  std::vector<T> top(heads), start(stride);
  std::vector<double> longest(heads, std::numeric_limits<double>::infinity());
  std::vector<Way> ways(heads);
  for (int64_t h = 0; h < heads && count > 1; ++h)  // for one query it would not pay
    longest[h] = Starts(keys + h * padded, stride, p, padded, kind == kGaussian, &start[h * padded]);
  for (int64_t x = 0; x < count; ++x, queries += p * heads, anchors += p * heads, peak += heads,
               gram += heads * heads, linear += heads * width, centred += centres ? heads * heads : 0) {
    std::fill(pairs.begin(), pairs.end(), V{});
    std::fill(sums.begin(), sums.end(), V{});
    std::fill(top.begin(), top.end(), -std::numeric_limits<T>::infinity());
    for (int64_t h = 0; h < heads; ++h) {
      double square = 0;
      bool inside = kind == kGaussian;
      for (int64_t j = h; j < p * heads; j += heads) {
        square += double(queries[j]) * queries[j];
        inside = inside && queries[j] == anchors[j];
      }
      ways[h] = std::sqrt(square) * longest[h] <= kLongest<T> ? kProducts : inside ? kDifferences : kAnchored;
    }
    for (int64_t from = 0; from < n; from += kPart<T>) {
      const int64_t left = n - from < kPart<T> ? n - from : kPart<T>;
      const int64_t vectors = (left + kLanes - 1) / kLanes;
      for (int64_t h = 0; h < heads; ++h) {
        const T* block_keys = keys + h * padded + from;
        V* u = &weights[h * kVectors];
        const Block<T> block{columns + from, padded, vectors, left / kLanes, u, &sums[h * width], centres ? centres[x * heads + h] : T(0),
                             centres ? &others[h * kVectors] : nullptr};
        if (ways[h] != kAnchored) {
          const auto weigh = ways[h] == kProducts ? WeighUnshifted<T, width, kProducts> : WeighUnshifted<T, width, kDifferences>;
          weigh(queries + h, heads, block_keys, stride, p, &start[h * padded + from], block);
          if (from == 0 && !(SumOfLanes<T>(block.sums[width - 1]) >= kLeast<T>)) {
            std::fill(block.sums, block.sums + width, V{});
            ways[h] = kAnchored;
          }
        }
        if (ways[h] == kAnchored) {
          const auto exponents = kind == kGaussian ? Exponents<T, kGaussian> : Exponents<T, kSoftmax>;
          V largest = exponents(queries + h, anchors + h, heads, block_keys, stride, p, vectors, u);
          if (left < vectors * kLanes) {
            for (int64_t i = left; i < vectors * kLanes; ++i)
              u[i / kLanes][i % kLanes] = -std::numeric_limits<T>::infinity();
            largest = u[0];
            for (int64_t i = 1; i < vectors; ++i) largest = u[i] > largest ? u[i] : largest;
          }
          const T now = LargestLane<T>(largest);
          if (from == 0) top[h] = now;
          if (now > top[h] + kSlack) {
            // What was summed under an earlier shift is scaled to the new one.
            const T factor = std::exp2(top[h] - now);
            for (int c = 0; c < width; ++c) block.sums[c] *= factor;
            for (V* part = pairs.data(); part < pairs.data() + pairs.size(); part += size)
              for (int64_t i = 0, place = 0; i < tiles; ++i)
                for (int64_t j = i; j < tiles; ++j, place += tile * tile)
                  for (int a = 0; a < tile; ++a)
                    for (int b = 0; b < tile; ++b) {
                      if (i * tile + a == h) part[place + a * tile + b] *= factor;
                      if (j * tile + b == h) part[place + a * tile + b] *= factor;
                    }
            top[h] = now;
          }
          WeighShifted<T, width>(top[h], block);
        }
        for (int64_t i = left; i < vectors * kLanes; ++i) {
          u[i / kLanes][i % kLanes] = 0;
          if (centres) block.centred[i / kLanes][i % kLanes] = 0;
        }
      }
      V* part = pairs.data();
      for (const std::vector<V>* factors : {&weights, &others})
        for (int64_t i = 0; i < tiles && !factors->empty(); ++i)
          for (int64_t j = i; j < tiles; ++j, part += tile * tile) {
            const auto products = i == j ? Products<T, tile, true> : Products<T, tile>;
            products(&(*factors)[i * tile * kVectors], &(*factors)[j * tile * kVectors], kVectors, vectors, part);
          }
    }
    for (int64_t h = 0; h < heads; ++h) {
      // Of the exponents' common part: the anchor's is added by the caller, that of products is 0.
      double shift = ways[h] == kAnchored ? top[h] / kLog2E : 0;
      for (int64_t j = h; ways[h] == kProducts && j < p * heads; j += heads) {
        const double q = queries[j], a = anchors[j];
        shift += kind == kGaussian ? a * (a / 2 - q) : -q * a;
      }
      peak[h] = shift;
      for (int64_t c = 0; c < width; ++c) linear[h * width + c] = SumOfLanes<T>(sums[h * width + c]);
    }
    for (int64_t i = 0, place = 0; i < tiles; ++i)
      for (int64_t j = i; j < tiles; ++j, place += tile * tile)
        for (int a = 0; a < tile; ++a)
          for (int b = i == j ? a : 0; b < tile; ++b) {
            const int64_t h = i * tile + a, g = j * tile + b;
            gram[h * heads + g] = gram[g * heads + h] = SumOfLanes<T>(pairs[place + a * tile + b]);
            if (centres)
              centred[h * heads + g] = centred[g * heads + h] =
                  SumOfLanes<T>(pairs[size + place + a * tile + b]);
          }
  }
}

template <typename T, int width>
auto ByHeads(int64_t heads) {
  return heads % 4 == 0 ? Run<T, 4, width> : heads % 2 == 0 ? Run<T, 2, width> : Run<T, 1, width>;
}

template <ffi::DataType type, typename T>
ffi::Error Sums(ffi::Buffer<type> queries, ffi::Buffer<type> anchors, ffi::Buffer<type> keys,
                ffi::Buffer<type> columns, ffi::Buffer<type> centres, int64_t n, int64_t kind,
                ffi::ResultBuffer<ffi::F64> peak, ffi::ResultBuffer<ffi::F64> gram,
                ffi::ResultBuffer<ffi::F64> linear, ffi::ResultBuffer<ffi::F64> centred) {
  const auto q = queries.dimensions(), c = columns.dimensions();
  if (c[0] != 2 && c[0] != 3) return ffi::Error::InvalidArgument("columns: 2 or 3");
  const auto run = c[0] == 2 ? ByHeads<T, 2>(q[2]) : ByHeads<T, 3>(q[2]);
  run(kind, queries.typed_data(), anchors.typed_data(), keys.typed_data(), columns.typed_data(), q[0],
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
