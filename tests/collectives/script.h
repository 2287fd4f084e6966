// A schedule given step by step, for tests that need one that no formula gives.
#pragma once

#include <utility>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

struct ScriptedActor {
  int channel = 0;
  std::vector<Step> steps;
  std::vector<std::vector<Block>> recv_pieces, send_pieces;  // by step, if any is scattered
};

class Script final : public Schedule {
 public:
  using Actors = std::vector<std::vector<ScriptedActor>>;  // by rank
  Script(const Collective& c, Actors actors, FlowControl flow = {})
      : Schedule(c, flow), actors_(std::move(actors)) {}

  // Copies every step of another schedule, for a test to change.
  static Actors copy_of(const Schedule& schedule) {
    Actors copy;
    for (GroupRank r = 0; r < schedule.collective().size; ++r) {
      auto& actors = copy.emplace_back();
      for (int a = 0; a < schedule.actors(r); ++a) {
        const Actor actor = schedule.actor(r, a);
        auto& steps = actors.emplace_back(ScriptedActor{actor.channel, {}}).steps;
        for (int k = 0; k < actor.steps; ++k) steps.push_back(schedule.step(r, a, k));
        for (int k = 0; k < actor.steps; ++k) {
          schedule.pieces(r, a, k, Way::recv, actors.back().recv_pieces.emplace_back());
          schedule.pieces(r, a, k, Way::send, actors.back().send_pieces.emplace_back());
        }
      }
    }
    return copy;
  }

  int actors(GroupRank r) const override { return static_cast<int>(of(r).size()); }
  Actor actor(GroupRank r, int a) const override {
    return {of(r, a).channel, static_cast<int>(of(r, a).steps.size())};
  }
  Step step(GroupRank r, int a, int k) const override { return of(r, a).steps[k]; }
  void pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const override {
    const auto& by_step = way == Way::recv ? of(r, a).recv_pieces : of(r, a).send_pieces;
    if (static_cast<std::size_t>(k) < by_step.size()) out = by_step[k];
  }
  // The first actor with a receive from `src` on the channel.
  int receiver(GroupRank dst, int channel, GroupRank src) const override {
    for (int a = 0; a < actors(dst); ++a)
      if (of(dst, a).channel == channel)
        for (const Step& step : of(dst, a).steps)
          for (const GroupRank peer : step.recv_from)
            if (peer == src) return a;
    return 0;
  }

 private:
  const std::vector<ScriptedActor>& of(GroupRank r) const { return actors_[r]; }
  const ScriptedActor& of(GroupRank r, int a) const { return of(r)[a]; }
  Actors actors_;
};

inline Step receive_from(Peers peers, Block block, Combine combine) {
  Step step;
  step.recv_from = peers;
  step.recv = block;
  step.on_recv = combine;
  return step;
}

inline Step send_to(Peers peers, Block block) {
  Step step;
  step.send_to = peers;
  step.send = block;
  return step;
}

// Receives a block and sends it on.
inline Step relay(Peers from, Combine combine, Peers to, Block block) {
  Step step = receive_from(from, block, combine);
  step.send_to = to;
  step.send = block;
  return step;
}

}  // namespace ghostrank
