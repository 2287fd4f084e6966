#include "emulator/shard/node_transfers.h"

#include <algorithm>

#include "switch/assert.h"

namespace ghostrank {

TransferParts::TransferParts(Messages messages, std::uint32_t credits, const LinkSpeed& nvlink)
    : messages_(std::move(messages)),
      credits_(credits),
      latency_(nvlink.latency),
      ports_(nvlink.limited()) {
  for (const std::vector<Picoseconds>& part : messages_)
    sender_waits_ |= credits_ > 0 && part.size() > credits_;
}

const TransferTimes& TransferParts::times(Picoseconds late, Picoseconds busy) {
  if (const auto known = known_.find({late, busy}); known != known_.end()) return known->second;
  if (known_.size() == kMostKnown) known_.clear();
  return known_[{late, busy}] = play(late, busy);
}

// Messages and credits come in the order in which they leave, so a list of messages will do.
TransferTimes TransferParts::play(Picoseconds late, Picoseconds busy) {
  TransferTimes out{0, late, busy};
  on_the_way_.clear();
  sent_.assign(messages_.size(), 0);
  const auto send = [&](std::uint32_t part, Picoseconds at) {
    const Picoseconds takes = messages_[part][sent_[part]++];
    const Picoseconds turn = ports_ ? std::max(at, out.port_free) : at;
    if (ports_) out.port_free = turn + takes;
    out.sender = std::max(out.sender, at);
    on_the_way_.push_back({part, turn + takes + latency_});
  };
  for (std::uint32_t part = 0; part < messages_.size(); ++part) {
    const std::size_t all = messages_[part].size();
    const std::size_t at_once = credits_ > 0 ? std::min<std::size_t>(credits_, all) : all;
    for (std::size_t i = 0; i < at_once; ++i) send(part, 0);
  }
  for (std::size_t i = 0; i < on_the_way_.size(); ++i) {
    const auto [part, in] = on_the_way_[i];
    out.receiver = std::max(out.receiver, in);
    if (sent_[part] < messages_[part].size()) send(part, std::max(late, in) + latency_);
  }
  return out;
}

std::optional<TransferEnds::Open> TransferEnds::meet(const Open& end) {
  if (met == open.size() || open[met].sends == end.sends) {
    open.push_back(end);
    return std::nullopt;
  }
  const Open other = open[met];
  if (++met == open.size()) {
    open.clear();
    met = 0;
  }
  return other;
}

NodeTransfers::NodeTransfers(const Workload& workload, const Cluster& cluster,
                             const Schedules& schedules, const LinkSpeed& nvlink)
    : workload_(workload),
      cluster_(cluster),
      schedules_(schedules),
      nvlink_(nvlink),
      ports_(workload, cluster, schedules) {}

TransferEnds* NodeTransfers::between(std::uint32_t group, GroupRank source, GroupRank target) {
  const std::vector<WorldRank>& members = workload_.groups[group].members;
  const WorldRank from = members[source], to = members[target];
  if (cluster_.location(from).node != cluster_.location(to).node || !ports_.between(from, to))
    return nullptr;
  return &ends_.try_emplace({group, source, target}, TransferEnds{group, source, target})
              .first->second;
}

const TransferEnds::Kind& NodeTransfers::kind_of(TransferEnds& ends, const Op& op) {
  for (const TransferEnds::Kind& known : ends.kinds)
    if (are_one_transfer(known.op, op)) return known;
  TransferEnds::Kind kind{
      op, schedules_.transfer(ends.group, op, ends.source, ends.target), {}, nullptr};
  const Schedule& schedule = *kind.schedule;
  GHOSTRANK_ASSERT(!schedule.flow_control().posting.needed());
  TransferParts::Messages messages(schedule.actors(ends.source));
  for (std::size_t a = 0; a < messages.size(); ++a) {
    const int actor = static_cast<int>(a);
    for (int k = 0; k < schedule.actor(ends.source, actor).steps; ++k) {
      const Step step = schedule.step(ends.source, actor, k);
      for (std::uint32_t slice = 0; slice < step.slices && !step.send_to.empty(); ++slice) {
        const std::uint64_t bytes =
            message_bytes(schedule.protocol(), slice_of(step.send, step, slice).count,
                          schedule.collective().element_bytes);
        kind.sent += {bytes, 1};
        messages[a].push_back(nvlink_.serialise(bytes));
      }
    }
  }
  const std::uint32_t credits = schedule.flow_control().credits;
  const auto [at, fresh] = parts_.try_emplace({credits, messages}, messages, credits, nvlink_);
  kind.parts = &at->second;
  ends.kinds.push_front(std::move(kind));
  return ends.kinds.front();
}

void NodeTransfers::clear() {
  for (auto& [key, ends] : ends_) {
    ends.open.clear();
    ends.met = 0;
  }
}

}  // namespace ghostrank
