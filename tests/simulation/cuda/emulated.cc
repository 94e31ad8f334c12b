// What a call of sums.cu does, on a CPU, with pointers of its arrays.

#define EMULATED
#define THREADS 24
#include "device.h"
#include "../../../sims/simulation/native/sums.cu"

void Call(void* kernel, void* arguments) {
  reinterpret_cast<void (*)(Work)>(kernel)(*static_cast<Work*>(arguments));
}

extern "C" void emulated(const Real* queries, const Real* keys, const Real* columns, const Real* centres,
                         const Real* reach, int64_t batches, int64_t count, int64_t n, double* peak,
                         double* gram, double* linear, double* centred, int64_t* redone) {
  Work w = {queries, keys, columns, centres, reach};
  w.count = count, w.n = n, w.peak = peak, w.gram = gram, w.linear = linear;
  w.centred = centres ? centred : nullptr;
  void* handles[] = {(void*)weigh, (void*)weigh_again, (void*)weigh_centred, (void*)weigh_centred_again,
                     (void*)finish};
  sims_kernels(handles);
  const Cut cut(w, batches, 4);
  std::vector<char> scratch(cut.entries * 2 * sizeof(Real) + 2 * cut.blocks * sizeof(int));
  Run(w, cut, scratch.data(), nullptr);
  const int* redo = reinterpret_cast<int*>(scratch.data() + cut.entries * (centres ? 2 : 1) * sizeof(Real));
  redone[0] = cut.blocks, redone[1] = 0;
  for (int64_t i = 0; i < cut.blocks; ++i) redone[1] += redo[i];
}
