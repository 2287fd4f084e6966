#include "profiles/planners/shared/plan_size.h"

#include <algorithm>
#include <string>

#include "profiles/planners/shared/machine_memory.h"

namespace ghostrank {
namespace {

constexpr int kFewRounds = 4;  // rounds of micro-batches; every schedule accepts so many
constexpr std::int64_t kWorthLooking = 20'000;  // slots; smaller plans are written in a moment
// Factor for the memory that checking the programs and counting their traffic takes.
constexpr double kBesideThePrograms = 1.3;
// Per label, because labels name micro-batches: text, entries in tables.
constexpr double kBytesPerLabel = 150;

double bytes_of(const Program& program) {
  double bytes = kBytesPerLabel * static_cast<double>(program.labels.size());
  for (const OpList& ops : program.streams) bytes += static_cast<double>(ops.occupied_bytes());
  return bytes;
}

}  // namespace

void check_plan_size(const JobSpec& spec, const Pipeline& pipeline, std::size_t roles,
                     const std::function<Program(int micro_batches)>& write) {
  const std::int64_t slots =
      std::int64_t{pipeline.micro_batches} * pipeline.chunks * static_cast<std::int64_t>(roles);
  if (slots < kWorthLooking) return;
  const int few = kFewRounds * pipeline.stages, more = 2 * few;
  if (pipeline.micro_batches <= more) return;
  const double each = std::max(0.0, bytes_of(write(more)) - bytes_of(write(few))) / few;
  const double bytes = kBesideThePrograms * each * static_cast<double>(roles) *
                       static_cast<double>(pipeline.micro_batches);
  need_memory(bytes,
              spec.source_of("parallel.global_batch") + ": parallel.global_batch: a plan of " +
                  std::to_string(pipeline.micro_batches) + " micro-batches per replica",
              "give it in samples, not in tokens, or raise parallel.micro_batch");
}

}  // namespace ghostrank
