#include "emulator/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "emulator/network/level_heap.h"
#include "switch/assert.h"

namespace ghostrank {
namespace {

// Rates that differ by less are equal. Sums of some thousand shares are exact to 1e-12.
constexpr double kAlike = 1e-9;
constexpr double kSame = 1e-12;
constexpr double kFull = 1 - 1e-9;
constexpr double kNoRate = std::numeric_limits<double>::max();  // above all rates

// A resource whose users can take more time than this is contended. Sums of changes to `most`,
// which begin anew whenever nobody uses the resource, are exact to less.
constexpr double kContended = 1 + 1e-9;

bool less(double a, double b) { return a < b * (1 - kAlike); }

}  // namespace

FlowNetwork::FlowNetwork(std::size_t resources) : resources_(resources), held_back_(resources) {}

void FlowNetwork::clear() {
  flows_.clear();
  shares_.clear();
  free_.clear();
  come_.clear();
  freed_.clear();
  std::fill(resources_.begin(), resources_.end(), Resource{});
  std::fill(held_back_.begin(), held_back_.end(), 0.0);
}

FlowNetwork::Id FlowNetwork::add(std::span<const Need> needs, double bytes, double cap,
                                 Picoseconds now) {
  GHOSTRANK_ASSERT(bytes > 0 && cap > 0);
  Id id;
  if (free_.empty()) {
    id = static_cast<Id>(flows_.size());
    flows_.emplace_back();
    shares_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& f = flows_[id];
  f.needs = needs;
  f.left = bytes;
  f.since = f.held_since = now;
  f.held_by = kOwnCap;
  shares_[id] = {.cap = cap};
  f.in_use = true;
  f.listings.resize(needs.size());
  for (std::uint32_t need = 0; need < needs.size(); ++need) come(id, need);
  come_.push_back(id);
  return id;
}

void FlowNetwork::come(Id id, std::uint32_t need) {
  Flow& f = flows_[id];
  const auto [resource, ps_per_byte] = f.needs[need];
  Resource& r = resources_[resource];
  f.listings[need].user = static_cast<std::uint32_t>(r.users.size());
  r.users.push_back({id, need, ps_per_byte});
  r.most += shares_[id].cap * ps_per_byte;
  r.need += ps_per_byte;
  if (r.contended) list_contended(resource, r.users.back());
  update_contention(resource);
}

void FlowNetwork::list_contended(std::uint32_t resource, const User& user) {
  Flow& f = flows_[user.flow];
  f.listings[user.need].contended = static_cast<std::uint32_t>(f.contended.size());
  f.contended.push_back({resource, user.need, user.ps_per_byte});
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
    for (const User& u : r.users) list_contended(resource, u);
    return;
  }
  r.full = false;
  for (const User& u : r.users) {
    Flow& f = flows_[u.flow];
    const std::uint32_t at = f.listings[u.need].contended;
    f.contended[at] = f.contended.back();
    f.listings[f.contended[at].need].contended = at;
    f.contended.pop_back();
  }
}

void FlowNetwork::remove(Id id) {
  Flow& f = flows_[id];
  GHOSTRANK_ASSERT(f.in_use);
  if (shares_[id].rate > 0) {
    if (times_) note_use(id, end(id));
    note_held(id, end(id));
  }
  f.in_use = false;
  for (std::uint32_t need = 0; need < f.needs.size(); ++need) leave(id, need);
  f.contended.clear();
  std::erase(come_, id);
  free_.push_back(id);
}

void FlowNetwork::leave(Id id, std::uint32_t need) {
  const auto [resource, ps_per_byte] = flows_[id].needs[need];
  Resource& r = resources_[resource];
  const std::uint32_t at = flows_[id].listings[need].user;
  const User last = r.users.back();
  r.users[at] = last;
  flows_[last.flow].listings[last.need].user = at;
  r.users.pop_back();
  r.most = r.users.empty() ? 0 : r.most - shares_[id].cap * ps_per_byte;
  r.need = r.users.empty() ? 0 : r.need - ps_per_byte;
  // Only where a resource was full can somebody else become faster.
  if (r.full) freed_.push_back(resource);
  update_contention(resource);
}

Picoseconds FlowNetwork::end(Id id) const {
  const Flow& f = flows_[id];
  return f.since + static_cast<Picoseconds>(std::ceil(f.left / shares_[id].rate));
}

// The flow has had its rate since f.since.
void FlowNetwork::note_use(Id id, Picoseconds until) {
  const Flow& f = flows_[id];
  for (const Need& n : f.needs)
    if (n.resource >= first_watched_)
      times_->add(n.resource - first_watched_, f.since, until, shares_[id].rate * n.ps_per_byte);
}

// The flow has had its rate since f.held_since.
void FlowNetwork::note_held(Id id, Picoseconds until) {
  Flow& f = flows_[id];
  const Share& s = shares_[id];
  if (f.held_by != kOwnCap)
    held_back_[f.held_by] += static_cast<double>(until - f.held_since) * (1 - s.rate / s.cap);
  f.held_since = until;
  f.held_by = s.bottleneck;
}

std::span<const FlowNetwork::Id> FlowNetwork::settle(Picoseconds now) {
  altered_.clear();
  wanted_.clear();
  for (const Id id : come_) want(id);
  for (const std::uint32_t resource : freed_) look_at_freed(resource);
  come_.clear();
  freed_.clear();
  for (const Id id : wanted_) {
    if (!shares_[id].wanted) continue;  // settled with one before it
    choose(id);
    settle_part(now);
  }
  for (const Id id : altered_) flows_[id].altered = false;
  std::sort(altered_.begin(), altered_.end());  // so that the order of discovery does not matter
  return altered_;
}

void FlowNetwork::want(Id id) {
  if (std::exchange(shares_[id].wanted, true)) return;
  wanted_.push_back(id);
}

void FlowNetwork::look_at_freed(std::uint32_t resource) {
  Resource& r = resources_[resource];
  double used = 0;
  for (const User& u : r.users) {
    const Share& s = shares_[u.flow];
    used += s.rate * u.ps_per_byte;
    if (s.bottleneck == resource) want(u.flow);
  }
  r.full = r.contended && used >= kFull * r.time;
}

// Gives the flows of A, and all that feel it, their fair rates.
void FlowNetwork::settle_part(Picoseconds now) {
  do {
    choose_the_wanted();
    fill();
  } while (choose_the_unfairly_treated());
  for (const std::uint32_t resource : touched_) {
    resources_[resource].touched = false;
    resources_[resource].chosen = 0;
  }
  touched_.clear();
  looked_at_ = 0;
  for (const Id id : chosen_) alter(id, now);
  chosen_.clear();
}

void FlowNetwork::choose(Id id) {
  Share& s = shares_[id];
  if (s.chosen) return;
  s.chosen = true;
  s.wanted = false;
  chosen_.push_back(id);
  for (const Contended& n : flows_[id].contended) {
    Resource& r = resources_[n.resource];
    ++r.chosen;
    if (std::exchange(r.touched, true)) continue;
    touched_.push_back(n.resource);
  }
}

// Adds to A the wanted flows that share a resource with it, which would be unfairly treated.
void FlowNetwork::choose_the_wanted() {
  for (; looked_at_ < touched_.size(); ++looked_at_)
    for (const User& u : resources_[touched_[looked_at_]].users)
      if (shares_[u.flow].wanted) choose(u.flow);
}

// Gives a flow of A the fair rate that was computed.
void FlowNetwork::alter(Id id, Picoseconds now) {
  Share& s = shares_[id];
  s.chosen = s.fixed = false;
  if (s.fair != s.rate || s.bottleneck != flows_[id].held_by) note_held(id, now);
  if (std::abs(s.fair - s.rate) <= kSame * s.rate) {
    s.fair = s.rate;
    return;
  }
  Flow& f = flows_[id];
  if (times_) note_use(id, now);
  f.left = std::max(0.0, f.left - s.rate * static_cast<double>(now - f.since));
  f.since = now;
  s.rate = s.fair;
  if (!std::exchange(f.altered, true)) altered_.push_back(id);
}

// Raises the rates of A together, and fixes those whose cap or whose first full resource is
// reached. At a resource the others count as flows that have their rates as caps: where A needs
// their time, they get no more than A.
//
// The heap has a lower bound of each resource's level: at first, that no user is slower. Most are
// never looked at more closely, because other resources hold back all of A that uses them.
void FlowNetwork::fill() {
  solved_ += chosen_.size();
  double least = kNoRate, most = 0;  // of the caps
  for (const Id id : chosen_) {
    shares_[id].fixed = false;
    least = std::min(least, shares_[id].cap);
    most = std::max(most, shares_[id].cap);
  }
  levels_.clear();
  for (const std::uint32_t number : touched_) {
    Resource& r = resources_[number];
    r.free = r.time;
    r.load = r.need;
    r.unfixed = r.chosen;
    r.level = -1;
    const double bound = r.free / r.load;
    // Levels only rise, so one above all caps holds nobody back.
    if (bound < most) levels_.emplace_back(bound, number);
  }
  make_heap_of(levels_);
  by_cap_ = chosen_;
  if (least < most)
    std::sort(by_cap_.begin(), by_cap_.end(), [&](Id a, Id b) {
      return shares_[a].cap != shares_[b].cap ? shares_[a].cap < shares_[b].cap : a < b;
    });
  std::size_t next = 0;
  for (std::size_t left = chosen_.size(); left > 0;) {
    while (next < by_cap_.size() && shares_[by_cap_[next]].fixed) ++next;
    const double cap = next < by_cap_.size() ? shares_[by_cap_[next]].cap : 0;
    if (levels_.empty() || cap <= levels_.front().first) {
      fix(by_cap_[next], cap, kOwnCap);
      --left;
      continue;
    }
    const std::uint32_t number = levels_.front().second;
    pop_heap_of(levels_);
    Resource& r = resources_[number];
    if (r.unfixed == 0) continue;
    const double at = raise(r), before = at * (1 - kSame);
    if (before > cap || (!levels_.empty() && before > levels_.front().first)) {
      push_to_heap(levels_, {at, number});
      continue;
    }
    for (const User& u : r.users) {
      const Share& s = shares_[u.flow];
      if (!s.chosen || s.fixed) continue;
      fix(u.flow, std::min(at, s.cap), number);
      --left;
    }
  }
}

// Returns the rate at which the resource is full, if all of its users but those that are fixed or
// slower outside A have this rate.
double FlowNetwork::raise(Resource& r) const {
  for (double below = r.level;; below = r.level) {
    r.level = std::max(below, r.free / r.load);
    if (r.chosen == r.users.size()) return r.level;
    bool slower = false;
    for (const User& u : r.users) {
      const Share& s = shares_[u.flow];
      const bool counts = !s.chosen & (s.rate > below) & (s.rate <= r.level);
      r.free = std::max(0.0, r.free - (counts ? s.rate * u.ps_per_byte : 0));
      r.load -= counts ? u.ps_per_byte : 0;
      slower |= counts;
    }
    if (!slower) return r.level;
    if (r.load <= 0) return r.level = kNoRate;
  }
}

void FlowNetwork::fix(Id id, double rate, std::uint32_t bottleneck) {
  Share& s = shares_[id];
  s.fixed = true;
  s.fair = rate;
  s.bottleneck = bottleneck;
  for (const Contended& n : flows_[id].contended) {
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
    if (r.chosen == r.users.size()) {
      r.full = r.free <= (1 - kFull) * r.time;
      continue;
    }
    double used = 0, fastest = 0;
    double held = -1;                    // the fastest of A that this resource holds back
    double outside = 0, slow = kNoRate;  // the fastest outside, the slowest of these held back here
    for (const User& u : r.users) {
      const Share& s = shares_[u.flow];
      const bool here = s.bottleneck == number;
      used += s.fair * u.ps_per_byte;
      fastest = std::max(fastest, s.fair);
      outside = std::max(outside, s.chosen ? 0 : s.fair);
      slow = std::min(slow, !s.chosen & here ? s.fair : kNoRate);
      held = std::max(held, s.chosen & here ? s.fair : -1);
    }
    if (held < 0) held = kNoRate;
    r.full = used >= kFull * r.time;
    const bool overfull = used > kContended * r.time;
    const bool free = slow < kNoRate && (!r.full || less(slow, fastest));
    if (!overfull && !free && !less(held, outside)) continue;
    if (overfull) raise(r);
    for (const User& u : r.users) {
      const Share& s = shares_[u.flow];
      if (s.chosen) continue;
      const bool freed = s.bottleneck == number && (!r.full || less(s.rate, fastest));
      const bool greedy = less(held, s.rate);
      const bool too_fast = overfull && s.rate > r.level;
      if (freed || greedy || too_fast) choose(u.flow);
    }
  }
  return chosen_.size() > before;
}

}  // namespace ghostrank
