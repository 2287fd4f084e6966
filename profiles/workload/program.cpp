#include "profiles/workload/program.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace ghostrank {

bool carries_over(const Program& program) {
  return std::find(program.outlives.begin(), program.outlives.end(), true) !=
         program.outlives.end();
}

std::string label_of(const Program& program, std::size_t stream, std::size_t position) {
  const OpList& ops = program.streams[stream];
  const std::size_t label = ops[position].label, repetition = ops.repetition(position);
  if (label >= program.labels.size()) return {};
  std::string text = program.labels[label];
  const std::size_t numeral = label < program.numerals.size() ? program.numerals[label] : 0;
  if (numeral == 0 || repetition == 0) return text;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(&text[numeral], text.data() + text.size(), number);
  number += repetition * program.micro_batches;
  return text.replace(numeral, static_cast<std::size_t>(end - &text[numeral]),
                      std::to_string(number));
}

void make_launch(std::span<Op> calls, std::vector<GroupedCalls>& launches) {
  if (calls.size() < 2) return;
  GroupedCalls launch(calls.begin(), calls.end());
  for (Op& call : launch) {
    call.label = call.tensor = call.launch = 0;
    call.launch_index = 0;
  }
  auto at = std::find(launches.begin(), launches.end(), launch);
  if (at == launches.end()) at = launches.insert(at, std::move(launch));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].launch = static_cast<std::uint32_t>(at - launches.begin() + 1);
    calls[i].launch_index = static_cast<std::uint16_t>(i);
  }
}

bool carries_over(const Workload& workload) {
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      if (carries_over(program)) return true;
  return false;
}

namespace {

std::size_t in_order(const std::vector<std::uint32_t>& order, std::uint32_t cycle,
                     std::size_t iteration) {
  if (order.empty()) return iteration;
  if (iteration < order.size()) return order[iteration];
  return order[order.size() - cycle + (iteration - order.size()) % cycle];
}

}  // namespace

std::size_t program_number(const Workload& workload, std::size_t iteration) {
  return in_order(workload.order, workload.cycle, iteration);
}

std::size_t program_number(const Workload& workload, const Role& role, std::size_t iteration) {
  if (workload.jobs.empty()) return program_number(workload, iteration);
  const WorkloadJob& job = workload.jobs[role.job];
  return in_order(job.order, job.cycle, iteration);
}

std::size_t job_of_kind(const Workload& workload, std::uint16_t kind) {
  if (workload.jobs.empty()) return 0;
  const auto next = std::find_if(workload.jobs.begin() + 1, workload.jobs.end(),
                                 [&](const WorkloadJob& job) { return job.first_kind > kind; });
  return static_cast<std::size_t>(next - workload.jobs.begin()) - 1;
}

std::string own_name(const Workload& workload, std::uint16_t kind) {
  const std::string& name = workload.group_names[kind];
  if (workload.jobs.empty()) return name;
  return name.substr(workload.jobs[job_of_kind(workload, kind)].name.size() + 1);
}

std::uint32_t number_in_job(const Workload& workload, std::uint32_t group) {
  if (workload.jobs.empty()) return group;
  const std::size_t job = job_of_kind(workload, workload.groups[group].kind);
  const auto first = std::partition_point(
      workload.groups.begin(), workload.groups.end(),
      [&](const Group& one) { return one.kind < workload.jobs[job].first_kind; });
  return group - static_cast<std::uint32_t>(first - workload.groups.begin());
}

const CompressedTensor* compressed_tensor(const Workload& workload, const Op& op) {
  if (op.kind != Op::Kind::collective || op.tensor == 0) return nullptr;
  const auto& all = workload.jobs.empty()
                        ? workload.compressed
                        : workload.jobs[job_of_kind(workload, op.group)].compressed;
  for (const CompressedTensor& one : all)
    if (one.tensor == number_of(op.tensor)) return &one;
  return nullptr;
}

std::shared_ptr<const TensorLayout> layout_of(const Workload& workload, const Op& op) {
  const auto& all = workload.jobs.empty() ? workload.layouts
                                          : workload.jobs[job_of_kind(workload, op.group)].layouts;
  return op.tensor < all.size() ? all[op.tensor] : nullptr;
}

bool is_service(const Workload& workload, std::uint16_t kind) {
  const auto& services = workload.services;
  return std::find(services.begin(), services.end(), kind) != services.end();
}

std::uint64_t elements_of(const Workload& workload, const Op& op) {
  if (op.kind != Op::Kind::collective || !is_ragged(op.func)) return op.count;
  if (op.counts >= workload.counts.size() || !workload.counts[op.counts]) return 0;
  const std::vector<std::uint64_t>& counts = *workload.counts[op.counts];
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace ghostrank
