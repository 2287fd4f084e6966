#include "emulator/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <functional>

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

void FlowNetwork::choose(Id id) {
  Flow& f = flows_[id];
  if (f.chosen) return;
  f.chosen = true;
  chosen_.push_back(id);
  for (const Need& n : f.contended) touch(n.resource);
}

void FlowNetwork::touch(std::uint32_t resource) {
  Resource& r = resources_[resource];
  if (r.touched) return;
  r.touched = true;
  touched_.push_back(resource);
}

std::span<const FlowNetwork::Id> FlowNetwork::settle(Picoseconds now) {
  altered_.clear();
  for (const Id id : come_) choose(id);
  for (const std::uint32_t resource : freed_) {
    if (resources_[resource].contended) touch(resource);
    for (const User& u : resources_[resource].users)
      if (flows_[u.flow].bottleneck == resource) choose(u.flow);
  }
  come_.clear();
  freed_.clear();
  do {
    fill();
  } while (choose_the_unfairly_treated());
  for (const std::uint32_t resource : touched_) resources_[resource].touched = false;
  touched_.clear();
  std::sort(chosen_.begin(), chosen_.end());  // whatever led to them
  for (const Id id : chosen_) {
    Flow& f = flows_[id];
    f.chosen = f.fixed = false;
    if (std::abs(f.fair - f.rate) <= kSame * f.rate) continue;
    if (times_) note_use(f, now);
    f.left = std::max(0.0, f.left - f.rate * static_cast<double>(now - f.since));
    f.since = now;
    f.rate = f.fair;
    ++f.version;
    altered_.push_back(id);
  }
  chosen_.clear();
  return altered_;
}

// Raises the rates of A together, and fixes those whose cap or whose first full resource is
// reached.
void FlowNetwork::fill() {
  solved_ += chosen_.size();
  for (const Id id : chosen_) flows_[id].fixed = false;
  levels_.clear();
  for (const std::uint32_t number : touched_) {
    Resource& r = resources_[number];
    r.free = r.time;
    r.load = 0;
    for (const User& u : r.users) {
      const Flow& f = flows_[u.flow];
      if (f.chosen)
        r.load += u.ps_per_byte;
      else
        r.free -= f.rate * u.ps_per_byte;
    }
    r.free = std::max(r.free, 0.0);
    if (r.load > 0) levels_.push_back({level(r), number});
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
    const bool none = std::none_of(r.users.begin(), r.users.end(), [&](const User& u) {
      return flows_[u.flow].chosen && !flows_[u.flow].fixed;
    });
    if (none) continue;
    const double at = level(r);
    const bool later = at > cap || (!levels_.empty() && at > levels_.front().first);
    if (later) {  // flows that were fixed left more time
      levels_.push_back({at, number});
      std::push_heap(levels_.begin(), levels_.end(), higher);
      continue;
    }
    for (std::size_t i = 0; i < r.users.size(); ++i) {
      const Id id = r.users[i].flow;
      if (!flows_[id].chosen || flows_[id].fixed) continue;
      fix(id, at, number);
      --left;
    }
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
  }
}

// Chooses flows outside A whose rates are not fair beside those of A: faster than a flow of A on
// the full resource that holds that one back, or no longer the fastest on their own bottleneck, or
// held back by one that is not full any more. Returns whether there are any.
bool FlowNetwork::choose_the_unfairly_treated() {
  const std::size_t before = chosen_.size(), resources = touched_.size();
  for (std::size_t t = 0; t < resources; ++t) {
    const std::uint32_t number = touched_[t];
    Resource& r = resources_[number];
    double used = 0, fastest = 0, held = 0;  // held: the fastest that this resource holds back
    bool outside = false;
    for (const User& u : r.users) {
      const Flow& f = flows_[u.flow];
      const double rate = f.chosen ? f.fair : f.rate;
      used += rate * u.ps_per_byte;
      fastest = std::max(fastest, rate);
      if (f.chosen && f.bottleneck == number) held = std::max(held, rate);
      outside |= !f.chosen;
    }
    r.full = used >= kFull * r.time;
    if (!outside) continue;
    const bool holds = held > 0 || std::any_of(r.users.begin(), r.users.end(), [&](const User& u) {
                         return flows_[u.flow].chosen && flows_[u.flow].bottleneck == number;
                       });
    for (std::size_t i = 0; i < r.users.size(); ++i) {
      const Flow& f = flows_[r.users[i].flow];
      if (f.chosen) continue;
      const bool freed = f.bottleneck == number && (!r.full || less(f.rate, fastest));
      const bool greedy = holds && less(held, f.rate);
      if (freed || greedy) choose(r.users[i].flow);
    }
  }
  return chosen_.size() > before;
}

}  // namespace ghostrank
