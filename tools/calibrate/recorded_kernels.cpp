#include "tools/calibrate/recorded_kernels.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "profiles/median.h"

namespace ghostrank {
namespace {

constexpr double kUsualGap = 3;  // microseconds; a longer one is no gap between queued kernels

// Returns `rows` and those of `others` whose keys they lack, by key.
template <class Row, class Key>
std::vector<Row> with_others(const std::vector<Row>& rows, const std::vector<Row>& others,
                             const Key& key) {
  std::map<decltype(key(rows.front())), Row> all;
  for (const std::vector<Row>* some : {&rows, &others})
    for (const Row& row : *some) all.emplace(key(row), row);
  std::vector<Row> out;
  for (const auto& [unused, row] : all) out.push_back(row);
  return out;
}

TrainingPace pace_of(const std::vector<MeasuredProduct>& recorded,
                     const std::vector<MeasuredProduct>& measured) {
  constexpr std::size_t kEnough = 8;
  std::map<ProductShape, double> alone;
  for (const MeasuredProduct& one : measured) alone.emplace(one.shape, one.seconds);
  std::vector<double> ratios;
  for (const MeasuredProduct& one : recorded)
    if (const auto at = alone.find(one.shape); at != alone.end())
      ratios.push_back(one.seconds / at->second);
  TrainingPace pace{1, ratios.size()};
  if (pace.sizes >= kEnough) pace.slower = median(std::move(ratios));
  return pace;
}

}  // namespace

void add_gaps(std::vector<RecordedKernel>& kernels) {
  std::sort(kernels.begin(), kernels.end(), [](const RecordedKernel& a, const RecordedKernel& b) {
    return std::tie(a.stream, a.start) < std::tie(b.stream, b.start);
  });
  std::vector<double> gaps;
  for (std::size_t i = 1; i < kernels.size(); ++i) {
    const RecordedKernel &before = kernels[i - 1], &kernel = kernels[i];
    const double gap = kernel.start - before.start - before.duration;
    if (kernel.stream == before.stream && gap >= 0 && gap < kUsualGap) gaps.push_back(gap);
  }
  const double usual = median(std::move(gaps));
  for (RecordedKernel& kernel : kernels) kernel.duration += usual;
}

void KernelRows::add(const ProductShape& shape, double micros) {
  products_[shape].push_back(micros);
}
void KernelRows::add(OperandType type, const FusedAttention& shape, double micros) {
  attention_[{type, shape}].push_back(micros);
}
void KernelRows::add(MemoryKernel kind, double bytes, double element, double micros) {
  moved_[{kind, bytes, element}].push_back(micros);
}

RecordedKernels KernelRows::take(std::string gpu) {
  RecordedKernels out;
  for (auto& [key, times] : moved_)
    out.tables.transfers.push_back(
        {key.kind, key.bytes, median(std::move(times)) * 1e-6, key.element});
  for (auto& [key, times] : attention_)
    out.tables.attention.push_back({key.second, key.first, median(std::move(times)) * 1e-6});
  for (auto& [shape, times] : products_)
    out.tables.products.push_back({shape, median(std::move(times)) * 1e-6});
  out.gpu = std::move(gpu);
  out.left_out = std::move(left_out_);
  return out;
}

TrainingPace add_recorded(const KernelTables& recorded, KernelTables& tables) {
  std::set<MemoryKernel> kinds;
  for (const MeasuredTransfer& one : recorded.transfers)
    if (one.kind != MemoryKernel::elementwise) kinds.insert(one.kind);
  std::erase_if(tables.transfers,
                [&](const MeasuredTransfer& one) { return kinds.contains(one.kind); });
  const bool curve = std::any_of(
      tables.transfers.begin(), tables.transfers.end(),
      [](const MeasuredTransfer& one) { return one.kind == MemoryKernel::elementwise; });
  for (const MeasuredTransfer& one : recorded.transfers)
    if (one.kind != MemoryKernel::elementwise || !curve) tables.transfers.push_back(one);
  const TrainingPace pace = pace_of(recorded.products, tables.products);
  for (MeasuredProduct& one : tables.products) one.seconds *= pace.slower;
  tables.products = with_others(recorded.products, tables.products,
                                [](const MeasuredProduct& one) { return one.shape; });
  tables.attention =
      with_others(recorded.attention, tables.attention,
                  [](const MeasuredAttention& one) { return std::pair(one.type, one.shape); });
  return pace;
}

}  // namespace ghostrank
