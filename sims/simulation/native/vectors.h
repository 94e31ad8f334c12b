// Vectors of the host's CPU, and what is done with them for every rule.

#pragma once

#include <cstdint>
#include <limits>

namespace {

constexpr int kBytes = 64;      // of a vector; compilers split it where the CPU's are shorter
constexpr int kSubBlock = 256;  // keys whose weights stay in the first-level cache

template <typename T> struct Real;

template <> struct Real<float> {
  typedef float V __attribute__((vector_size(kBytes)));
  typedef float Load __attribute__((vector_size(kBytes), aligned(4), may_alias));
  typedef int32_t I __attribute__((vector_size(kBytes)));
  typedef int32_t Int;
  static constexpr Int kOffset = 127;
  static constexpr int kMantissa = 23, kDegree = 7;
  static constexpr float kLowest = -87.0f, kMagic = 12582912.0f;  // 1.5·2^23
  static constexpr float kLog2High = 0.693145751953125f, kLog2Low = 1.42860682030941723e-6f;
};

template <> struct Real<double> {
  typedef double V __attribute__((vector_size(kBytes)));
  typedef double Load __attribute__((vector_size(kBytes), aligned(8), may_alias));
  typedef int64_t I __attribute__((vector_size(kBytes)));
  typedef int64_t Int;
  static constexpr Int kOffset = 1023;
  static constexpr int kMantissa = 52, kDegree = 12;
  static constexpr double kLowest = -708.0, kMagic = 6755399441055744.0;  // 1.5·2^52
  static constexpr double kLog2High = 6.93147180369123816490e-1, kLog2Low = 1.90821492927058770002e-10;
};

enum Kind { kGaussian = 0, kSoftmax = 1, kDot = 2, kDistance = 3 };

// Exponents of one head at one query over `vectors` vectors of keys; returns the largest by lane.
// Of kDistance they are −‖q − k‖², with the query for an anchor, and of kDot ⟨q, k⟩ without one.
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
      slope[j] = zero + (kind == kGaussian ? x - y : x);
    }
    auto term = [&](int64_t i, int j) {
      const V key = reinterpret_cast<const Load*>(row[j])[i];
      if (kind == kDot) return key * slope[j];
      const V d = key - near[j];
      if (kind == kDistance) return -(d * d);
      return kind == kGaussian ? d * (slope[j] - T(0.5) * d) : d * slope[j];
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

// Adds the products of a tile of rows with another to the accumulators of the tile.
template <typename T, int tile>
inline void Products(const typename Real<T>::V* left, const typename Real<T>::V* right,
                     int64_t stride, int64_t vectors, typename Real<T>::V* sums) {
  using V = typename Real<T>::V;
  V acc[tile][tile];
  for (int h = 0; h < tile; ++h)
    for (int g = 0; g < tile; ++g) acc[h][g] = sums[h * tile + g];
  for (int64_t i = 0; i < vectors; ++i) {
    V l[tile], r[tile];
    for (int h = 0; h < tile; ++h) l[h] = left[h * stride + i];
    for (int g = 0; g < tile; ++g) r[g] = right[g * stride + i];
    for (int h = 0; h < tile; ++h)
      for (int g = 0; g < tile; ++g) acc[h][g] += l[h] * r[g];
  }
  for (int h = 0; h < tile; ++h)
    for (int g = 0; g < tile; ++g) sums[h * tile + g] = acc[h][g];
}

template <typename T>
T LargestLane(typename Real<T>::V v) {
  T largest = v[0];
  for (int i = 1; i < int(kBytes / sizeof(T)); ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

template <typename T>
double SumOfLanes(typename Real<T>::V v) {
  constexpr int kLanes = kBytes / sizeof(T);
  double lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = v[i];
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

}  // namespace
