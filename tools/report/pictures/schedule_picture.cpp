// See schedule_picture.h.
#include "tools/report/pictures/schedule_picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>

#include "tools/text/humane.h"
#include "tools/text/svg.h"

namespace ghostrank {
namespace {

struct Sent {
  std::uint64_t messages = 0, bytes = 0;
  Sent& operator+=(const Sent& other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
};
using Connections = std::map<std::pair<GroupRank, GroupRank>, Sent>;  // by sender and receiver
using Order = std::vector<GroupRank>;

std::map<int, Connections> connections_of(const Schedule& schedule) {
  std::map<int, Connections> by_channel;
  for (GroupRank r = 0; r < schedule.collective().size; ++r) {
    for (int a = 0; a < schedule.actors(r); ++a) {
      const Actor actor = schedule.actor(r, a);
      for (int k = 0; k < actor.steps; ++k) {
        const Step step = schedule.step(r, a, k);
        for (const GroupRank peer : step.send_to) {
          Sent& sent = by_channel[actor.channel][{r, peer}];
          sent.messages += step.slices;
          for (std::uint32_t s = 0; s < step.slices; ++s)
            sent.bytes += message_bytes(schedule.protocol(), slice_of(step.send, step, s).count,
                                        schedule.collective().element_bytes);
        }
      }
    }
  }
  return by_channel;
}

bool same_pairs(const Connections& a, const Connections& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

// ---- Layouts: a point for every rank, in a square from 0 to 1 ----

std::vector<SvgPoint> on_a_circle(const Order& order) {
  std::vector<SvgPoint> points(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(i) /
                        static_cast<double>(std::max<std::size_t>(1, order.size()));
    points[order[i]] = {0.5 + 0.5 * std::sin(turn), 0.5 - 0.5 * std::cos(turn)};
  }
  return points;
}

// The ranks in the order of the ring, from rank 0 on; empty if the connections are no ring.
Order ring_order(const Connections& connections, int ranks) {
  std::map<GroupRank, GroupRank> next;
  for (const auto& [pair, sent] : connections)
    if (!next.emplace(pair).second) return {};
  Order order{0};
  while (static_cast<int>(order.size()) <= ranks) {
    const auto found = next.find(order.back());
    if (found == next.end()) return {};
    if (found->second == 0) break;
    order.push_back(found->second);
  }
  return static_cast<int>(order.size()) == ranks ? order : Order{};
}

using Neighbours = std::vector<std::vector<GroupRank>>;

Neighbours neighbours_of(const Connections& connections, int ranks) {
  Neighbours out(ranks);
  for (const auto& [pair, sent] : connections) {
    const auto [from, to] = pair;
    auto &of_from = out[from], &of_to = out[to];
    if (std::find(of_from.begin(), of_from.end(), to) != of_from.end()) continue;
    of_from.push_back(to);
    of_to.push_back(from);
  }
  return out;
}

// The ranks level by level below `root`: {rank, parent}; leaves out ranks that it does not reach.
using Levels = std::vector<std::vector<std::pair<GroupRank, GroupRank>>>;
Levels levels_below(const Neighbours& neighbours, GroupRank root) {
  std::vector<bool> met(neighbours.size());
  met[root] = true;
  Levels levels{{{root, kNoRank}}};
  for (;;) {
    std::vector<std::pair<GroupRank, GroupRank>> below;
    for (const auto& [rank, parent] : levels.back()) {
      for (const GroupRank child : neighbours[rank]) {
        if (met[child]) continue;
        met[child] = true;
        below.emplace_back(child, rank);
      }
    }
    if (below.empty()) return levels;
    levels.push_back(std::move(below));
  }
}

// Leaves side by side, every other rank above the middle of its children.
std::vector<SvgPoint> as_a_tree(const Levels& levels, std::size_t ranks) {
  struct Branch {
    std::vector<GroupRank> children;
    double x = 0;
  };
  std::vector<Branch> branches(ranks);
  for (const auto& level : levels)
    for (const auto& [rank, parent] : level)
      if (parent != kNoRank) branches[parent].children.push_back(rank);
  double leaves = 0;
  const auto place = [&](const auto& self, GroupRank rank) -> double {
    Branch& branch = branches[static_cast<std::size_t>(rank)];
    if (branch.children.empty()) return branch.x = leaves++;
    double sum = 0;
    for (const GroupRank child : branch.children) sum += self(self, child);
    return branch.x = sum / static_cast<double>(branch.children.size());
  };
  place(place, levels[0][0].first);
  std::vector<SvgPoint> points(ranks);
  const double wide = std::max(1.0, leaves - 1),
               deep = std::max(1.0, static_cast<double>(levels.size()) - 1);
  for (std::size_t depth = 0; depth < levels.size(); ++depth)
    for (const auto& [rank, parent] : levels[depth]) {
      const double x = leaves == 1 ? 0.5 : branches[rank].x / wide;
      points[rank] = {x, static_cast<double>(depth) / deep};
    }
  return points;
}

// Empty if the connections are no tree of all ranks. `root`: kNoRank takes the rank from which the
// tree is least deep.
std::vector<SvgPoint> tree_places(const Connections& connections, int ranks, GroupRank root) {
  const Neighbours neighbours = neighbours_of(connections, ranks);
  std::size_t ends = 0;
  for (const auto& list : neighbours) ends += list.size();
  if (ends != 2 * (static_cast<std::size_t>(ranks) - 1)) return {};
  std::optional<Levels> best;
  for (GroupRank r = 0; r < ranks; ++r) {
    if (root != kNoRank && r != root) continue;
    Levels levels = levels_below(neighbours, r);
    std::size_t reached = 0;
    for (const auto& level : levels) reached += level.size();
    if (reached != static_cast<std::size_t>(ranks)) return {};
    if (!best || levels.size() < best->size()) best = std::move(levels);
  }
  return as_a_tree(*best, ranks);
}

// True if the rank's first send on the channel goes to a peer from which it has received before. In
// a tree that first reduces and then broadcasts, only the root does so; all others first send to
// their parent.
bool turns_round(const Schedule& schedule, int channel, GroupRank rank) {
  std::vector<GroupRank> received;
  for (int a = 0; a < schedule.actors(rank); ++a) {
    const Actor actor = schedule.actor(rank, a);
    if (actor.channel != channel) continue;
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule.step(rank, a, k);
      received.insert(received.end(), step.recv_from.begin(), step.recv_from.end());
      if (!step.send_to.empty())
        return std::find(received.begin(), received.end(), step.send_to[0]) != received.end();
    }
  }
  return false;
}

// kNoRank: none is known.
GroupRank root_of(const Schedule& schedule, int channel) {
  const Collective& c = schedule.collective();
  const bool rooted = c.func == Func::broadcast || c.func == Func::reduce ||
                      c.func == Func::gather || c.func == Func::scatter;
  if (rooted) return c.root;
  GroupRank root = kNoRank;
  for (GroupRank r = 0; r < c.size; ++r) {
    if (!turns_round(schedule, channel, r)) continue;
    if (root != kNoRank) return kNoRank;
    root = r;
  }
  return root;
}

std::vector<SvgPoint> points_of(const Schedule& schedule, int channel,
                                const Connections& connections) {
  const Collective& c = schedule.collective();
  const Order ring = ring_order(connections, c.size);
  if (!ring.empty()) return on_a_circle(ring);
  std::vector<SvgPoint> tree = tree_places(connections, c.size, root_of(schedule, channel));
  if (!tree.empty()) return tree;
  Order order;
  for (GroupRank r = 0; r < c.size; ++r) order.push_back(r);
  return on_a_circle(order);
}

// ---- Panels ----

// "channel 0", "channels 0 to 7", "channels 0, 2, 4"
std::string names_of(const std::vector<int>& channels) {
  if (channels.size() == 1) return "channel " + std::to_string(channels[0]);
  const bool run = channels.back() - channels.front() + 1 == static_cast<int>(channels.size());
  if (run)
    return "channels " + std::to_string(channels.front()) + " to " +
           std::to_string(channels.back());
  std::string text;
  for (const int channel : channels) text += (text.empty() ? "" : ", ") + std::to_string(channel);
  return "channels " + text;
}

SvgGraph panel_of(const Schedule& schedule, const Connections& connections,
                  const std::vector<int>& channels, const std::vector<std::int32_t>& node_of) {
  SvgGraph panel;
  panel.title = names_of(channels);
  const Collective& c = schedule.collective();
  const std::vector<SvgPoint> points = points_of(schedule, channels[0], connections);
  for (GroupRank r = 0; r < c.size; ++r) {
    const std::size_t i = r;
    const int node = node_of.empty() ? 0 : node_of[i];
    panel.nodes.push_back({points[i], std::to_string(r), node});
  }
  std::uint64_t most = 1;
  for (const auto& [pair, sent] : connections) most = std::max(most, sent.bytes);
  for (const auto& [pair, sent] : connections) {
    const std::string what = std::to_string(pair.first) + " to " + std::to_string(pair.second) +
                             ": " + humane_count(static_cast<double>(sent.messages), "message") +
                             ", " + humane_bytes(static_cast<double>(sent.bytes));
    panel.edges.push_back({pair.first, pair.second,
                           static_cast<double>(sent.bytes) / static_cast<double>(most),
                           channels.size() == 1 ? what : what + " on these channels together"});
  }
  return panel;
}

}  // namespace

std::string schedule_svg(const Schedule& schedule, const std::string& title,
                         const std::vector<std::int32_t>& node_of) {
  struct Alike {
    Connections connections;  // summed over the channels
    std::vector<int> channels;
  };
  const std::map<int, Connections> by_channel = connections_of(schedule);
  std::vector<Alike> groups;
  for (const auto& [channel, connections] : by_channel) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Alike& group) {
      return same_pairs(group.connections, connections);
    });
    if (same == groups.end()) {
      groups.push_back({connections, {channel}});
      continue;
    }
    same->channels.push_back(channel);
    for (auto& [pair, sum] : same->connections) sum += connections.at(pair);
  }
  std::vector<SvgGraph> panels;
  for (const Alike& group : groups)
    panels.push_back(panel_of(schedule, group.connections, group.channels, node_of));
  return svg_graphs(title, panels);
}

}  // namespace ghostrank
