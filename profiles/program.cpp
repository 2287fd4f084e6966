#include "profiles/program.h"

#include <numeric>

namespace ghostrank {

std::uint32_t bytes_of(DataType type) {
  switch (type) {
    case DataType::uint8:
      return 1;
    case DataType::bfloat16:
      return 2;
    case DataType::int32:
    case DataType::float32:
      return 4;
    case DataType::int64:
      return 8;
  }
  return 0;
}

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::uint8:
      return "uint8";
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::int32:
      return "int32";
    case DataType::float32:
      return "float32";
    case DataType::int64:
      return "int64";
  }
  return "";
}

std::uint64_t elements_of(const Workload& workload, const Op& op) {
  if (op.kind != Op::Kind::collective || !is_ragged(op.func)) return op.count;
  if (op.counts >= workload.counts.size() || !workload.counts[op.counts]) return 0;
  const std::vector<std::uint64_t>& counts = *workload.counts[op.counts];
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace ghostrank
