// Sums of weights that depend on all keys at once, query by query: see __init__.py.
//
// The threshold of the best keys of every 16 or 8, found by Newton's method on them alone, is below
// that of all: so only keys above it can be attended. On these the method goes on, and sums run over
// the keys that some head attends to. Where most keys are above it, they stay where they are.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kRounds = 200;        // of a search at most: what bisection alone needs
constexpr int64_t kExact = 4096;    // keys whose sums stay in the precision of the work

constexpr int64_t kMany = 8;        // if more than 1/kMany of the keys may be attended, take all

enum Rule { kEntmax = 0, kGap = 1, kRelu = 2 };

struct Options {
  int64_t rule;
  double nu, offset;  // entmax's power, or ReLU's gain and its offset
  bool uniform;       // what ReLU makes of a row without a positive entry
};

template <typename T> constexpr int kLanes = kBytes / int(sizeof(T));

// The keys that may be attended, or are: their scores, later weights, and where they are; if
// `dense`, all keys in their order.
template <typename T> struct Few {
  std::vector<typename Real<T>::V> values;
  std::vector<int32_t> places;
  int64_t count = 0;
  bool dense = false;

  T* Values() { return reinterpret_cast<T*>(values.data()); }
  const T* Values() const { return reinterpret_cast<const T*>(values.data()); }

  // Room for so many keys more than there are.
  void Reserve(int64_t more) {
    const size_t need = (count + more) / kLanes<T> + 2;
    if (values.size() < need) values.resize(2 * need), places.resize(2 * need * kLanes<T>);
  }
};

// Writes the lanes that are to be kept one after another, and their numbers from `first`; up to a
// whole vector of each is overwritten. Returns how many.
#ifdef __AVX512F__
inline int64_t Compress(Real<float>::V value, Real<float>::I keep, int32_t first, float* to, int32_t* places) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __mmask16 mask = _mm512_test_epi32_mask((__m512i)keep, (__m512i)keep);
  _mm512_storeu_ps(to, _mm512_maskz_compress_ps(mask, (__m512)value));
  _mm512_storeu_si512(places, _mm512_add_epi32(_mm512_maskz_compress_epi32(mask, lanes), _mm512_set1_epi32(first)));
  return __builtin_popcount(mask);
}

inline int64_t Compress(Real<double>::V value, Real<double>::I keep, int32_t first, double* to, int32_t* places) {
  const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  const __mmask8 mask = _mm512_test_epi64_mask((__m512i)keep, (__m512i)keep);
  _mm512_storeu_pd(to, _mm512_maskz_compress_pd(mask, (__m512d)value));
  const __m512i kept = _mm512_add_epi64(_mm512_maskz_compress_epi64(mask, lanes), _mm512_set1_epi64(first));
  _mm256_storeu_si256((__m256i*)places, _mm512_cvtepi64_epi32(kept));
  return __builtin_popcount(mask);
}
#else
template <typename V, typename I, typename T>
inline int64_t Compress(V value, I keep, int32_t first, T* to, int32_t* places) {
  int64_t count = 0;
  for (int lane = 0; lane < kLanes<T>; ++lane) {
    to[count] = value[lane];
    places[count] = first + lane;
    count += keep[lane] != 0;
  }
  return count;
}
#endif

// Scores of all keys, and their maxima by lane, a vector for every sub-block.
template <typename T> struct Scores {
  using V = typename Real<T>::V;
  std::vector<V> all, best, scaled;
  int64_t n;

  explicit Scores(int64_t n) : all((n + kLanes<T> - 1) / kLanes<T>), best((n + kSubBlock - 1) / kSubBlock), scaled(best.size()), n(n) {}

  // Returns the largest.
  template <int kind> T Fill(const T* query, const T* keys, int64_t heads, int64_t padded, int64_t p) {
    const V lowest = V{} - std::numeric_limits<T>::infinity();
    V largest = lowest;
    for (int64_t start = 0, block = 0; start < n; start += kSubBlock, ++block) {
      const int64_t left = n - start < kSubBlock ? n - start : kSubBlock;
      const int64_t vectors = (left + kLanes<T> - 1) / kLanes<T>;
      V* scores = &all[start / kLanes<T>];
      best[block] = Exponents<T, kind>(query, query, heads, keys + start, heads * padded, p, vectors, scores);
      if (left < vectors * kLanes<T>) {
        for (int64_t i = left; i < vectors * kLanes<T>; ++i)
          scores[i / kLanes<T>][i % kLanes<T>] = -std::numeric_limits<T>::infinity();
        best[block] = lowest;
        for (int64_t i = 0; i < vectors; ++i) best[block] = scores[i] > best[block] ? scores[i] : best[block];
      }
      largest = best[block] > largest ? best[block] : largest;
    }
    return LargestLane<T>(largest);
  }

  // Lists the keys whose scores lie less than `reach` below `top`, or takes all.
  void Keep(T top, T reach, Few<T>& few) const {
    few.count = 0;
    few.dense = false;
    const int64_t vectors = all.size();
    for (int64_t i = 0; i < vectors; ++i) {
      if (i % (kSubBlock / kLanes<T>) == 0) {
        few.Reserve(kSubBlock + kLanes<T>);
        if (few.count > n / kMany) break;
      }
      few.count += Compress(all[i], all[i] - top > -reach, int32_t(i * kLanes<T>),
                            few.Values() + few.count, &few.places[few.count]);
    }
    if (few.count <= n / kMany) return;
    few.dense = true;
    few.count = n;
    few.Reserve(0);
    std::copy(all.begin(), all.end(), few.values.begin());
  }
};

// (u + y)₊ to a small power, by products.
template <typename V> inline V Power(V base, int power) {
  V out = base;
  for (int i = 1; i < power; ++i) out *= base;
  return out;
}

// The u with Σ (u + y)₊^ν = 1, for y of which the largest is 0, or somewhat more than u: Newton's
// method on ‖(u + y)₊‖_ν − 1, which is convex and so falls to the root from above.
template <typename T, int nu>
T Level(const typename Real<T>::V* y, int64_t vectors, T u, double tolerance) {
  using V = typename Real<T>::V;
  const V zero = {}, one = zero + T(1);
  for (int round = 0; round < kRounds; ++round) {
    V slopes = zero, sums = zero;
    for (int64_t i = 0; i < vectors; ++i) {
      const V part = y[i] + u;
      const V in = part > zero ? part : zero;
      const V slope = nu == 1 ? (part > zero ? one : zero) : Power(in, nu - 1);
      slopes += slope;
      sums += nu == 1 ? in : slope * in;
    }
    const double sum = SumOfLanes<T>(sums);
    const double norm = nu == 1 ? sum : nu == 2 ? std::sqrt(sum) : std::cbrt(sum);
    const T next = T(u - (norm - 1) * (sum / norm) / SumOfLanes<T>(slopes));
    if (!(next < u)) break;
    const bool near = u - next <= tolerance * u;
    u = next;
    if (near) break;
  }
  return u;
}

// The same for any ν > 0, in powers of 1 + y/u, which keep their digits for every ν; a bracket is
// kept, and halved where a step leaves it or shrinks too slowly. `above` takes its upper end.
template <typename T>
T AnyLevel(const typename Real<T>::V* y, int64_t vectors, double nu, T from, double tolerance, bool above) {
  using V = typename Real<T>::V;
  const V zero = {};
  const double keys = double(vectors) * kLanes<T>;
  double low = std::max(0.999 * std::pow(keys, -1 / nu), double(std::numeric_limits<T>::min()));
  double u = from, high = from, moved = 2;
  for (int round = 0; round < kRounds && moved > tolerance * u; ++round) {
    V slopes = zero, sums = zero;
    for (int64_t i = 0; i < vectors; ++i) {
      const V ratio = y[i] / T(u);
      const V part = Exp<T>(T(nu - 1) * Log1p<T>(ratio > T(-1) ? ratio : zero));
      slopes += ratio > T(-1) ? part : zero;
      sums += ratio > T(-1) ? part * (ratio + T(1)) : zero;
    }
    const double sum = SumOfLanes<T>(sums), slope = SumOfLanes<T>(slopes);
    const double logarithm = std::log(u) + std::log(sum) / nu;
    (logarithm < 0 ? low : high) = u;
    const double newton = u + std::expm1(-logarithm) * u * sum / slope;
    const bool fast = newton >= low && newton <= high && std::abs(newton - u) <= 0.5 * moved;
    const double next = fast ? newton : 0.5 * (low + high);
    moved = std::abs(next - u);
    u = next;
  }
  return T(above ? high : u);
}

constexpr double kRough = 0.05;  // of a threshold that only shortens the list

// Either of the two, from a level that is not below: near to rounding, or `rough` and not below.
template <typename T>
T LevelOf(double nu, const typename Real<T>::V* y, int64_t vectors, T from, bool rough) {
  const double eps = std::numeric_limits<T>::epsilon();
  // Beyond ν = 1 the error is squared by every step, and the next would be of rounding.
  const double tolerance = rough ? kRough : nu == 2 || nu == 3 ? std::sqrt(eps) / 16 : 2 * eps;
  return nu == 1   ? Level<T, 1>(y, vectors, from, tolerance)
         : nu == 2 ? Level<T, 2>(y, vectors, from, tolerance)
         : nu == 3 ? Level<T, 3>(y, vectors, from, tolerance)
                   : AnyLevel<T>(y, vectors, nu, from, tolerance, rough);
}

// The weights of the keys, whose scores times `scale` are those of the rule, of a head at a query.
template <typename T>
void Weigh(const Options& options, T top, double scale, Scores<T>& scores, Few<T>& few) {
  using V = typename Real<T>::V;
  const V zero = {};
  const double nu = options.nu;
  const bool entmax = options.rule == kEntmax, ratios = entmax && nu != 1 && nu != 2 && nu != 3;
  const T factor = T(scale / nu);
  if (options.rule == kRelu) top = 0;
  T u = options.rule == kRelu ? T(options.offset) : T(1);
  if (entmax) {
    for (size_t i = 0; i < scores.best.size(); ++i) scores.scaled[i] = (scores.best[i] - top) * factor;
    u = LevelOf<T>(nu, scores.scaled.data(), scores.scaled.size(), u, true);
  }
  // A little more than to the threshold, which is rounded.
  const double reach = u * nu / scale;
  few.count = 0;
  if (std::isfinite(top)) scores.Keep(top, T(reach + 8 * std::numeric_limits<T>::epsilon() * std::abs(reach)), few);
  const int64_t vectors = (few.count + kLanes<T> - 1) / kLanes<T>;
  few.Reserve(kLanes<T>);
  T* values = few.Values();
  std::fill(values + few.count, values + vectors * kLanes<T>, -std::numeric_limits<T>::infinity());
  V* parts = few.values.data();
  for (int64_t i = 0; i < vectors; ++i) parts[i] = (parts[i] - top) * factor;
  V sums = zero;
  if (entmax && few.count) u = LevelOf<T>(nu, parts, vectors, u, false);
  for (int64_t i = 0; i < vectors; ++i) {
    if (ratios) {
      const V ratio = parts[i] / u, inside = ratio > T(-1) ? ratio : zero;
      parts[i] = ratio > T(-1) ? Exp<T>(T(nu) * Log1p<T>(inside)) : zero;
    } else {
      const V part = parts[i] + u;
      parts[i] = Power(part > zero ? part : zero, entmax ? int(nu) : 1);
    }
    sums += parts[i];
  }
  const double total = SumOfLanes<T>(sums);
  const T inverse = total > 0 ? T(1 / total) : T(0);
  for (int64_t i = 0; i < vectors; ++i) parts[i] *= inverse;
  if (total == 0 && options.rule == kRelu && options.uniform) {
    few.count = 0;
    few.Reserve(scores.n);
    few.count = scores.n;
    few.dense = true;
    std::fill(few.Values(), few.Values() + few.count, T(1.0 / scores.n));
    std::fill(few.Values() + few.count, few.Values() + (few.count + kLanes<T> - 1) / kLanes<T> * kLanes<T>, T(0));
  }
}

// Weights and columns at the keys that some head attends to, one beside the other.
template <typename T> class Attended {
 public:
  explicit Attended(int64_t n) : slots_(n, -1) {}

  void Gather(const std::vector<Few<T>>& heads, const T* columns, int64_t width, int64_t padded) {
    places_.clear();
    bool dense = false;
    for (const Few<T>& few : heads) dense |= few.dense;
    for (const Few<T>& few : heads)
      for (int64_t i = 0; !dense && i < few.count; ++i)
        if (slots_[few.places[i]] < 0) {
          slots_[few.places[i]] = int32_t(places_.size());
          places_.push_back(few.places[i]);
        }
    const int64_t count = dense ? slots_.size() : places_.size();
    vectors = (count + kLanes<T> - 1) / kLanes<T>;
    rows_.resize((heads.size() + width) * vectors);
    std::fill(rows_.begin(), rows_.end(), V{});
    T* row = reinterpret_cast<T*>(rows_.data());
    for (const Few<T>& few : heads) {
      const T* values = few.Values();
      if (few.dense) std::copy(values, values + few.count, row);
      for (int64_t i = 0; !few.dense && i < few.count; ++i)
        row[dense ? few.places[i] : slots_[few.places[i]]] = values[i];
      row += vectors * kLanes<T>;
    }
    for (int64_t c = 0; c < width; ++c, row += vectors * kLanes<T>)
      for (int64_t i = 0; i < count; ++i) row[i] = columns[c * padded + (dense ? i : places_[i])];
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
  const auto sum = heads % 4 == 0 ? Sum<T, 4> : heads % 2 == 0 ? Sum<T, 2> : Sum<T, 1>;
  std::vector<Few<T>> few(heads);
  Scores<T> scores(n);
  Attended<T> attended(n);
  const T* query = queries.typed_data();
  for (int64_t x = 0; x < q[0]; ++x, query += p * heads) {
    for (int64_t h = 0; h < heads; ++h) {
      const double b = bandwidth.typed_data()[h], scale = (kind == kDot ? 1.0 : 0.5) / (b * b);
      const T* own = keys.typed_data() + h * padded;
      const T top = kind == kDot ? scores.template Fill<kDot>(query + h, own, heads, padded, p)
                                 : scores.template Fill<kDistance>(query + h, own, heads, padded, p);
      Weigh<T>(options, top, scale, scores, few[h]);
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
