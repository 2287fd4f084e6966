#include "emulator/schedules.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "emulator/assert.h"
#include "emulator/call_traffic.h"
#include "profiles/algorithms.h"
#include "profiles/error.h"
#include "profiles/keys.h"

namespace ghostrank {
namespace {

[[noreturn]] void refuse(const CollectiveSpec& spec, Func func) {
  const std::string name(name_of(func));
  std::vector<std::string> known =
      (spec.own ? spec.own : std::make_shared<const Algorithms>())->names(spec.library, func);
  known.erase(known.begin());  // auto
  const std::string what = "collectives: library '" + spec.library + "' has no " + name;
  const std::string why(why_absent(spec.library, func));
  if (known.empty())
    throw Error(what + (why.empty() ? "" : " (" + why + ")") +
                "; name another library's, as in  collectives: {" + name + ": generic/auto}");
  throw Error(what + " algorithm '" + spec.algorithm(func) + "'; it has: " + join(known, ", "));
}

}  // namespace

Collective collective_of(const Workload& workload, const Op& op, int size) {
  Collective c{op.func, size, op.count, bytes_of(op.dtype), op.peer};
  if (!is_ragged(op.func)) return c;
  if (op.counts < workload.counts.size()) c.counts = workload.counts[op.counts];
  const std::size_t needed = counts_needed(op.func, size), given = c.counts ? c.counts->size() : 0;
  if (given != needed) {
    throw Error("collectives: " + std::string(name_of(op.func)) + " of " + std::to_string(size) +
                " ranks needs " + std::to_string(needed) + " counts, the workload gives " +
                std::to_string(given) + "; correct the plan or trace it was made from");
  }
  return c;
}

Step Transfer::step(Rank r, int, int) const {
  Step s;
  const Block all{0, collective().count, Buffer::work};
  if (r == source_) {
    s.send_to = target_;
    s.send = all;
  } else {
    s.recv_from = source_;
    s.recv = all;
  }
  return s;
}

Schedules::Schedules(const JobSpec& spec, const Workload& workload, const Cluster& cluster)
    : spec_(spec), workload_(workload), cluster_(cluster), kinds_(workload.group_names.size()) {
  constexpr std::uint16_t kNone = 0xffff;
  row_of_.assign(static_cast<std::size_t>(kFuncs) * kinds_, kNone);
  algorithm_.assign(kFuncs, nullptr);
  for (const Role& role : workload.roles) {
    for (const Program& program : role.iterations) {
      for (const auto& stream : program.streams) {
        for (const Op& op : stream) {
          const bool transfer = op.kind == Op::Kind::send || op.kind == Op::Kind::recv;
          if (op.kind != Op::Kind::collective && !transfer) continue;
          const Func func = transfer ? Func::send_recv : op.func;
          auto& row = row_of_[static_cast<std::size_t>(func) * kinds_ + op.group];
          if (row != kNone) continue;
          const Algorithm* found = spec.collectives.row(func);
          if (!found) refuse(spec.collectives, func);
          algorithm_[static_cast<std::size_t>(func)] = found;
          row = static_cast<std::uint16_t>(rows_.size());
          rows_.push_back({func, op.group, std::string(name_of(func)),
                           workload.group_names[op.group], std::string(found->name)});
        }
      }
    }
  }
}

std::size_t Schedules::Hash::operator()(const Key& k) const {
  std::uint64_t h = k.count * 0x9e3779b97f4a7c15ULL;
  h ^= (static_cast<std::uint64_t>(k.shape) << 32 | k.element_bytes << 8 |
        static_cast<unsigned>(k.func)) *
       0xc2b2ae3d27d4eb4fULL;
  h ^= static_cast<std::uint64_t>(static_cast<std::uint32_t>(k.root)) * 0x165667b19e3779f9ULL;
  return h ^ (h >> 29);
}

Schedules::Made& Schedules::made(std::uint32_t group, const Op& op) {
  const Key key{is_ragged(op.func) ? op.counts : op.count, cluster_.shape(group),
                bytes_of(op.dtype), op.peer, op.func};
  Made& made = made_[key];
  if (!made.schedule) {
    const auto& members = workload_.groups[group].members;
    Communicator comm;
    comm.node_of = cluster_.nodes_of_shape(key.shape);
    const CollectiveSpec& wanted = spec_.collectives;
    const Algorithm* algorithm = algorithm_[static_cast<std::size_t>(op.func)];
    GHOSTRANK_ASSERT(algorithm != nullptr);
    comm.channels = wanted.channels;
    if (algorithm->library.starts_with("nccl-")) {  // 0 channels: as many as the kind of node has
      comm.protocol = protocol_named(wanted.protocol);  // auto is none: the tuner's choice
      comm.max_channels = wanted.max_channels;
      comm.node = wanted.node_template;
    } else if (wanted.channels == 0) {
      comm.channels = cluster_.nics_of_shape(key.shape);
    }
    comm.slice_bytes = wanted.slice_bytes;
    comm.flow.credits = wanted.credits;
    try {
      made.schedule =
          algorithm->make(collective_of(workload_, op, static_cast<int>(members.size())), comm);
    } catch (const std::invalid_argument& error) {  // what a library cannot do, the user can change
      throw Error("collectives: " + std::string(error.what()));
    }
  }
  return made;
}

const Schedules::NodeCall& Schedules::inside_node(std::uint32_t group, const Op& op,
                                                  const LinkSpeed& link) {
  Made& one = made(group, op);
  if (one.call) return *one.call;
  const Collective& c = one.schedule->collective();
  std::vector<std::uint64_t> out(static_cast<std::size_t>(c.size)), in(out.size());
  NodeCall call;
  for (const CallTraffic::Edge& edge : walk(*one.schedule).edges) {
    out[static_cast<std::size_t>(edge.from)] += edge.bytes;
    in[static_cast<std::size_t>(edge.to)] += edge.bytes;
    call.sent.bytes += edge.bytes;
    call.sent.messages += edge.messages;
  }
  const std::uint64_t busiest =
      std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
  const int steps = algorithm_[static_cast<std::size_t>(op.func)]->cost(c).steps;
  call.duration = steps * link.latency + link.serialise(busiest);
  one.call = call;
  return *one.call;
}

}  // namespace ghostrank
