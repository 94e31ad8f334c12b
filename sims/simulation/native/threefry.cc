// Random bits of Threefry-2x32-20 keys, the streams of jax.random (partitionable): number i of a
// key is the block function of the counter i, its two words xor-ed (32 bits) or joined (64 bits).
// XLA's CPU code runs the rounds one after another over arrays in memory; here they stay in
// registers. Source: Salmon et al. (2011), doi:10.1145/2063384.2063405.

#include <cstdint>
#include <cstring>

#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kWords = kBytes / 4;  // of a vector
typedef uint32_t V __attribute__((vector_size(kBytes)));
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};

// Of several vectors at a time: in one, every step waits for the one before.
constexpr int kTogether = 4;

inline void Hash(uint32_t one, uint32_t two, V* x, V* y) {
  const uint32_t words[3] = {one, two, one ^ two ^ 0x1BD11BDAu};
  for (int i = 0; i < kTogether; ++i) {
    x[i] += words[0];
    y[i] += words[1];
  }
  for (int turn = 0; turn < 5; ++turn) {
    for (int round = 0; round < 4; ++round) {
      const int distance = kRotations[turn % 2][round];
      for (int i = 0; i < kTogether; ++i) {
        x[i] += y[i];
        y[i] = (y[i] << distance) | (y[i] >> (32 - distance));
        y[i] ^= x[i];
      }
    }
    for (int i = 0; i < kTogether; ++i) {
      x[i] += words[(turn + 1) % 3];
      y[i] += words[(turn + 2) % 3] + uint32_t(turn + 1);
    }
  }
}

inline void Store(V x, V y, uint32_t* to) {
  const V bits = x ^ y;
  std::memcpy(to, &bits, sizeof bits);
}

inline void Store(V x, V y, uint64_t* to) {
  for (int i = 0; i < kWords; ++i) to[i] = uint64_t(x[i]) << 32 | y[i];
}

template <ffi::DataType type, typename T>
ffi::Error Bits(ffi::Buffer<ffi::U32> keys, ffi::ResultBuffer<type> out) {
  const int64_t many = keys.element_count() / 2, count = out->element_count() / (many ? many : 1);
  const uint32_t* key = keys.typed_data();
  T* to = out->typed_data();
  V lane;
  for (int i = 0; i < kWords; ++i) lane[i] = i;
  for (int64_t k = 0; k < many; ++k, key += 2, to += count) {
    for (int64_t start = 0; start < count; start += kTogether * kWords) {
      // A multiple of the lanes: the counter's high word is that of all lanes.
      V x[kTogether], y[kTogether];
      for (int i = 0; i < kTogether; ++i) {
        x[i] = V{} + uint32_t(uint64_t(start) >> 32);
        y[i] = lane + uint32_t(start + i * kWords);
      }
      Hash(key[0], key[1], x, y);
      T bits[kTogether * kWords], *place = count - start >= kTogether * kWords ? to + start : bits;
      for (int i = 0; i < kTogether; ++i) Store(x[i], y[i], place + i * kWords);
      if (place == bits) std::memcpy(to + start, bits, (count - start) * sizeof(T));
    }
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(sims_bits_32, (Bits<ffi::U32, uint32_t>),
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::Buffer<ffi::U32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(sims_bits_64, (Bits<ffi::U64, uint64_t>),
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::U32>>().Ret<ffi::Buffer<ffi::U64>>());
