// Measured kernels of a GPU, and estimates from them for sizes that were not measured.
//
// A size in the tables takes its measured time. Any other takes the formula's
// (kernels/formula.h, fitted to the measured products of its type) times a correction: how far the
// formula is off at the nearest measured sizes, weighted by their distance in the logarithms of the
// sizes, and less the farther away they are. Times of kernels that move bytes are interpolated
// between the measured sizes of `elementwise`; other kinds are slower by their measured factor,
// with elements of this size if there are such rows.
//
// Units: seconds, bytes. Errors: Error(usage) for tables, see kernels/tables.h. Threading:
// immutable.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "profiles/device/kernels/formula.h"
#include "profiles/device/kernels/shapes.h"

namespace ghostrank {

struct MeasuredTransfer {
  MemoryKernel kind{};
  double bytes = 0, seconds = 0;
  double element = 0;  // bytes; 0: of any
};

struct MeasuredAttention {
  FusedAttention shape;
  OperandType type{};
  double seconds = 0;
};

struct KernelTables {
  std::vector<MeasuredProduct> products;
  std::vector<MeasuredTransfer> transfers;
  std::vector<MeasuredAttention> attention;

  bool empty() const { return products.empty() && transfers.empty() && attention.empty(); }
};

double bytes_of(OperandType type);

// Logarithms of measured over predicted times at points, averaged for other points.
class Corrections {
 public:
  using Point = std::array<double, 5>;  // logarithms of sizes, and what else sets kernels apart

  // `between_kinds`: the squared distance that kinds add to points.
  explicit Corrections(double between_kinds = 0) : between_kinds_(between_kinds) {}

  void add(const Point& point, int kind, double logarithm);
  // The factor for `point`; leaves out the `without`th correction that was added (from 0).
  double at(const Point& point, int kind, std::optional<std::size_t> without = {}) const;

 private:
  struct Known {
    Point point;
    int kind;
    double logarithm;
  };
  double between_kinds_;
  std::vector<Known> known_;
};

class MeasuredKernels {
 public:
  // `device`: with its peaks and stated shares. Every type in the tables has a peak.
  MeasuredKernels(KernelTables tables, const DeviceProfile& device);

  const KernelTables& tables() const { return tables_; }
  bool has_products(OperandType type) const { return products_.contains(type); }

  double product(const ProductShape& shape, const KernelFormula& stated, double element) const;
  double memory(MemoryKernel kind, double bytes, double element, const KernelFormula& stated) const;
  double attention(const FusedAttention& shape, OperandType type, const KernelFormula& stated,
                   double element) const;

 private:
  struct OfType {
    std::vector<MeasuredProduct> products;  // by shape, ascending
    KernelFormula formula;                  // fitted to them
    Corrections corrections;
  };
  std::optional<double> along_elementwise(double bytes) const;

  KernelTables tables_;
  std::map<OperandType, OfType> products_;
  std::map<OperandType, Corrections> attention_;
};

// Returns the mean error with which other kernels predict each measured product and attention, as a
// share of its time: all others, of more than 20 products all but a twentieth. 0: too few were
// measured.
double held_out_error(const KernelTables& tables, const DeviceProfile& device);

}  // namespace ghostrank
