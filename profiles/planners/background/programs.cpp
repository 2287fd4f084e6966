#include "profiles/planners/background/programs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/planners/background/pattern.h"
#include "profiles/planners/shared/round_up.h"
#include "profiles/workload/program_builder.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kMostChunks = 100'000;  // of a rank in one step
constexpr double kLongestStep = 24 * 3600;      // seconds; clocks count picoseconds in 64 bits

// Bytes of the first `parts` of `over` parts.
std::uint64_t bytes_until(std::uint64_t bytes, int parts, int over) {
  const std::uint64_t p = parts, all = over;
  return bytes / all * p + bytes % all * p / all;
}

// The bytes of one service in one step.
std::uint64_t bytes_of_part(const Background& background, const Service& service, int part) {
  const std::uint64_t bytes = bytes_until(service.bytes, part + 1, background.over) -
                              bytes_until(service.bytes, part, background.over);
  if (divide_up(bytes, background.chunk) > kMostChunks)
    throw Error(background.source + ": " + std::to_string(bytes) +
                " bytes of a rank are more than " + std::to_string(kMostChunks) +
                " chunks; use a larger chunk");
  check_rate(background, static_cast<double>(bytes));
  return bytes;
}

// Holds `stream` back for as long as a chunk takes at the background's rate.
void pace(const Background& background, std::uint64_t chunk, std::size_t stream,
          std::size_t control, ProgramBuilder& out) {
  const double seconds = static_cast<double>(chunk) * 8 / background.rate_bps;
  out.pace(control, "pace",
           static_cast<Picoseconds>(seconds * static_cast<double>(kPicosPerSecond)));
  out.after(stream, control);
}

// Chunks between a server and its clients. The server answers one request for all chunks (data), or
// confirms when it has received them all (checkpoint, incast), so that servers and clients keep in
// step. With a rate, the sender holds each chunk back until the earlier ones have had their time.
Program transfers(const Background& background, const Service& service, int part, bool serves) {
  constexpr std::size_t kChunks = 0, kControl = 1;
  const bool loads = background.pattern == Pattern::data;
  const bool paced = background.rate_bps > 0 && serves == loads;
  const std::string name = name_of(background.pattern);
  std::vector<std::string> streams{name};
  if (loads || paced || serves) streams.push_back(name + " control");
  ProgramBuilder out(std::move(streams));
  out.at_once(kChunks, static_cast<std::uint8_t>(background.at_once));
  std::uint64_t left = bytes_of_part(background, service, part);
  if (loads) {
    out.collective(kControl, "request", Func::gather, service.kind, DataType::uint8, 0);
    out.after(kChunks, kControl);
  }
  while (left > 0) {
    const std::uint64_t chunk = std::min(left, background.chunk);
    left -= chunk;
    out.collective(kChunks, name, loads ? Func::scatter : Func::gather, service.kind,
                   DataType::uint8, chunk);
    if (paced && left > 0) pace(background, chunk, kChunks, kControl, out);
  }
  if (!loads) {  // a client's call queues behind its chunks, because a group's calls have one order
    const std::size_t stream = serves ? kControl : kChunks;
    out.after(stream, kChunks);
    out.collective(stream, "written", Func::scatter, service.kind, DataType::uint8, 0);
  }
  return out.take();
}

// Chunks to the next member of the group, and as many from the one before.
Program exchange(const Background& background, const Service& service, int part) {
  constexpr std::size_t kOut = 0, kIn = 1, kControl = 2;
  const std::string name = name_of(background.pattern);
  const bool paced = background.rate_bps > 0;
  std::vector<std::string> streams{name, name + " in"};
  if (paced) streams.push_back(name + " control");
  ProgramBuilder out(std::move(streams));
  const std::uint32_t label = out.label(name);
  for (std::uint64_t left = bytes_of_part(background, service, part); left > 0;) {
    const std::uint64_t chunk = std::min(left, background.chunk);
    left -= chunk;
    out.send(kOut, label, service.kind, 1, DataType::uint8, chunk);
    out.recv(kIn, label, service.kind, -1, DataType::uint8, chunk);
    if (paced && left > 0) pace(background, chunk, kOut, kControl, out);
  }
  return out.take();
}

// Adds the streams of `extra` to `program`; `blocking`: they start after its whole compute stream.
void append(Program& program, Program extra, bool blocking) {
  const auto labels = static_cast<std::uint32_t>(program.labels.size());
  program.at_once.resize(program.streams.size(), 1);
  for (std::size_t s = 0; s < extra.streams.size(); ++s) {
    OpList ops;
    if (blocking) {
      Op op;
      op.event = program.events + extra.events++;
      op.kind = Op::Kind::record;
      program.streams.front().push_back(op);
      op.kind = Op::Kind::wait;
      ops.push_back(op);
    }
    for (Op op : extra.streams[s]) {
      const bool event = op.kind == Op::Kind::record || op.kind == Op::Kind::wait;
      if (event)
        op.event += program.events;
      else
        op.label += labels;
      ops.push_back(op);
    }
    ops.shrink_to_fit();
    program.streams.push_back(std::move(ops));
    program.stream_names.push_back(extra.stream_names[s]);
    program.at_once.push_back(extra.at_once[s]);
    if (!program.outlives.empty()) program.outlives.push_back(false);
  }
  program.labels.insert(program.labels.end(), extra.labels.begin(), extra.labels.end());
  program.events += extra.events;
}

// Storage nodes are never held back: they answer when a client is ready.
Program with_services(Program program, const JobSpec& spec, const std::vector<Service>& services,
                      const StepVariant& variant, const std::vector<ServicePart>& mine) {
  for (std::size_t i = 0; i < services.size(); ++i) {
    const Service& service = services[i];
    const Background& background = spec.background[service.background];
    const std::optional<int> part = variant.part[service.background];
    if (mine[i] == ServicePart::none || !part) continue;
    const bool serves = mine[i] == ServicePart::server;
    append(program,
           mine[i] == ServicePart::peer ? exchange(background, service, *part)
                                        : transfers(background, service, *part, serves),
           background.blocking && !(serves && is_stored(background.pattern)));
  }
  return program;
}

std::vector<Program> all_variants(const Role& plain, const JobSpec& spec,
                                  const std::vector<Service>& services,
                                  const std::vector<StepVariant>& variants,
                                  const std::vector<ServicePart>& mine) {
  std::vector<Program> programs;
  for (const StepVariant& variant : variants)
    programs.push_back(
        with_services(plain.iterations[std::min(variant.base, plain.iterations.size() - 1)], spec,
                      services, variant, mine));
  return programs;
}

std::vector<ServicePart> parts_of(WorldRank rank, const std::vector<Service>& services) {
  std::vector<ServicePart> mine;
  for (const Service& service : services) mine.push_back(service.part[rank]);
  return mine;
}

// "stage 0, sends incast": ranks of a role that have different parts in an incast.
std::string name_with_incasts(std::string name, const JobSpec& spec, const Workload& workload,
                              const std::vector<Service>& services,
                              const std::vector<ServicePart>& mine) {
  for (std::size_t i = 0; i < services.size(); ++i)
    if (spec.background[services[i].background].pattern == Pattern::incast &&
        mine[i] != ServicePart::none)
      name += (mine[i] == ServicePart::server ? ", receives " : ", sends ") +
              workload.group_names[services[i].kind];
  return name;
}

}  // namespace

void check_rate(const Background& background, double bytes) {
  if (background.rate_bps > 0 && bytes * 8 / background.rate_bps > kLongestStep)
    throw Error(background.source + ": at " + rate_text(background.rate_bps) + " the " +
                number_text(bytes) + " bytes of a rank in one step take longer than a day; raise " +
                "rate");
}

void add_to_roles(const JobSpec& spec, Workload& workload, const std::vector<Service>& services,
                  const std::vector<StepVariant>& variants) {
  const Role idle{"storage", {Program{{"compute"}, {{}}, {}, 0, {}}}};
  const int trainers = workload.ranks - workload.servers;
  const std::vector<Role> plain = std::move(workload.roles);
  workload.roles.clear();
  // By role, in the order of roles, then of the first rank with these parts.
  std::vector<std::vector<std::vector<ServicePart>>> seen(plain.size());
  for (const WorldRank rank : each<WorldRank>(trainers)) {
    std::vector<ServicePart> mine = parts_of(rank, services);
    auto& known = seen[workload.role_of[rank]];
    if (std::find(known.begin(), known.end(), mine) == known.end())
      known.push_back(std::move(mine));
  }
  std::map<std::pair<std::size_t, std::vector<ServicePart>>, std::uint16_t> number;
  for (std::size_t r = 0; r < plain.size(); ++r)
    for (const std::vector<ServicePart>& mine : seen[r]) {
      number[{r, mine}] = static_cast<std::uint16_t>(workload.roles.size());
      workload.roles.push_back({name_with_incasts(plain[r].name, spec, workload, services, mine),
                                all_variants(plain[r], spec, services, variants, mine),
                                plain[r].job});
    }
  for (const WorldRank rank : each<WorldRank>(trainers))
    workload.role_of[rank] = number.at({workload.role_of[rank], parts_of(rank, services)});
  const std::size_t before = workload.roles.size();
  for (int s = 0; s < workload.servers; ++s) {
    const std::vector<ServicePart> mine = parts_of(WorldRank(trainers + s), services);
    const auto [at, fresh] =
        number.try_emplace({plain.size(), mine}, static_cast<std::uint16_t>(workload.roles.size()));
    if (fresh) {
      const std::size_t nth = workload.roles.size() - before + 1;
      workload.roles.push_back({nth == 1 ? idle.name : idle.name + " " + std::to_string(nth),
                                all_variants(idle, spec, services, variants, mine)});
    }
    workload.role_of.push_back(at->second);
  }
}

}  // namespace ghostrank
