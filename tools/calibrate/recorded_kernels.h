// Kernels that a profiler recorded while a model trained, as tables of measured kernels.
//
// Units: seconds and bytes in tables, else microseconds. Threading: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiles/device/kernels/measured.h"

namespace ghostrank {

struct RecordedKernel {
  std::string name;
  double start = 0, duration = 0;  // microseconds
  std::int64_t stream = 0;
  std::int64_t op = -1;  // which launched it, by its reader's numbers; -1: unknown
};

// Adds the usual gap between queued kernels of a stream to each kernel's time, because times of
// measured kernels include it. Sorts the kernels by stream and start.
void add_gaps(std::vector<RecordedKernel>& kernels);

struct RecordedKernels {
  KernelTables tables;
  std::string gpu;                                // as its files name it; empty: they do not
  std::map<std::string, std::uint64_t> left_out;  // kernels, by reason
};

// What was recorded, gathered by row. A row's time is the median of all that was added to it.
class KernelRows {
 public:
  void add(const ProductShape& shape, double micros);
  void add(OperandType type, const FusedAttention& shape, double micros);
  // `element`: 0, or bytes of an element where kernels of the kind differ by it.
  void add(MemoryKernel kind, double bytes, double element, double micros);
  void leave_out(const char* reason, std::uint64_t kernels = 1) { left_out_[reason] += kernels; }

  RecordedKernels take(std::string gpu);

 private:
  struct Moved {
    MemoryKernel kind;
    double bytes, element;
    friend auto operator<=>(const Moved&, const Moved&) = default;
  };
  std::map<ProductShape, std::vector<double>> products_;
  std::map<std::pair<OperandType, FusedAttention>, std::vector<double>> attention_;
  std::map<Moved, std::vector<double>> moved_;
  std::map<std::string, std::uint64_t> left_out_;
};

// What was recorded ran among the kernels of training, at their clocks, which are lower than those
// of kernels measured alone.
struct TrainingPace {
  double slower = 1;      // median of recorded over measured time, over products in both tables
  std::size_t sizes = 0;  // products in both; with too few to say, `slower` is 1
};

// Adds recorded kernels to measured tables. A recorded time replaces the measured one of its size;
// measured products of other sizes are scaled by `slower`. A recorded kind of transfers replaces
// the measured kind, but `elementwise` only where none was measured, since its kernels differ a
// little.
TrainingPace add_recorded(const KernelTables& recorded, KernelTables& tables);

}  // namespace ghostrank
