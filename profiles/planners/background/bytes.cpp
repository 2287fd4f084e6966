// How many bytes checkpoints and samples have.
#include <algorithm>
#include <numeric>

#include "profiles/device/compute.h"
#include "profiles/error.h"
#include "profiles/job/optimizer.h"
#include "profiles/model/model.h"
#include "profiles/planners/background/background.h"
#include "profiles/planners/background/pattern.h"
#include "profiles/planners/megatron/plan.h"
#include "profiles/planners/shared/round_up.h"
#include "profiles/planners/torchrec.h"

namespace ghostrank {
namespace {

// Bytes per parameter of Megatron and ZeRO: the fp32 weight, the optimizer's moments and, if the
// parameters' type is not fp32, the weight in that type.
std::uint64_t master_bytes(const Precision& precision) {
  const std::uint64_t product =
      precision.parameters == DataType::float32 ? 0 : bytes_of(precision.parameters);
  return product + 4u * (1 + moments_of(precision));
}

// Bytes of the whole model.
std::uint64_t model_bytes(const JobSpec& spec) {
  const Model& model = *spec.model;
  const Framework framework = spec.parallel.framework;
  if (is_zero(framework)) return model.parameters() * master_bytes(spec.precision);
  const auto stored = static_cast<std::uint64_t>(stored_bytes(spec));
  const std::uint64_t moments = framework == Framework::phub ? 0 : moments_of(spec.precision),
                      each = stored * (1 + moments);
  if (framework != Framework::torchrec) return model.parameters() * each;
  std::uint64_t rows = 0;
  for (const EmbeddingTable& table : model.recommendation->tables) rows += table.rows;
  const std::uint64_t in_tables = rows * model.recommendation->width;
  return rows * row_bytes(*model.recommendation) + (model.parameters() - in_tables) * each;
}

std::vector<std::uint64_t> ranks_by_role(const Workload& workload) {
  std::vector<std::uint64_t> ranks(workload.roles.size());
  for (const std::uint16_t role : workload.role_of) ++ranks[role];
  return ranks;
}

// Bytes per rank of a checkpoint, by role of a Megatron job, because each stage has its own
// parameters.
std::vector<std::uint64_t> megatron_checkpoint(const JobSpec& spec, const Workload& workload) {
  const MegatronPlan plan = megatron_plan(spec);
  const std::vector<std::uint64_t> ranks = ranks_by_role(workload);
  const std::size_t per_stage = plan.roles_per_stage();
  const std::uint64_t copies = plan.pipeline.is_bidirectional() ? 2 : 1;
  std::vector<std::uint64_t> bytes;
  for (int stage = 0; stage < plan.pp; ++stage) {
    const auto first = stage * per_stage;
    const std::uint64_t holders =
        std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(first),
                        ranks.begin() + static_cast<std::ptrdiff_t>(first + per_stage),
                        std::uint64_t{0}) *
        copies;
    bytes.insert(bytes.end(), per_stage,
                 divide_up(megatron_stored(plan, stage) * master_bytes(spec.precision), holders));
  }
  return bytes;
}

std::vector<std::uint64_t> checkpoint_bytes(const JobSpec& spec, const Workload& workload,
                                            std::uint64_t given) {
  if (given == 0 && spec.parallel.framework == Framework::megatron)
    return megatron_checkpoint(spec, workload);
  const std::uint64_t all = given > 0 ? given : model_bytes(spec);
  const std::uint64_t trainers = workload.ranks - workload.servers;
  return std::vector<std::uint64_t>(workload.roles.size(), divide_up(all, trainers));
}

std::vector<std::uint64_t> data_bytes(const JobSpec& spec, const Workload& workload,
                                      const Background& background) {
  const auto tokens = static_cast<std::uint64_t>(std::max(0, spec.model->sequence));
  const std::uint64_t sample = background.bytes > 0 ? background.bytes : 8 * tokens;
  if (sample == 0)
    throw Error(background.source + ": the model's samples are no tokens, so their size is not " +
                "known; add bytes, as in {pattern: data, bytes: 110KiB}");
  const auto samples = static_cast<std::uint64_t>(workload.samples_per_iteration);
  const std::vector<std::uint64_t> ranks = ranks_by_role(workload);
  std::size_t readers = workload.roles.size();  // the first `readers` roles read
  if (spec.parallel.framework == Framework::megatron)
    readers = megatron_plan(spec).roles_per_stage();
  const std::uint64_t among = std::accumulate(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(readers), std::uint64_t{0});
  std::vector<std::uint64_t> bytes(workload.roles.size());
  std::fill_n(bytes.begin(), readers, divide_up(samples * sample, among));
  return bytes;
}

}  // namespace

std::vector<std::uint64_t> background_bytes(const JobSpec& spec, const Workload& workload,
                                            const Background& background) {
  return background.pattern == Pattern::data ? data_bytes(spec, workload, background)
                                             : checkpoint_bytes(spec, workload, background.bytes);
}

}  // namespace ghostrank
