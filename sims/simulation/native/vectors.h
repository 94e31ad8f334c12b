// Vectors of the host's CPU, and what is done with them for every rule.

#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__BMI2__)
#define SIMS_AVX512
#include <immintrin.h>
#endif

namespace {

// Bytes of a vector: as many as the CPU's have. A longer one would go through memory at every step.
#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kSubBlock = 256;  // keys whose weights stay in the first-level cache

template <typename T> struct Real;

template <> struct Real<float> {
  typedef float V __attribute__((vector_size(kBytes)));
  typedef float Load __attribute__((vector_size(kBytes), aligned(4), may_alias));
  typedef int32_t I __attribute__((vector_size(kBytes)));
  typedef int32_t Int;
  static constexpr Int kOffset = 127;
  static constexpr int kMantissa = 23;
  static constexpr float kPower[] = {1.0f,          0.693153125f, 0.240153635f,
                                     0.0558263223f, 0.0089893407f, 0.00187757684f};
  static constexpr float kLowest = -87.0f, kMagic = 12582912.0f;  // 1.5·2^23
  static constexpr float kLog2High = 0.693145751953125f, kLog2Low = 1.42860682030941723e-6f;
};

template <> struct Real<double> {
  typedef double V __attribute__((vector_size(kBytes)));
  typedef double Load __attribute__((vector_size(kBytes), aligned(8), may_alias));
  typedef int64_t I __attribute__((vector_size(kBytes)));
  typedef int64_t Int;
  static constexpr Int kOffset = 1023;
  static constexpr int kMantissa = 52;
  static constexpr double kPower[] = {1.0, 0.69314718055989111, 0.24022650696136075,
                                      0.055504108628244793, 0.0096181294091759757,
                                      0.0013333543730938327, 0.00015403957491184246,
                                      1.5244659646603737e-5, 1.3312720070473666e-6,
                                      9.4609451985004177e-8, 9.952215187242474e-9};
  static constexpr double kLowest = -708.0, kMagic = 6755399441055744.0;  // 1.5·2^52
  static constexpr double kLog2High = 6.93147180369123816490e-1, kLog2Low = 1.90821492927058770002e-10;
};

template <typename T> constexpr int kLanes = kBytes / int(sizeof(T));

// A bit for every lane of a vector.
template <typename T> using Mask = std::conditional_t<kLanes<T> == 16, uint16_t, uint8_t>;

template <typename T> constexpr Mask<T> kAll = (1 << kLanes<T>) - 1;

template <typename T> int64_t VectorsOf(int64_t n) { return (n + kLanes<T> - 1) / kLanes<T>; }

// Of lanes: which are to be kept; those of a mask, written one after another; and, for every lane
// that `all` marks, the next of `from` if `mask` marks it and else 0. Where they write, up to a
// whole vector is overwritten.
#ifdef SIMS_AVX512
inline uint16_t Bits(Real<float>::I keep) { return _mm512_test_epi32_mask((__m512i)keep, (__m512i)keep); }

inline uint8_t Bits(Real<double>::I keep) { return _mm512_test_epi64_mask((__m512i)keep, (__m512i)keep); }

inline void Compress(uint16_t mask, Real<float>::V value, float* to) {
  _mm512_storeu_ps(to, _mm512_maskz_compress_ps(mask, (__m512)value));
}

inline void Compress(uint8_t mask, Real<double>::V value, double* to) {
  _mm512_storeu_pd(to, _mm512_maskz_compress_pd(mask, (__m512d)value));
}

inline void Spread(uint16_t all, uint16_t mask, const float* from, float* to) {
  _mm512_storeu_ps(to, _mm512_maskz_expand_ps(_pext_u32(mask, all), _mm512_loadu_ps(from)));
}

inline void Spread(uint8_t all, uint8_t mask, const double* from, double* to) {
  _mm512_storeu_pd(to, _mm512_maskz_expand_pd(_pext_u32(mask, all), _mm512_loadu_pd(from)));
}
#else
template <typename I> inline auto Bits(I keep) {
  constexpr int lanes = sizeof(I) / sizeof(keep[0]);
  std::conditional_t<lanes == 16, uint16_t, uint8_t> mask = 0;
  for (int lane = 0; lane < lanes; ++lane) mask |= (keep[lane] != 0) << lane;
  return mask;
}

template <typename T> inline void Compress(Mask<T> mask, typename Real<T>::V value, T* to) {
  for (int lane = 0; lane < kLanes<T>; ++lane) {
    *to = value[lane];
    to += mask >> lane & 1;
  }
}

template <typename T> inline void Spread(Mask<T> all, Mask<T> mask, const T* from, T* to) {
  for (int lane = 0; lane < kLanes<T>; ++lane) {
    const bool in = mask >> lane & 1;
    *to = in ? *from : T(0);
    from += in;
    to += all >> lane & 1;
  }
}
#endif

constexpr double kLog2E = 1.4426950408889634;

// 2^x, up to a factor near 1 that all x share, for x < 2^(kMantissa − 2): of the next lower integer
// and, by the best polynomial of its degree, of the rest, within 8e-8 (degree 5) and 3e-16 (10). Far
// below, 0; without AVX-512, 2^kLowest.
template <typename T>
inline typename Real<T>::V Exp2(typename Real<T>::V x) {
  using R = Real<T>;
  using V = typename R::V;
  V rest, result;
#ifdef SIMS_AVX512
  constexpr int kFloor = 9;
  if constexpr (sizeof(T) == 4) rest = (V)_mm512_reduce_ps((__m512)x, kFloor);
  else rest = (V)_mm512_reduce_pd((__m512d)x, kFloor);
#else
  const V lowest = V{} + R::kLowest;
  x = x > lowest ? x : lowest;
  // Adding the magic number leaves the nearest integer in the lowest bits.
  const V shifted = (x - T(0.5)) + R::kMagic;
  rest = x - (shifted - R::kMagic);
#endif
  result = V{} + std::end(R::kPower)[-1];
  for (int i = std::size(R::kPower) - 2; i >= 0; --i) result = result * rest + R::kPower[i];
#ifdef SIMS_AVX512
  if constexpr (sizeof(T) == 4) return (V)_mm512_scalef_ps((__m512)result, (__m512)x);
  else return (V)_mm512_scalef_pd((__m512d)result, (__m512d)x);
#else
  typename R::I bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << R::kMantissa) + (R::kOffset << R::kMantissa);
  V power;
  std::memcpy(&power, &bits, sizeof power);
  return result * power;
#endif
}

// log(1 + x) for −1 < x ≤ 0: of the rounded 1 + x by the odd series in (m − 1)/(m + 1), which ends
// within 1e-8 (5 terms) and 1e-17 (11), and what rounding took off.
template <typename T>
inline typename Real<T>::V Log1p(typename Real<T>::V x) {
  using R = Real<T>;
  using V = typename R::V;
  using I = typename R::I;
  constexpr int kTerms = sizeof(T) == 4 ? 5 : 11;
  const V w = x + T(1);
  I bits;
  std::memcpy(&bits, &w, sizeof bits);
  // 1 + x = 2^e m with m within √2 of 1: the bits of √½ begin the next power.
  const T root = T(0.70710678118654752);
  typename R::Int half;
  std::memcpy(&half, &root, sizeof half);
  const I exponent = (bits - half) >> R::kMantissa;
  bits -= exponent << R::kMantissa;
  V m;
  std::memcpy(&m, &bits, sizeof m);
  const V f = m - T(1), s = f / (m + T(1)), square = s * s;
  V poly = V{} + T(1.0 / (2 * kTerms - 1));
  for (int i = kTerms - 2; i >= 0; --i) poly = poly * square + T(1.0 / (2 * i + 1));
  const V e = __builtin_convertvector(exponent, V);
  return e * R::kLog2High + (T(2) * s * poly + (e * R::kLog2Low + (x - (w - T(1))) / w));
}

enum Kind { kGaussian = 0, kSoftmax = 1, kDot = 2, kDistance = 3 };

// Exponents of one head at one query over `vectors` vectors of keys; returns the largest by lane.
// Those of kernels are in base 2. Of kDistance they are −‖q − k‖², with the query for an anchor, and of kDot ⟨q, k⟩ without one.
template <typename T, int kind>
inline typename Real<T>::V Exponents(const T* q, const T* a, int64_t head_stride, const T* keys, int64_t key_stride,
                      int64_t p, int64_t vectors, typename Real<T>::V* out) {
  using V = typename Real<T>::V;
  using Load = typename Real<T>::Load;
  const V zero = {};
  V largest = zero - std::numeric_limits<T>::infinity();
  for (int64_t from = 0; from < p; from += 4) {
    const int64_t many = p - from < 4 ? p - from : 4;
    V near[4] = {}, slope[4] = {};
    const T* row[4];
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t at = from + (j < many ? j : 0);
      row[j] = keys + at * key_stride;
      const T x = q[at * head_stride], y = a[at * head_stride];
      near[j] = zero + y;
      slope[j] = zero + (kind == kGaussian ? T(kLog2E) * (x - y) : kind == kSoftmax ? T(kLog2E) * x : x);
    }
    auto term = [&](int64_t i, int j) {
      const V key = reinterpret_cast<const Load*>(row[j])[i];
      if (kind == kDot) return key * slope[j];
      const V d = key - near[j];
      if (kind == kDistance) return -(d * d);
      return kind == kGaussian ? d * (slope[j] - T(0.5 * kLog2E) * d) : d * slope[j];
    };
    if (p == 4) {
      for (int64_t i = 0; i < vectors; ++i) {
        const V l = (term(i, 0) + term(i, 1)) + (term(i, 2) + term(i, 3));
        largest = l > largest ? l : largest;
        out[i] = l;
      }
      return largest;
    }
    for (int64_t i = 0; i < vectors; ++i) {
      V l = from ? out[i] : zero;
      for (int j = 0; j < many; ++j) l += term(i, j);
      out[i] = l;
    }
  }
  for (int64_t i = 0; i < vectors; ++i) largest = out[i] > largest ? out[i] : largest;
  return largest;
}

// Adds the products of a tile of rows with another to the accumulators of the tile; of one with
// itself, those on and above the diagonal.
template <typename T, int tile, bool itself = false>
inline void Products(const typename Real<T>::V* left, const typename Real<T>::V* right,
                     int64_t stride, int64_t vectors, typename Real<T>::V* sums) {
  using V = typename Real<T>::V;
  // As many accumulators at a time as there are registers for: 32 with AVX-512, 16 without.
  constexpr int part = kBytes == 64 || itself ? tile : (tile + 1) / 2;
  for (int from = 0; from < tile; from += part) {
    V acc[tile][part];
    for (int h = 0; h < tile; ++h)
      for (int g = 0; g < part; ++g) acc[h][g] = sums[h * tile + from + g];
    for (int64_t i = 0; i < vectors; ++i) {
      V l[tile], r[part];
      for (int h = 0; h < tile; ++h) l[h] = left[h * stride + i];
      for (int g = 0; g < part; ++g) r[g] = right[(from + g) * stride + i];
      for (int h = 0; h < tile; ++h)
        for (int g = itself ? h : 0; g < part; ++g) acc[h][g] += l[h] * r[g];
    }
    for (int h = 0; h < tile; ++h)
      for (int g = 0; g < part; ++g) sums[h * tile + from + g] = acc[h][g];
  }
}

template <typename T>
T LargestLane(typename Real<T>::V v) {
  T largest = v[0];
  for (int i = 1; i < int(kBytes / sizeof(T)); ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

typedef double D2 __attribute__((vector_size(16)));
typedef double D4 __attribute__((vector_size(32)));
typedef double D8 __attribute__((vector_size(64)));

// The sum of one half's lanes and the other's, until one is left.
inline double Folded(D2 v) { return v[0] + v[1]; }

inline double Folded(D4 v) {
  D2 parts[2];
  std::memcpy(parts, &v, sizeof parts);
  return Folded(parts[0] + parts[1]);
}

inline double Folded(D8 v) {
  D4 parts[2];
  std::memcpy(parts, &v, sizeof parts);
  return Folded(parts[0] + parts[1]);
}

// In double precision.
template <typename T>
double SumOfLanes(typename Real<T>::V v) {
  if constexpr (sizeof(T) == 4) {
    typedef float F __attribute__((vector_size(kBytes / 2)));
    typedef double D __attribute__((vector_size(kBytes)));
    F halves[2];
    std::memcpy(halves, &v, sizeof halves);
    return Folded(__builtin_convertvector(halves[0], D) + __builtin_convertvector(halves[1], D));
  } else {
    return Folded(v);
  }
}

}  // namespace
