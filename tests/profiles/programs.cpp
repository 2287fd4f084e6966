#include "tests/profiles/programs.h"

#include <set>
#include <vector>

namespace ghostrank::test {
namespace {

using Sizes = std::vector<std::uint64_t>;

// Bytes of a program's sends or receives in a kind of group, stream by stream, by the peer's offset
// from 0 to the group's size.
std::map<int, Sizes> transfers(const Program& program, Op::Kind kind, std::uint16_t group,
                               int size) {
  std::map<int, Sizes> out;
  for (const auto& stream : program.streams)
    for (const Op& op : stream)
      if (op.kind == kind && op.group == group)
        out[(op.peer % size + size) % size].push_back(op.count * bytes_of(op.dtype));
  return out;
}

// Calls `tell` for each op that ends. True if all ops have ended and every record has had a wait.
template <typename Tell>
bool play(const Program& program, bool sends_end, const Tell& tell) {
  std::vector<std::size_t> at(program.streams.size());
  std::multiset<std::uint32_t> recorded;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < at.size(); ++s)
      for (; at[s] < program.streams[s].size(); ++at[s], moved = true) {
        const Op& op = program.streams[s][at[s]];
        if (op.kind == Op::Kind::send && !sends_end) break;
        if (op.kind == Op::Kind::wait && recorded.extract(op.event).empty()) break;
        if (op.kind == Op::Kind::record) recorded.insert(op.event);
        tell(s, op);
      }
  }
  for (std::size_t s = 0; s < at.size(); ++s)
    if (at[s] != program.streams[s].size()) return false;
  return recorded.empty();
}

}  // namespace

CallSums sums_of(const Program& program, const Workload& workload, const std::string& group) {
  CallSums sums;
  for (const auto& stream : program.streams)
    for (const Op& op : stream) {
      const std::uint64_t bytes = op.count * bytes_of(op.dtype);
      if (op.kind != Op::Kind::collective && op.kind != Op::Kind::send && op.kind != Op::Kind::recv)
        continue;
      if (workload.group_names.at(op.group) != group) continue;
      if (op.kind == Op::Kind::collective) {
        ++sums.calls[op.func];
        sums.bytes[op.func] += bytes;
      } else {
        (op.kind == Op::Kind::send ? sums.sent : sums.received) += bytes;
      }
    }
  return sums;
}

std::vector<std::string> computed_without_sends(const Program& program) {
  std::vector<std::string> labels;
  play(program, false, [&](std::size_t stream, const Op& op) {
    if (stream == 0 && op.kind == Op::Kind::compute) labels.push_back(program.labels[op.label]);
  });
  return labels;
}

bool streams_end(const Program& program) {
  return play(program, true, [](std::size_t, const Op&) {});
}

std::string unmatched_transfers(const Workload& workload) {
  for (const Group& group : workload.groups) {
    const auto size = static_cast<int>(group.members.size());
    std::map<std::pair<int, int>, Sizes> sent, received;  // by (from, to)
    for (int i = 0; i < size; ++i) {
      const Program& program = workload.roles[workload.role_of[group.members[i]]].iterations.back();
      for (const auto& [offset, sizes] : transfers(program, Op::Kind::send, group.kind, size))
        sent[{i, (i + offset) % size}] = sizes;
      for (const auto& [offset, sizes] : transfers(program, Op::Kind::recv, group.kind, size))
        received[{(i + offset) % size, i}] = sizes;
    }
    if (sent != received)
      return "group " + workload.group_names[group.kind] + " of rank " +
             to_string(group.members.front());
  }
  return "";
}

}  // namespace ghostrank::test
