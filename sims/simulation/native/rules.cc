// Sums of weights that depend on all keys at once, query by query: see __init__.py.
//
// The threshold of the best keys of every 16 or 8, found by Newton's method on them alone, is below
// that of all: so only keys above it can be attended. These candidates are listed one after another,
// and on them the method goes on. Their weights go into rows with a place for every key that is a
// candidate of some head, and the sums run over these rows.

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

// Candidates, the keys that may be attended: their scores, later weights, one after another, and
// which they are, a mask for every vector of keys.
template <typename T> struct Candidates {
  std::vector<typename Real<T>::V> values;
  std::vector<Mask<T>> masks;
  int64_t count = 0;

  // One vector more than there can be: whole vectors are read and written from any place.
  explicit Candidates(int64_t n) : values(VectorsOf<T>(n) + 1), masks(VectorsOf<T>(n)) {}

  T* Values() { return reinterpret_cast<T*>(values.data()); }
  const T* Values() const { return reinterpret_cast<const T*>(values.data()); }
};

// Scores of all keys, and their maxima by lane, a vector for every sub-block.
template <typename T> struct Scores {
  using V = typename Real<T>::V;
  std::vector<V> all, best, scaled;
  int64_t n;

  explicit Scores(int64_t n) : all(VectorsOf<T>(n)), best((n + kSubBlock - 1) / kSubBlock), scaled(best.size()), n(n) {}

  // Returns the largest, or NaN if any is.
  template <int kind> T Fill(const T* query, const T* keys, int64_t heads, int64_t padded, int64_t p) {
    const V lowest = V{} - std::numeric_limits<T>::infinity();
    V largest = lowest;
    Mask<T> lost = 0;
    for (int64_t start = 0, block = 0; start < n; start += kSubBlock, ++block) {
      const int64_t left = n - start < kSubBlock ? n - start : kSubBlock;
      const int64_t vectors = VectorsOf<T>(left);
      V* scores = &all[start / kLanes<T>];
      best[block] = Exponents<T, kind>(query, query, heads, keys + start, heads * padded, p, vectors, scores);
      for (int64_t i = 0; i < vectors; ++i) lost |= Bits(scores[i] != scores[i]);
      if (left < vectors * kLanes<T>) {
        for (int64_t i = left; i < vectors * kLanes<T>; ++i)
          scores[i / kLanes<T>][i % kLanes<T>] = -std::numeric_limits<T>::infinity();
        best[block] = lowest;
        for (int64_t i = 0; i < vectors; ++i) best[block] = scores[i] > best[block] ? scores[i] : best[block];
      }
      largest = best[block] > largest ? best[block] : largest;
    }
    return lost ? std::numeric_limits<T>::quiet_NaN() : LargestLane<T>(largest);
  }

  // Lists the keys whose scores, less `top` and times `factor`, are above −`reach`.
  void Keep(T top, T factor, T reach, Candidates<T>& candidates) const {
    T* to = candidates.Values();
    for (size_t i = 0; i < all.size(); ++i) {
      const V y = (all[i] - top) * factor;
      const Mask<T> mask = Bits(y > -reach);
      Compress(mask, y, to);
      candidates.masks[i] = mask;
      to += __builtin_popcount(mask);
    }
    candidates.count = to - candidates.Values();
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
      const V part = Exp2<T>(T(kLog2E * (nu - 1)) * Log1p<T>(ratio > T(-1) ? ratio : zero));
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
void Weigh(const Options& options, T top, double scale, Scores<T>& scores, Candidates<T>& candidates) {
  using V = typename Real<T>::V;
  const V zero = {};
  const double nu = options.nu;
  const bool entmax = options.rule == kEntmax, ratios = entmax && nu != 1 && nu != 2 && nu != 3;
  const T factor = T(scale / nu);
  const bool any = std::isfinite(top), lost = std::isnan(top);
  if (options.rule == kRelu) top = 0;
  T u = options.rule == kRelu ? T(options.offset) : T(1);
  if (entmax) {
    for (size_t i = 0; i < scores.best.size(); ++i) scores.scaled[i] = (scores.best[i] - top) * factor;
    u = LevelOf<T>(nu, scores.scaled.data(), scores.scaled.size(), u, true);
  }
  if (any) {
    // A little more than to the threshold, which is rounded.
    scores.Keep(top, factor, u + 8 * std::numeric_limits<T>::epsilon() * std::abs(u), candidates);
  } else {
    candidates.count = 0;
    std::fill(candidates.masks.begin(), candidates.masks.end(), 0);
  }
  const int64_t vectors = VectorsOf<T>(candidates.count);
  T* values = candidates.Values();
  std::fill(values + candidates.count, values + vectors * kLanes<T>, -std::numeric_limits<T>::infinity());
  V* parts = candidates.values.data();
  V sums = zero;
  if (entmax && candidates.count) u = LevelOf<T>(nu, parts, vectors, u, false);
  for (int64_t i = 0; i < vectors; ++i) {
    if (ratios) {
      const V ratio = parts[i] / u, inside = ratio > T(-1) ? ratio : zero;
      parts[i] = ratio > T(-1) ? Exp2<T>(T(kLog2E * nu) * Log1p<T>(inside)) : zero;
    } else {
      const V part = parts[i] + u;
      parts[i] = Power(part > zero ? part : zero, entmax ? int(nu) : 1);
    }
    sums += parts[i];
  }
  const double total = SumOfLanes<T>(sums);
  const T inverse = total > 0 ? T(1 / total) : T(0);
  for (int64_t i = 0; i < vectors; ++i) parts[i] *= inverse;
  if (lost || (total == 0 && options.rule == kRelu && options.uniform)) {
    candidates.count = scores.n;
    std::fill(values, values + scores.n, lost ? std::numeric_limits<T>::quiet_NaN() : T(1.0 / scores.n));
    std::fill(candidates.masks.begin(), candidates.masks.end(), kAll<T>);
    if (const int64_t over = scores.n % kLanes<T>) candidates.masks.back() = (1 << over) - 1;
  }
}

// Weights and columns at the candidates of all heads, one beside the other.
template <typename T> class Rows {
 public:
  explicit Rows(int64_t n) : all_(VectorsOf<T>(n)) {}

  void Gather(const std::vector<Candidates<T>>& heads, const T* columns, int64_t width, int64_t padded) {
    std::fill(all_.begin(), all_.end(), 0);
    for (const Candidates<T>& head : heads)
      for (size_t i = 0; i < all_.size(); ++i) all_[i] |= head.masks[i];
    int64_t count = 0;
    for (const Mask<T> mask : all_) count += __builtin_popcount(mask);
    vectors = VectorsOf<T>(count);
    const size_t need = (heads.size() + width) * vectors + 1;
    if (values_.size() < need) values_.resize(need);
    V* row = values_.data();
    for (const Candidates<T>& head : heads) {
      const T* from = head.Values();
      T* to = Cleared(row);
      for (size_t i = 0; i < all_.size(); ++i) {
        Spread(all_[i], head.masks[i], from, to);
        from += __builtin_popcount(head.masks[i]);
        to += __builtin_popcount(all_[i]);
      }
      row += vectors;
    }
    for (int64_t c = 0; c < width; ++c, row += vectors) {
      T* to = Cleared(row);
      for (size_t i = 0; i < all_.size(); ++i) {
        Compress(all_[i], reinterpret_cast<const Load*>(columns + c * padded)[i], to);
        to += __builtin_popcount(all_[i]);
      }
    }
  }

  // Of a head, or after all heads of a column.
  const typename Real<T>::V* Row(int64_t which) const { return &values_[which * vectors]; }

  int64_t vectors = 0;

 private:
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;

  // A row whose last lanes, which no key may fill, are 0.
  T* Cleared(V* row) {
    if (vectors) row[vectors - 1] = V{};
    return reinterpret_cast<T*>(row);
  }

  std::vector<Mask<T>> all_;
  std::vector<V> values_;
};

// Sums of the products of each of several rows with a column.
template <typename T, int tile>
inline void Against(const typename Real<T>::V* rows, int64_t stride, const typename Real<T>::V* column,
                    int64_t vectors, double* sums, int64_t step) {
  using V = typename Real<T>::V;
  V acc[tile] = {};
  for (int64_t i = 0; i < vectors; ++i)
    for (int h = 0; h < tile; ++h) acc[h] += column ? rows[h * stride + i] * column[i] : rows[h * stride + i];
  for (int h = 0; h < tile; ++h) sums[h * step] += SumOfLanes<T>(acc[h]);
}

template <typename T, int tile>
void Sum(const Rows<T>& rows, int64_t heads, int64_t width, double* linear, double* gram) {
  using V = typename Real<T>::V;
  std::fill(linear, linear + heads * (width + 1), 0.0);
  std::fill(gram, gram + heads * heads, 0.0);
  constexpr int64_t kChunk = kExact / kLanes<T>;
  for (int64_t from = 0; from < rows.vectors; from += kChunk) {
    const int64_t many = std::min(rows.vectors - from, kChunk);
    for (int64_t h = 0; h < heads; h += tile)
      for (int64_t c = 0; c <= width; ++c)
        Against<T, tile>(rows.Row(h) + from, rows.vectors, c < width ? rows.Row(heads + c) + from : nullptr, many,
                         linear + h * (width + 1) + c, width + 1);
    for (int64_t i = 0; i < heads; i += tile)
      for (int64_t j = i; j < heads; j += tile) {
        V pairs[tile * tile] = {};
        Products<T, tile>(rows.Row(i) + from, rows.Row(j) + from, rows.vectors, many, pairs);
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
  std::vector<Candidates<T>> candidates(heads, Candidates<T>(n));
  Scores<T> scores(n);
  Rows<T> rows(n);
  const T* query = queries.typed_data();
  for (int64_t x = 0; x < q[0]; ++x, query += p * heads) {
    for (int64_t h = 0; h < heads; ++h) {
      const double b = bandwidth.typed_data()[h], scale = (kind == kDot ? 1.0 : 0.5) / (b * b);
      const T* head_keys = keys.typed_data() + h * padded;
      const T top = kind == kDot ? scores.template Fill<kDot>(query + h, head_keys, heads, padded, p)
                                 : scores.template Fill<kDistance>(query + h, head_keys, heads, padded, p);
      Weigh<T>(options, top, scale, scores, candidates[h]);
    }
    rows.Gather(candidates, columns.typed_data(), width, padded);
    sum(rows, heads, width, linear->typed_data() + x * heads * (width + 1),
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
