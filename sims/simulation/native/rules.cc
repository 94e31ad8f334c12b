// Sums of weights that depend on all keys at once, query by query: see __init__.py.
//
// Scores are made 256 at a time, and those within reach of the best so far are kept: no other key
// can be attended. The threshold is found by Newton's method on these few, and all sums run over
// the keys that some head attends to.

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

constexpr int kRounds = 200;        // of a search at most: what bisection alone needs
constexpr int64_t kExact = 4096;    // keys whose sums stay in the precision of the work

enum Rule { kEntmax = 0, kGap = 1, kRelu = 2 };

struct Options {
  int64_t rule;
  double nu, offset;  // entmax's power, or ReLU's gain and its offset
  bool uniform;       // what ReLU makes of a row without a positive entry
};

template <typename T> constexpr int kLanes = kBytes / int(sizeof(T));

// The keys that may be attended, or are: their scores, later weights, and where they are.
template <typename T> struct Few {
  std::vector<T> values;
  std::vector<int32_t> places;
  int64_t count = 0;

  // Room for a sub-block more, and for what fills the last vector.
  void Reserve() {
    const size_t need = count + kSubBlock + kLanes<T>;
    if (values.size() < need) values.resize(2 * need), places.resize(2 * need);
  }
};

// Appends the scores of a sub-block that lie less than `reach` below `top`.
template <typename T>
inline void Keep(const typename Real<T>::V* scores, int64_t vectors, T top, T reach, int64_t start,
                 Few<T>& few) {
  typedef int8_t Mask __attribute__((vector_size(kLanes<T>)));
  constexpr int kWords = kLanes<T> / 8;
  few.Reserve();
  int64_t count = few.count;
  for (int64_t i = 0; i < vectors; ++i) {
    const Mask mask = __builtin_convertvector(scores[i] - top > -reach, Mask);
    uint64_t words[kWords];
    std::memcpy(words, &mask, sizeof words);
    for (int w = 0; w < kWords; ++w)
      for (uint64_t left = words[w] & 0x8080808080808080u; left; left &= left - 1) {
        const int lane = 8 * w + (__builtin_ctzll(left) >> 3);
        few.values[count] = reinterpret_cast<const T*>(scores + i)[lane];
        few.places[count++] = int32_t(start + i * kLanes<T> + lane);
      }
  }
  few.count = count;
}

// The largest score; without `follows` it counts as 0, and `reach` is below that.
template <typename T, int kind>
T Candidates(const T* query, const T* keys, int64_t heads, int64_t padded, int64_t p, int64_t n,
             T reach, bool follows, Few<T>& few) {
  using V = typename Real<T>::V;
  V scores[kSubBlock / kLanes<T>];
  T top = follows ? -std::numeric_limits<T>::infinity() : T(0);
  few.count = 0;
  for (int64_t start = 0; start < n; start += kSubBlock) {
    const int64_t left = n - start < kSubBlock ? n - start : kSubBlock;
    const int64_t vectors = (left + kLanes<T> - 1) / kLanes<T>;
    V largest = Exponents<T, kind>(query, query, heads, keys + start, heads * padded, p, vectors, scores);
    if (left < vectors * kLanes<T>) {
      for (int64_t i = left; i < vectors * kLanes<T>; ++i)
        scores[i / kLanes<T>][i % kLanes<T>] = -std::numeric_limits<T>::infinity();
      largest = scores[0];
      for (int64_t i = 1; i < vectors; ++i) largest = scores[i] > largest ? scores[i] : largest;
    }
    const T now = LargestLane<T>(largest);
    if (follows) top = now > top ? now : top;
    if (now - top > -reach) Keep<T>(scores, vectors, top, reach, start, few);
  }
  return top;
}

// (u + y)₊ to a small power, by products.
template <typename V> inline V Power(V base, int power) {
  V out = base;
  for (int i = 1; i < power; ++i) out *= base;
  return out;
}

// The u ≤ 1 with Σ (u + y)₊^ν = 1, for y of which the largest is 0: Newton's method on
// ‖(u + y)₊‖_ν − 1, which is convex and so falls to the root from 1.
template <typename T, int nu> T Level(const T* y, int64_t vectors) {
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;
  const V zero = {}, one = zero + T(1);
  T u = 1;
  for (int round = 0; round < kRounds; ++round) {
    V slopes = zero, sums = zero;
    for (int64_t i = 0; i < vectors; ++i) {
      const V part = reinterpret_cast<const Load*>(y)[i] + u;
      const V in = part > zero ? part : zero;
      const V slope = nu == 1 ? (part > zero ? one : zero) : Power(in, nu - 1);
      slopes += slope;
      sums += nu == 1 ? in : slope * in;
    }
    const double sum = SumOfLanes<T>(sums);
    const double norm = nu == 1 ? sum : nu == 2 ? std::sqrt(sum) : std::pow(sum, 1.0 / nu);
    const T next = T(u - (norm - 1) * (sum / norm) / SumOfLanes<T>(slopes));
    if (!(next < u)) break;
    const bool near = u - next <= 2 * std::numeric_limits<T>::epsilon() * u;
    u = next;
    if (near) break;
  }
  return u;
}

// The same for any ν > 0, in powers of 1 + y/u, which keep their digits for every ν; a bracket is
// kept, and halved where a step leaves it or shrinks too slowly.
template <typename T> T AnyLevel(const T* y, int64_t count, double nu, int64_t n) {
  const double eps = std::numeric_limits<T>::epsilon();
  double u = 1, high = 1, moved = 2;
  double low = std::max(0.999 * std::pow(double(n), -1 / nu), double(std::numeric_limits<T>::min()));
  for (int round = 0; round < kRounds && moved > 2 * eps * u; ++round) {
    double sum = 0, slope = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double ratio = double(y[i]) / u;
      if (!(ratio > -1)) continue;
      const double part = std::exp((nu - 1) * std::log1p(ratio));
      slope += part;
      sum += part * (1 + ratio);
    }
    const double logarithm = std::log(u) + std::log(sum) / nu;
    (logarithm < 0 ? low : high) = u;
    const double newton = u + std::expm1(-logarithm) * u * sum / slope;
    const bool fast = newton >= low && newton <= high && std::abs(newton - u) <= 0.5 * moved;
    const double next = fast ? newton : 0.5 * (low + high);
    moved = std::abs(next - u);
    u = next;
  }
  return T(u);
}

// From scores to weights, in place; keys of weight 0 leave the list.
template <typename T>
void Weigh(const Options& options, T top, double scale, int64_t n, Few<T>& few) {
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;
  few.Reserve();
  if (!std::isfinite(top)) few.count = 0;
  T* y = few.values.data();
  const int64_t vectors = (few.count + kLanes<T> - 1) / kLanes<T>;
  std::fill(y + few.count, y + vectors * kLanes<T>, -std::numeric_limits<T>::infinity());
  const T factor = T(scale / options.nu);
  Load* parts = reinterpret_cast<Load*>(y);
  for (int64_t i = 0; i < vectors; ++i) parts[i] = (parts[i] - top) * factor;
  const int power = options.rule != kEntmax ? 1 : options.nu == 1 || options.nu == 2 || options.nu == 3
                        ? int(options.nu) : 0;
  V sums = {};
  if (few.count && power == 0) {
    const T u = AnyLevel<T>(y, few.count, options.nu, n);
    for (int64_t i = 0; i < few.count; ++i) {
      const T ratio = y[i] / u;
      y[i] = ratio > -1 ? std::exp(T(options.nu) * std::log1p(ratio)) : T(0);
    }
    std::fill(y + few.count, y + vectors * kLanes<T>, T(0));
    for (int64_t i = 0; i < vectors; ++i) sums += parts[i];
  } else if (few.count) {
    const T u = options.rule == kGap    ? T(1)
                : options.rule == kRelu ? T(options.offset)
                : power == 1            ? Level<T, 1>(y, vectors)
                : power == 2            ? Level<T, 2>(y, vectors)
                                        : Level<T, 3>(y, vectors);
    const V zero = {};
    for (int64_t i = 0; i < vectors; ++i) {
      const V part = parts[i] + u;
      const V in = part > zero ? part : zero;
      parts[i] = Power(in, power);
      sums += parts[i];
    }
  }
  const double total = SumOfLanes<T>(sums);
  int64_t kept = 0;
  const T inverse = T(1 / total);
  for (int64_t i = 0; i < few.count; ++i) {
    const T part = y[i];
    y[kept] = part * inverse;
    few.places[kept] = few.places[i];
    kept += part > 0;
  }
  few.count = kept;
  if (!kept && options.rule == kRelu && options.uniform)
    for (; few.count < n; ++few.count) {
      few.Reserve();
      few.values[few.count] = T(1.0 / n);
      few.places[few.count] = int32_t(few.count);
    }
}

// Weights and columns at the keys that some head attends to, one beside the other.
template <typename T> class Attended {
 public:
  explicit Attended(int64_t n) : slots_(n, -1) {}

  void Gather(const std::vector<Few<T>>& heads, const T* columns, int64_t width, int64_t padded) {
    places_.clear();
    for (const Few<T>& few : heads)
      for (int64_t i = 0; i < few.count; ++i)
        if (slots_[few.places[i]] < 0) {
          slots_[few.places[i]] = int32_t(places_.size());
          places_.push_back(few.places[i]);
        }
    vectors = (int64_t(places_.size()) + kLanes<T> - 1) / kLanes<T>;
    rows_.assign((heads.size() + width) * vectors, V{});
    T* row = reinterpret_cast<T*>(rows_.data());
    for (const Few<T>& few : heads) {
      for (int64_t i = 0; i < few.count; ++i) row[slots_[few.places[i]]] = few.values[i];
      row += vectors * kLanes<T>;
    }
    for (int64_t c = 0; c < width; ++c, row += vectors * kLanes<T>)
      for (size_t i = 0; i < places_.size(); ++i) row[i] = columns[c * padded + places_[i]];
    for (const int32_t place : places_) slots_[place] = -1;
  }

  // Of a head, or after all heads of a column.
  const typename Real<T>::V* Row(int64_t which) const { return &rows_[which * vectors]; }

  int64_t vectors = 0;

 private:
  using V = typename Real<T>::V;
  std::vector<int32_t> slots_, places_;
  std::vector<V> rows_;
};

template <typename T, int tile>
void Sum(const Attended<T>& attended, int64_t heads, int64_t width, double* linear, double* gram) {
  using V = typename Real<T>::V;
  std::fill(linear, linear + heads * (width + 1), 0.0);
  std::fill(gram, gram + heads * heads, 0.0);
  constexpr int64_t kChunk = kExact / kLanes<T>;
  for (int64_t from = 0; from < attended.vectors; from += kChunk) {
    const int64_t many = std::min(attended.vectors - from, kChunk);
    for (int64_t h = 0; h < heads; ++h) {
      const V* w = attended.Row(h) + from;
      V mass = {};
      for (int64_t i = 0; i < many; ++i) mass += w[i];
      for (int64_t c = 0; c < width; ++c) {
        const V* column = attended.Row(heads + c) + from;
        V sum = {};
        for (int64_t i = 0; i < many; ++i) sum += w[i] * column[i];
        linear[h * (width + 1) + c] += SumOfLanes<T>(sum);
      }
      linear[h * (width + 1) + width] += SumOfLanes<T>(mass);
    }
    for (int64_t i = 0; i < heads; i += tile)
      for (int64_t j = i; j < heads; j += tile) {
        V pairs[tile * tile] = {};
        Products<T, tile>(attended.Row(i) + from, attended.Row(j) + from, attended.vectors, many, pairs);
        for (int64_t a = 0; a < tile; ++a)
          for (int64_t b = 0; b < tile; ++b) gram[(i + a) * heads + j + b] += SumOfLanes<T>(pairs[a * tile + b]);
      }
  }
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t g = 0; g < h; ++g) gram[h * heads + g] = gram[g * heads + h];
}

template <ffi::DataType type, typename T>
ffi::Error Weighed(ffi::Buffer<type> queries, ffi::Buffer<type> keys, ffi::Buffer<type> columns,
                   ffi::Buffer<type> bandwidth, int64_t n, int64_t kind, int64_t rule, double nu,
                   double offset, int64_t uniform, ffi::ResultBuffer<ffi::F64> linear,
                   ffi::ResultBuffer<ffi::F64> gram) {
  const auto q = queries.dimensions(), c = columns.dimensions();
  if (n > std::numeric_limits<int32_t>::max()) return ffi::Error::InvalidArgument("n: below 2^31");
  const int64_t p = q[1], heads = q[2], width = c[0], padded = c[1];
  const Options options{rule, nu, offset, uniform != 0};
  const auto candidates = kind == kDot ? Candidates<T, kDot> : Candidates<T, kDistance>;
  const auto sum = heads % 4 == 0 ? Sum<T, 4> : heads % 2 == 0 ? Sum<T, 2> : Sum<T, 1>;
  std::vector<Few<T>> few(heads);
  Attended<T> attended(n);
  const T* query = queries.typed_data();
  for (int64_t x = 0; x < q[0]; ++x, query += p * heads) {
    for (int64_t h = 0; h < heads; ++h) {
      const double b = bandwidth.typed_data()[h], scale = (kind == kDot ? 1.0 : 0.5) / (b * b);
      const double reach = (rule == kRelu ? nu * offset : nu) / scale;
      const T top = candidates(query + h, keys.typed_data() + h * padded, heads, padded, p, n,
                               T(reach), rule != kRelu, few[h]);
      Weigh<T>(options, top, scale, n, few[h]);
    }
    attended.Gather(few, columns.typed_data(), width, padded);
    sum(attended, heads, width, linear->typed_data() + x * heads * (width + 1),
        gram->typed_data() + x * heads * heads);
  }
  return ffi::Error::Success();
}

}  // namespace

#define SIMS_RULE_HANDLER(name, type, T)                           \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (Weighed<type, T>),          \
                                ffi::Ffi::Bind()                   \
                                    .Arg<ffi::Buffer<type>>()      \
                                    .Arg<ffi::Buffer<type>>()      \
                                    .Arg<ffi::Buffer<type>>()      \
                                    .Arg<ffi::Buffer<type>>()      \
                                    .Attr<int64_t>("n")            \
                                    .Attr<int64_t>("kind")         \
                                    .Attr<int64_t>("rule")         \
                                    .Attr<double>("nu")            \
                                    .Attr<double>("offset")        \
                                    .Attr<int64_t>("uniform")      \
                                    .Ret<ffi::Buffer<ffi::F64>>()  \
                                    .Ret<ffi::Buffer<ffi::F64>>())

SIMS_RULE_HANDLER(sims_rules_float32, ffi::F32, float);
SIMS_RULE_HANDLER(sims_rules_float64, ffi::F64, double);
