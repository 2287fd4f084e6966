#include "emulator/traffic/tensor_use.h"

#include <algorithm>
#include <vector>

#include "emulator/traffic/schedules.h"
#include "emulator/verify/call_content.h"
#include "profiles/training/gradient_state.h"

namespace ghostrank {
namespace {

// By role: the collectives of the iteration that name a tensor.
std::vector<std::vector<Op>> named_ops(const Workload& workload, std::uint32_t iteration) {
  std::vector<std::vector<Op>> of_role(workload.roles.size());
  for (std::size_t r = 0; r < workload.roles.size(); ++r) {
    const auto& programs = workload.roles[r].iterations;
    if (programs.empty()) continue;
    const std::size_t number =
        std::min(program_number(workload, workload.roles[r], iteration), programs.size() - 1);
    for (const OpList& stream : programs[number].streams)
      for (const Op& op : stream)
        if (op.kind == Op::Kind::collective && op.tensor != 0) of_role[r].push_back(op);
  }
  return of_role;
}

// Whether the op is the first call that exchanges its tensor: of several rounds, those without
// elements are left out; of broadcasts, the first is that of root 0.
bool is_first(const JobSpec& spec, const CompressedTensor* whole, const Op& op) {
  if (!whole || !spec.compression) return true;
  if (spec.compression->exchange == PayloadExchange::broadcast) return op.peer == 0;
  const int round = round_of(op.tensor);
  if (spec.compression->exchange == PayloadExchange::all_to_all) return round == 0;
  CompressionOptions options = options_of(spec, *whole);
  for (options.round = 0; options.round < round; ++options.round)
    if (spec.compression->method->size(whole->elements, options) > 0) return false;
  return true;
}

// Elements of the first rank's payload in this call, before the exchange; `ranks` of its job.
std::uint64_t payload_in(const JobSpec& spec, const Workload& workload, int ranks, const Op& op) {
  switch (spec.compression->exchange) {
    case PayloadExchange::broadcast:
      return op.peer == 0 ? op.count : 0;
    case PayloadExchange::all_to_all:
      return round_of(op.tensor) == 0 ? op.count * static_cast<std::uint64_t>(ranks) : 0;
    case PayloadExchange::all_reduce:
    case PayloadExchange::all_gather:
      break;
  }
  return spec.compression->method->measure ? workload.counts[op.counts]->front() : op.count;
}

// Elements of the tensor that its payload carries.
std::uint64_t carried_by(const CompressionSpec& compression, std::uint64_t elements,
                         std::uint64_t payload) {
  const Compressor& method = *compression.method;
  if (method.carried) return method.carried(payload);
  if (!method.kept) return elements;
  return compression.adapts ? kept_in(compression, elements, payload)
                            : method.kept(elements, compression.options);
}

}  // namespace

std::optional<TensorUse> tensor_use(const JobSpec& all, const Workload& workload,
                                    std::uint32_t iteration, std::size_t job) {
  const JobSpec& spec = all.of_job(job);
  if (!spec.tensors) return std::nullopt;
  TensorUse use;
  double somewhere = 0;  // sum over calls: mean bytes that are nonzero at some rank
  std::uint64_t everywhere = 0;
  const auto of_role = named_ops(workload, iteration);
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
    const Group& group = workload.groups[g];
    if (group.members.empty() || job_of_kind(workload, group.kind) != job) continue;
    const auto size = static_cast<int>(group.members.size());
    for (const Op& op : of_role[workload.role_of[group.members[0]]]) {
      if (op.group != group.kind || !is_first(spec, compressed_tensor(workload, op), op)) continue;
      const Collective c = collective_of(workload, op, size);
      const CallContent drawn = content_of(all, workload, op, g, iteration, c);
      const TensorContent& content = drawn.compressed ? drawn.compressed->tensor : *drawn.tensor;
      const CompressedTensor* whole = compressed_tensor(workload, op);
      const std::uint32_t element = bytes_of(whole ? whole->type : op.dtype);
      const std::uint64_t bytes = content.elements() * element;
      ++use.calls;
      use.bytes += bytes * static_cast<std::uint64_t>(size);
      const bool uneven = layout_of(workload, op) != nullptr;
      const Sparsity mean = uneven ? mean_sparsity(all, workload, op, size, content.elements())
                                   : in_whole_blocks(content.sparsity(), size, content.elements());
      if (uneven)
        use.nonzero_bytes += static_cast<std::uint64_t>(mean.density * static_cast<double>(bytes)) *
                             static_cast<std::uint64_t>(size);
      else
        for (GroupRank r = 0; r < size; ++r)
          use.nonzero_bytes += content.nonzero_elements(r) * element;
      somewhere += mean.union_density(size) * static_cast<double>(bytes);
      everywhere += bytes;
    }
  }
  if (everywhere > 0) use.union_density = somewhere / static_cast<double>(everywhere);
  const auto last = static_cast<std::uint32_t>(spec.run.warmup + spec.run.iterations - 1);
  if (spec.last_density > 0 && iteration < last)
    if (const auto at_end = tensor_use(all, workload, last, job))
      use.last_density = at_end->density();
  return use;
}

std::optional<CompressionUse> compression_use(const JobSpec& all, const Workload& workload,
                                              std::uint32_t iteration, std::size_t job,
                                              std::uint32_t count) {
  const JobSpec& spec = all.of_job(job);
  if (!spec.compression) return std::nullopt;
  const Compressor* method = spec.compression->method;
  const CompressionOptions& options = spec.compression->options;
  CompressionUse use{std::string(method->name), 0, method->kept ? options.ratio : 1, 1};
  // Where ratios follow the network, each iteration has its own program.
  const auto steps = spec.compression->adapts
                         ? static_cast<std::uint32_t>(workload.roles.front().iterations.size())
                     : steps_differ(spec) ? std::max(1U, count)
                                          : 1U;
  std::uint64_t elements = 0, kept = 0;
  for (std::uint32_t i = iteration; i < iteration + steps; ++i) {
    const auto of_role = named_ops(workload, i);
    for (const Op& op : of_role[workload.role_of[first_rank(workload, job)]]) {
      const CompressedTensor* whole = compressed_tensor(workload, op);
      if (!whole) continue;
      const std::uint64_t payload = payload_in(spec, workload, ranks_of(workload, job), op);
      use.payload_bytes += payload * bytes_of(method->payload);
      if (!is_first(spec, whole, op)) continue;
      elements += whole->elements;
      kept += carried_by(*spec.compression, whole->elements, payload);
    }
  }
  use.payload_bytes /= steps;
  if (elements > 0) use.ratio_mean = static_cast<double>(kept) / static_cast<double>(elements);
  if (spec.compression->adapts) use.ratio_target = use.ratio_mean;
  return use;
}

}  // namespace ghostrank
