// The kernel sums of 8 heads of width 4 by a plain loop for AVX-512: the limit of limit.py.
//
// Sizes are fixed, queries in units of log 2, no exponent is shifted, nothing is checked: what the
// engine's sums may cost beside it is the price of any H, d_k, n and query.

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace {

constexpr int kHeads = 8, kWidth = 4, kColumns = 3;

typedef float F __attribute__((vector_size(64)));
typedef double D __attribute__((vector_size(64)));

inline F Scaled(F value, F power) { return (F)_mm512_scalef_ps((__m512)value, (__m512)power); }
inline D Scaled(D value, D power) { return (D)_mm512_scalef_pd((__m512d)value, (__m512d)power); }
inline F Rest(F x) { return (F)_mm512_reduce_ps((__m512)x, 9); }
inline D Rest(D x) { return (D)_mm512_reduce_pd((__m512d)x, 9); }

// 2^x on [0, 1], to 8e-8 and 3e-16.
constexpr float kFloat[] = {1, 0.693153125f, 0.240153635f, 0.0558263223f, 0.0089893407f, 0.00187757684f};
constexpr double kDouble[] = {1, 0.69314718055989111, 0.24022650696136075, 0.055504108628244793,
                              0.0096181294091759757, 0.0013333543730938327, 0.00015403957491184246,
                              1.5244659646603737e-5, 1.3312720070473666e-6, 9.4609451985004177e-8,
                              9.952215187242474e-9};

template <typename V, typename T, int terms>
void Run(const T (&power)[terms], const T* queries, const T* keys, const T* starts, const T* columns,
         int64_t count, int64_t n, T* gram, T* linear) {
  constexpr int lanes = sizeof(V) / sizeof(T), vectors = 32, keys_together = vectors * lanes;
  alignas(64) static V u[kHeads][vectors];
  auto total = [](V v) {
    T sum = 0;
    for (int i = 0; i < lanes; ++i) sum += v[i];
    return sum;
  };
  auto at = [&](const T* row, int64_t from) { return reinterpret_cast<const V*>(row + from); };
  for (int64_t x = 0; x < count; ++x, queries += kWidth * kHeads) {
    V inside[2][4][4] = {}, across[4][4] = {}, sums[kHeads][kColumns] = {};
    for (int64_t from = 0; from < n; from += keys_together) {
      for (int h = 0; h < kHeads; ++h) {
        V q[kWidth];
        const V *start = at(starts + h * n, from), *key[kWidth];
        for (int j = 0; j < kWidth; ++j) {
          q[j] = V{} + queries[j * kHeads + h];
          key[j] = at(keys + (j * kHeads + h) * n, from);
        }
        for (int i = 0; i < vectors; ++i) {
          V score = start[i];
          for (int j = 0; j < kWidth; ++j) score += q[j] * key[j][i];
          const V rest = Rest(score);
          V value = V{} + power[terms - 1];
          for (int k = terms - 2; k >= 0; --k) value = value * rest + power[k];
          u[h][i] = Scaled(value, score);
        }
      }
      for (int half = 0; half < 2; ++half) {
        V pairs[4][4], linear[4][kColumns];
        for (int a = 0; a < 4; ++a) {
          for (int b = a; b < 4; ++b) pairs[a][b] = inside[half][a][b];
          for (int c = 0; c < kColumns; ++c) linear[a][c] = sums[4 * half + a][c];
        }
        for (int i = 0; i < vectors; ++i) {
          V weight[4], column[kColumns - 1];
          for (int a = 0; a < 4; ++a) weight[a] = u[4 * half + a][i];
          for (int c = 0; c < kColumns - 1; ++c) column[c] = at(columns + c * n, from)[i];
          for (int a = 0; a < 4; ++a) {
            for (int b = a; b < 4; ++b) pairs[a][b] += weight[a] * weight[b];
            for (int c = 0; c < kColumns - 1; ++c) linear[a][c] += weight[a] * column[c];
            linear[a][kColumns - 1] += weight[a];
          }
        }
        for (int a = 0; a < 4; ++a) {
          for (int b = a; b < 4; ++b) inside[half][a][b] = pairs[a][b];
          for (int c = 0; c < kColumns; ++c) sums[4 * half + a][c] = linear[a][c];
        }
      }
      V pairs[4][4];
      std::memcpy(pairs, across, sizeof pairs);
      for (int i = 0; i < vectors; ++i) {
        V left[4], right[4];
        for (int a = 0; a < 4; ++a) left[a] = u[a][i], right[a] = u[4 + a][i];
        for (int a = 0; a < 4; ++a)
          for (int b = 0; b < 4; ++b) pairs[a][b] += left[a] * right[b];
      }
      std::memcpy(across, pairs, sizeof pairs);
    }
    for (int h = 0; h < kHeads; ++h) {
      for (int c = 0; c < kColumns; ++c) *linear++ = total(sums[h][c]);
      for (int g = h; g < kHeads; ++g) *gram++ = total(h / 4 == g / 4 ? inside[h / 4][h % 4][g % 4] : across[h][g - 4]);
    }
  }
}

}  // namespace

extern "C" void loop_float32(const float* queries, const float* keys, const float* starts, const float* columns,
                             int64_t count, int64_t n, float* gram, float* linear) {
  Run<F>(kFloat, queries, keys, starts, columns, count, n, gram, linear);
}

extern "C" void loop_float64(const double* queries, const double* keys, const double* starts, const double* columns,
                             int64_t count, int64_t n, double* gram, double* linear) {
  Run<D>(kDouble, queries, keys, starts, columns, count, n, gram, linear);
}
