#include "emulator/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "emulator/common/assert.h"

namespace ghostrank {
namespace {

// Rates that differ by less are equal. Sums of some thousand shares are exact to 1e-12.
constexpr double kAlike = 1e-9;
constexpr double kSame = 1e-12;
constexpr double kFull = 1 - 1e-9;

// A resource whose users can take more time than this is contended. Sums of changes to `most`,
// which begin anew whenever nobody uses the resource, are exact to less.
constexpr double kContended = 1 + 1e-9;

bool less(double a, double b) { return a < b * (1 - kAlike); }

}  // namespace

FlowNetwork::FlowNetwork(std::size_t resources) : resources_(resources) {}

void FlowNetwork::clear() {
  flows_.clear();
  free_.clear();
  come_.clear();
  freed_.clear();
  std::fill(resources_.begin(), resources_.end(), Resource{});
}

FlowNetwork::Id FlowNetwork::add(std::span<const Need> needs, double bytes, double cap,
                                 Picoseconds now) {
  GHOSTRANK_ASSERT(bytes > 0 && cap > 0);
  Id id;
  if (free_.empty()) {
    id = static_cast<Id>(flows_.size());
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& f = flows_[id];
  f.needs = needs;
  f.left = bytes;
  f.rate = 0;
  f.cap = cap;
  f.since = now;
  f.bottleneck = kOwnCap;
  ++f.version;
  f.in_use = true;
  for (const Need& n : needs) come(n.resource, id, n.ps_per_byte);
  come_.push_back(id);
  return id;
}

void FlowNetwork::come(std::uint32_t resource, Id id, double ps_per_byte) {
  Resource& r = resources_[resource];
  r.users.push_back({id, ps_per_byte});
  r.most += flows_[id].cap * ps_per_byte;
  if (r.contended) flows_[id].contended.push_back({resource, ps_per_byte});
  update_contention(resource);
}

void FlowNetwork::give(std::uint32_t resource, double share) {
  GHOSTRANK_ASSERT(share > 0 && share <= 1);
  Resource& r = resources_[resource];
  if (r.time == share) return;
  r.time = share;
  for (const User& u : r.users) come_.push_back(u.flow);  // to be chosen again
  update_contention(resource);
}

// Lists the resource at its users while they can take more time than it gives, and only then.
void FlowNetwork::update_contention(std::uint32_t resource) {
  Resource& r = resources_[resource];
  const bool contended = r.most > kContended * r.time;
  if (contended == r.contended) return;
  r.contended = contended;
  if (contended) {
    for (const User& u : r.users) flows_[u.flow].contended.push_back({resource, u.ps_per_byte});
    return;
  }
  r.full = false;
  for (const User& u : r.users) {
    std::vector<Need>& listed = flows_[u.flow].contended;
    const auto here = std::find_if(listed.begin(), listed.end(),
                                   [&](const Need& n) { return n.resource == resource; });
    *here = listed.back();
    listed.pop_back();
  }
}

void FlowNetwork::remove(Id id) {
  Flow& f = flows_[id];
  GHOSTRANK_ASSERT(f.in_use);
  if (times_ && f.rate > 0) note_use(f, end(id));
  f.in_use = false;
  ++f.version;
  for (const Need& n : f.needs) leave(n.resource, id, n.ps_per_byte);
  f.contended.clear();
  std::erase(come_, id);
  free_.push_back(id);
}

void FlowNetwork::leave(std::uint32_t resource, Id id, double ps_per_byte) {
  Resource& r = resources_[resource];
  const auto at =
      std::find_if(r.users.begin(), r.users.end(), [&](const User& u) { return u.flow == id; });
  *at = r.users.back();
  r.users.pop_back();
  r.most = r.users.empty() ? 0 : r.most - flows_[id].cap * ps_per_byte;
  // Only where a resource was full can somebody else become faster.
  if (r.full) freed_.push_back(resource);
  update_contention(resource);
}

Picoseconds FlowNetwork::end(Id id) const {
  const Flow& f = flows_[id];
  return f.since + static_cast<Picoseconds>(std::ceil(f.left / f.rate));
}

// The flow has had its rate since f.since.
void FlowNetwork::note_use(const Flow& f, Picoseconds until) {
  for (const Need& n : f.needs)
    if (n.resource >= first_watched_)
      times_->add(n.resource - first_watched_, f.since, until, f.rate * n.ps_per_byte);
}

std::span<const FlowNetwork::Id> FlowNetwork::settle(Picoseconds now) {
  altered_.clear();
  wanted_.clear();
  for (const Id id : come_) want(id);
  for (const std::uint32_t resource : freed_) look_at_freed(resource);
  come_.clear();
  freed_.clear();
  for (const Id id : wanted_) {
    if (!flows_[id].wanted) continue;  // settled with one before it
    choose(id);
    settle_part(now);
  }
  for (const Id id : altered_) flows_[id].altered = false;
  std::sort(altered_.begin(), altered_.end());  // whatever led to them
  return altered_;
}

void FlowNetwork::want(Id id) {
  Flow& f = flows_[id];
  if (f.wanted) return;
  f.wanted = true;
  wanted_.push_back(id);
}

void FlowNetwork::look_at_freed(std::uint32_t resource) {
  Resource& r = resources_[resource];
  double used = 0;
  for (const User& u : r.users) {
    const Flow& f = flows_[u.flow];
    used += f.rate * u.ps_per_byte;
    if (f.bottleneck == resource) want(u.flow);
  }
  r.full = r.contended && used >= kFull * r.time;
}

// Gives the flows of A, and all that feel it, their fair rates.
void FlowNetwork::settle_part(Picoseconds now) {
  do {
    choose_the_wanted();
    fill();
  } while (choose_the_unfairly_treated());
  for (const std::uint32_t resource : touched_) resources_[resource].touched = false;
  touched_.clear();
  looked_at_ = 0;
  for (const Id id : chosen_) alter(id, now);
  chosen_.clear();
}

void FlowNetwork::choose(Id id) {
  Flow& f = flows_[id];
  if (f.chosen) return;
  f.chosen = true;
  f.wanted = false;
  chosen_.push_back(id);
  for (const Need& n : f.contended) {
    Resource& r = resources_[n.resource];
    if (std::exchange(r.touched, true)) continue;
    touched_.push_back(n.resource);
  }
}

// Chooses what is to be settled and meets A, because it would be unfairly treated.
void FlowNetwork::choose_the_wanted() {
  for (; looked_at_ < touched_.size(); ++looked_at_)
    for (const User& u : resources_[touched_[looked_at_]].users)
      if (flows_[u.flow].wanted) choose(u.flow);
}

// The flow, of A, has a fair rate.
void FlowNetwork::alter(Id id, Picoseconds now) {
  Flow& f = flows_[id];
  f.chosen = f.fixed = false;
  if (std::abs(f.fair - f.rate) <= kSame * f.rate) return;
  if (times_) note_use(f, now);
  f.left = std::max(0.0, f.left - f.rate * static_cast<double>(now - f.since));
  f.since = now;
  f.rate = f.fair;
  ++f.version;
  if (!std::exchange(f.altered, true)) altered_.push_back(id);
}

// Raises the rates of A together, and fixes those whose cap or whose first full resource is
// reached. At a resource the others count as flows that have their rates as caps: where A needs
// their time, they get no more than A.
void FlowNetwork::fill() {
  solved_ += chosen_.size();
  for (const Id id : chosen_) flows_[id].fixed = false;
  levels_.clear();
  for (const std::uint32_t number : touched_) {
    Resource& r = resources_[number];
    r.free = r.time;
    r.load = 0;
    r.unfixed = 0;
    r.level = -1;
    double cap = 0;
    for (const User& u : r.users) {
      r.load += u.ps_per_byte;
      const Flow& f = flows_[u.flow];
      if (!f.chosen) continue;
      ++r.unfixed;
      cap = std::max(cap, f.cap);
    }
    // Levels only rise, so one above all caps holds nobody back.
    if (raise(r) < cap) levels_.push_back({r.level, number});
  }
  const auto higher = std::greater<>();
  std::make_heap(levels_.begin(), levels_.end(), higher);
  by_cap_ = chosen_;
  std::sort(by_cap_.begin(), by_cap_.end(), [&](Id a, Id b) {
    return flows_[a].cap != flows_[b].cap ? flows_[a].cap < flows_[b].cap : a < b;
  });
  std::size_t next = 0;
  for (std::size_t left = chosen_.size(); left > 0;) {
    while (next < by_cap_.size() && flows_[by_cap_[next]].fixed) ++next;
    const double cap = next < by_cap_.size() ? flows_[by_cap_[next]].cap : 0;
    if (levels_.empty() || cap <= levels_.front().first) {
      fix(by_cap_[next], cap, kOwnCap);
      --left;
      continue;
    }
    std::pop_heap(levels_.begin(), levels_.end(), higher);
    const std::uint32_t number = levels_.back().second;
    levels_.pop_back();
    Resource& r = resources_[number];
    if (r.unfixed == 0) continue;
    const double at = raise(r), before = at * (1 - kSame);
    if (before > cap || (!levels_.empty() && before > levels_.front().first)) {
      // Flows that were fixed left more time.
      levels_.push_back({at, number});
      std::push_heap(levels_.begin(), levels_.end(), higher);
      continue;
    }
    for (const User& u : r.users) {
      const Flow& f = flows_[u.flow];
      if (!f.chosen || f.fixed) continue;
      fix(u.flow, std::min(at, f.cap), number);
      --left;
    }
  }
}

// Returns the rate at which the resource is full, if all of its users but those that are fixed or
// slower outside A have this rate.
double FlowNetwork::raise(Resource& r) const {
  for (double below = r.level;; below = r.level) {
    r.level = std::max(below, r.free / r.load);
    bool slower = false;
    for (const User& u : r.users) {
      const Flow& f = flows_[u.flow];
      if (f.chosen || f.rate <= below || f.rate > r.level) continue;
      r.free = std::max(0.0, r.free - f.rate * u.ps_per_byte);
      r.load -= u.ps_per_byte;
      slower = true;
    }
    if (!slower) return r.level;
    if (r.load <= 0) return r.level = std::numeric_limits<double>::max();
  }
}

void FlowNetwork::fix(Id id, double rate, std::uint32_t bottleneck) {
  Flow& f = flows_[id];
  f.fixed = true;
  f.fair = rate;
  f.bottleneck = bottleneck;
  for (const Need& n : f.contended) {
    Resource& r = resources_[n.resource];
    r.free = std::max(0.0, r.free - rate * n.ps_per_byte);
    r.load = std::max(0.0, r.load - n.ps_per_byte);
    --r.unfixed;
  }
}

// Chooses flows outside A whose rates are not fair beside those of A: faster than a flow of A on
// the full resource that holds that one back, or as fast as if A had no need of their resource, or
// no longer the fastest on their own bottleneck, or held back by one that is not full any more.
// Returns whether there are any.
bool FlowNetwork::choose_the_unfairly_treated() {
  const std::size_t before = chosen_.size(), resources = touched_.size();
  for (std::size_t t = 0; t < resources; ++t) {
    const std::uint32_t number = touched_[t];
    Resource& r = resources_[number];
    double used = 0, fastest = 0, held = 0;  // held: the fastest that this resource holds back
    bool outside = false, holds = false;
    for (const User& u : r.users) {
      const Flow& f = flows_[u.flow];
      const double rate = f.chosen ? f.fair : f.rate;
      used += rate * u.ps_per_byte;
      fastest = std::max(fastest, rate);
      outside |= !f.chosen;
      if (!f.chosen || f.bottleneck != number) continue;
      holds = true;
      held = std::max(held, rate);
    }
    r.full = used >= kFull * r.time;
    if (!outside) continue;
    const bool overfull = used > kContended * r.time;
    if (overfull) raise(r);
    for (const User& u : r.users) {
      const Flow& f = flows_[u.flow];
      if (f.chosen) continue;
      const bool freed = f.bottleneck == number && (!r.full || less(f.rate, fastest));
      const bool greedy = holds && less(held, f.rate);
      const bool too_fast = overfull && f.rate > r.level;
      if (freed || greedy || too_fast) choose(u.flow);
    }
  }
  return chosen_.size() > before;
}

}  // namespace ghostrank
