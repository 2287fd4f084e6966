#include "emulator/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "switch/assert.h"

namespace ghostrank {
namespace {

// Rates that differ by less are equal. Sums of some thousand shares are exact to 1e-12.
constexpr double kAlike = 1e-9;
constexpr double kSame = 1e-12;
constexpr double kFull = 1 - 1e-9;
constexpr double kNoRate = std::numeric_limits<double>::max();  // above all rates
constexpr double kUnfixed =
    std::numeric_limits<double>::infinity();  // of a member: not computed yet
constexpr double kInA = -1;                   // a State::rate: the flow is a member
constexpr std::uint32_t kNoEdge = 0xffffffff;

// A resource whose users can take more time than this is contended. Sums of changes to `ceilings`,
// which begin anew whenever nobody uses the resource, are exact to less.
constexpr double kContended = 1 + 1e-9;

// A flow with more needs than this has a ceiling below its cap: it may cross hundreds of links that
// hold it back nowhere, because it is slower elsewhere. Others would not earn its cost.
constexpr std::size_t kFew = 8;
// A ceiling that changes is so many times the rate; above so many times the rate it is lowered.
constexpr double kRoom = 1.25, kMuchRoom = 1.6;

// Prefetch distances, in flows of one time.
constexpr std::size_t kFlowsAhead = 9, kListsAhead = 6, kResourcesAhead = 3;

bool less(double a, double b) { return a < b * (1 - kAlike); }

}  // namespace

FlowNetwork::FlowNetwork(std::size_t resources) : resources_(resources), held_back_(resources) {}

void FlowNetwork::clear() {
  flows_.clear();
  states_.clear();
  free_.clear();
  come_.clear();
  freed_.clear();
  for (Resource& r : resources_) r = Resource{};
  std::fill(held_back_.begin(), held_back_.end(), 0.0);
}

FlowNetwork::Id FlowNetwork::add(std::span<const Need> needs, double bytes, double cap,
                                 Picoseconds now) {
  GHOSTRANK_ASSERT(bytes > 0 && cap > 0);
  Id id;
  if (free_.empty()) {
    id = static_cast<Id>(flows_.size());
    flows_.emplace_back();
    states_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
    if (free_.size() >= kFlowsAhead) fetch_flow(free_[free_.size() - kFlowsAhead]);
  }
  Flow& f = flows_[id];
  f.needs = needs;
  f.left = bytes;
  f.cap = cap;
  f.since = f.held_since = now;
  states_[id] = {};
  f.in_use = true;
  fetch(f, 0, kAhead);
  f.places.resize(needs.size());
  const bool few = needs.size() <= kFew;
  f.ceiling = few ? cap : 0;
  for (std::uint32_t need = 0; need < needs.size(); ++need) {
    if (need % kAhead == 0) fetch(f, need + kAhead, kAhead);
    come(id, need);
  }
  if (!few) set_ceiling(id, kRoom * equal_share(f));
  has_come(id);
  return id;
}

void FlowNetwork::has_come(Id id) {
  if (!std::exchange(flows_[id].has_come, true)) come_.push_back(id);
}

void FlowNetwork::come(Id id, std::uint32_t need) {
  Flow& f = flows_[id];
  const auto [resource, ps_per_byte] = f.needs[need];
  Resource& r = resources_[resource];
  f.places[need].user = r.users.size();
  r.users.push_back({id, need, ps_per_byte});
  r.ceilings += f.ceiling * ps_per_byte;
  r.need += ps_per_byte;
  if (r.contended) list_contended(resource, r.users.back());
  update_contention(resource);
}

void FlowNetwork::list_contended(std::uint32_t resource, const User& user) {
  Flow& f = flows_[user.flow];
  f.places[user.need].contended = static_cast<std::uint32_t>(f.contended.size());
  f.contended.push_back({resource, user.need, user.ps_per_byte});
}

// Returns the rate of the flow if its resources gave all of their users the same.
double FlowNetwork::equal_share(const Flow& f) const {
  double rate = f.cap;
  for (const Need& need : f.needs) {
    const Resource& r = resources_[need.resource];
    rate = std::min(rate, r.time / r.need);
  }
  return rate;
}

void FlowNetwork::set_ceiling(Id id, double ceiling) {
  Flow& f = flows_[id];
  ceiling = std::min(ceiling, f.cap);
  const double more = ceiling - std::exchange(f.ceiling, ceiling);
  for (const auto& [resource, ps_per_byte] : f.needs) {
    resources_[resource].ceilings += more * ps_per_byte;
    update_contention(resource);
  }
}

void FlowNetwork::give(std::uint32_t resource, double share) {
  GHOSTRANK_ASSERT(share >= 0 && share <= 1);
  Resource& r = resources_[resource];
  if (r.time == share) return;
  r.time = share;
  for (const User& u : r.users) has_come(u.flow);  // to be chosen again
  update_contention(resource);
}

// Lists the resource at its users while they can take more time than it gives, and only then.
void FlowNetwork::update_contention(std::uint32_t resource) {
  Resource& r = resources_[resource];
  const bool contended = r.ceilings > kContended * r.time;
  if (contended == r.contended) return;
  r.contended = contended;
  if (contended) {  // finds what is not kept up to date while it holds nobody back
    double used = 0;
    r.above = 0;
    r.held = 0;
    for (const User& u : r.users) {
      list_contended(resource, u);
      const State& state = states_[u.flow];
      r.held += state.bottleneck == resource;
      r.above = std::max(r.above, state.rate);
      used += state.rate * u.ps_per_byte;
    }
    if (resource < first_watched_) r.used = used;
    return;
  }
  for (const User& u : r.users) {
    Flow& f = flows_[u.flow];
    const std::uint32_t at = f.places[u.need].contended;
    f.contended[at] = f.contended.back();
    f.places[f.contended[at].need].contended = at;
    f.contended.pop_back();
  }
  if (r.held > 0) has_time(resource);  // full, but for rounding
}

void FlowNetwork::has_time(std::uint32_t resource) {
  if (!std::exchange(resources_[resource].freed, true)) freed_.push_back(resource);
}

void FlowNetwork::remove(Id id) {
  Flow& f = flows_[id];
  GHOSTRANK_ASSERT(f.in_use);
  const Picoseconds at = rate(id) > 0 ? end(id) : f.since;
  note_held(id, at);
  f.in_use = false;
  fetch(f, 0, kAhead);
  for (std::uint32_t need = 0; need < f.needs.size(); ++need) {
    if (need % kAhead == 0) fetch(f, need + kAhead, kAhead);
    leave(id, need, at);
  }
  f.contended.clear();
  if (std::exchange(f.has_come, false)) std::erase(come_, id);
  free_.push_back(id);
}

void FlowNetwork::leave(Id id, std::uint32_t need, Picoseconds at) {
  const Flow& f = flows_[id];
  const auto [resource, ps_per_byte] = f.needs[need];
  Resource& r = resources_[resource];
  const std::uint32_t place = f.places[need].user;
  const User last = r.users.back();
  r.users[place] = last;
  flows_[last.flow].places[last.need].user = place;
  r.users.pop_back();
  if (r.contended || resource >= first_watched_) use(resource, -rate(id) * ps_per_byte, at);
  if (r.users.empty()) {
    r.ceilings = r.need = r.used = 0;
  } else {
    r.ceilings -= f.ceiling * ps_per_byte;
    r.need -= ps_per_byte;
  }
  if (r.contended) {
    r.held -= bottleneck(id) == resource;
    if (r.held > 0) has_time(resource);  // only those that it holds back can become faster
  }
  update_contention(resource);
}

Picoseconds FlowNetwork::end(Id id) const {
  const Flow& f = flows_[id];
  if (rate(id) == 0) return f.left > 0 ? kNever : f.since;
  return f.since + static_cast<Picoseconds>(
                       std::min(std::ceil(f.left / rate(id)), static_cast<double>(kTooLong)));
}

// The users take `more` of the resource's time from `now` on.
void FlowNetwork::use(std::uint32_t resource, double more, Picoseconds now) {
  Resource& r = resources_[resource];
  if (resource >= first_watched_ && r.noted < now) {
    if (r.used > 0) times_->add(resource - first_watched_, r.noted, now, r.used);
    r.noted = now;
  }
  r.used += more;
}

// The flow has had its rate and its bottleneck since f.held_since.
void FlowNetwork::note_held(Id id, Picoseconds until) {
  Flow& f = flows_[id];
  if (const std::uint32_t by = bottleneck(id); by != kOwnCap)
    held_back_[by] += static_cast<double>(until - f.held_since) * (1 - rate(id) / f.cap);
  f.held_since = until;
}

std::span<const FlowNetwork::Id> FlowNetwork::settle(Picoseconds now) {
  altered_.clear();
  wanted_.clear();
  still_wanted_ = 0;
  for (const Id id : come_) {
    flows_[id].has_come = false;
    want(id);
  }
  for (const std::uint32_t resource : freed_) {
    resources_[resource].freed = false;
    for (const User& u : resources_[resource].users)
      if (bottleneck(u.flow) == resource) want(u.flow);
  }
  come_.clear();
  freed_.clear();
  // Flows that come at one time may be so many that the first ones are no longer in the cache.
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (i + kFlowsAhead < wanted_.size()) {
      fetch_flow(wanted_[i + kFlowsAhead]);
      fetch_lists(wanted_[i + kListsAhead]);
      fetch_contended(wanted_[i + kResourcesAhead]);
    }
    const Id id = wanted_[i];
    if (!states_[id].is_wanted) continue;  // settled with one before it
    choose(id);
    settle_part(now);
  }
  for (const Id id : altered_) flows_[id].altered = false;
  std::sort(altered_.begin(), altered_.end());  // so that the order of discovery does not matter
  return altered_;
}

void FlowNetwork::want(Id id) {
  if (std::exchange(states_[id].is_wanted, true)) return;
  wanted_.push_back(id);
  ++still_wanted_;
}

// Gives the flows of A, and all that feel it, their fair rates.
void FlowNetwork::settle_part(Picoseconds now) {
  do {
    choose_the_wanted();
    fill();
  } while (raise_ceilings() || choose_the_unfairly_treated());
  for (const Slot& s : slots_) {
    Resource& r = resources_[s.number];
    r.held = s.outside_held + s.here;
    r.above = s.here > 0 ? s.level : std::max(r.above, s.fastest);
  }
  for (const Member& m : members_) alter(m, now);
  for (const Member& m : members_)
    if (m.fair > 0 && m.fair * kMuchRoom < flows_[m.flow].ceiling &&
        flows_[m.flow].needs.size() > kFew)
      set_ceiling(m.flow, kRoom * m.fair);
  forget_members();
}

void FlowNetwork::forget_members() {
  members_.clear();
  edges_.clear();
  slots_.clear();
  looked_at_ = 0;
}

// Raises the ceilings of members that are to be faster than theirs, so that more resources are
// contended, and chooses all members anew. Returns whether there are any.
bool FlowNetwork::raise_ceilings() {
  const auto is_above = [this](const Member& m) { return m.fair > flows_[m.flow].ceiling; };
  if (std::none_of(members_.begin(), members_.end(), is_above)) return false;
  for (const Member& m : members_) states_[m.flow].rate = m.before;
  again_.clear();
  for (const Member& m : members_) {
    if (is_above(m)) set_ceiling(m.flow, kRoom * m.fair);
    again_.push_back(m.flow);
  }
  forget_members();
  for (const Id id : again_) choose(id);
  return true;
}

void FlowNetwork::choose(Id id) {
  Flow& f = flows_[id];
  State& state = states_[id];
  const double before = std::exchange(state.rate, kInA);
  still_wanted_ -= std::exchange(state.is_wanted, false);
  const std::size_t needs = f.contended.size();
  edges_.reserve(needs);
  slots_.reserve(needs);
  members_.reserve(1);
  const std::uint32_t member = members_.size(), first = edges_.size();
  for (std::size_t i = 0; i < needs; ++i) {
    if (i + kAhead < needs) __builtin_prefetch(&resources_[f.contended[i + kAhead].resource]);
    const Contended& n = f.contended[i];
    const std::uint32_t slot = slot_of(n.resource);
    Slot& s = slots_[slot];
    ++s.members;
    --s.outside;
    s.outside_use -= before * n.ps_per_byte;
    s.outside_need -= n.ps_per_byte;
    s.outside_held -= state.bottleneck == n.resource;
    const std::uint32_t number = edges_.size();
    edges_.add() = {slot, member, std::exchange(s.edges, number), n.ps_per_byte};
  }
  members_.add() = {id, kOwnCap, before, f.cap, kUnfixed, first, edges_.size()};
}

// There is room for another slot.
inline std::uint32_t FlowNetwork::slot_of(std::uint32_t resource) {
  Resource& r = resources_[resource];
  if (r.slot < slots_.size() && slots_[r.slot].number == resource) return r.slot;
  r.slot = slots_.size();
  Slot& s = slots_.add();
  s.number = resource;
  s.edges = kNoEdge;
  s.time = r.time;
  s.need = r.need;
  s.members = 0;
  s.outside_use = r.used;
  s.outside_need = r.need;
  s.outside = r.users.size();
  s.outside_held = r.held;
  return r.slot;
}

// Adds to A the wanted flows that share a resource with it, which would be unfairly treated.
void FlowNetwork::choose_the_wanted() {
  for (; looked_at_ < slots_.size() && still_wanted_ > 0; ++looked_at_)
    for (const User& u : resources_[slots_[looked_at_].number].users)
      if (states_[u.flow].is_wanted) choose(u.flow);
}

// Gives a member the fair rate that was computed.
void FlowNetwork::alter(const Member& m, Picoseconds now) {
  Flow& f = flows_[m.flow];
  State& state = states_[m.flow];
  state.rate = m.before;
  if (m.fair != m.before || m.bottleneck != state.bottleneck) note_held(m.flow, now);
  state.bottleneck = m.bottleneck;
  if (std::abs(m.fair - m.before) <= kSame * m.before) return;
  const double more = m.fair - m.before;
  for (const Contended& n : f.contended)
    if (n.resource < first_watched_) resources_[n.resource].used += more * n.ps_per_byte;
  for (std::size_t n = f.needs.size(); n-- > 0 && f.needs[n].resource >= first_watched_;)
    use(f.needs[n].resource, more * f.needs[n].ps_per_byte, now);
  f.left = std::max(0.0, f.left - m.before * static_cast<double>(now - f.since));
  f.since = now;
  state.rate = m.fair;
  if (!std::exchange(f.altered, true)) altered_.push_back(m.flow);
}

// Raises the rates of A together, and fixes those whose cap or whose first full resource is
// reached. At a resource the others count as flows that have their rates as caps: where A needs
// their time, they get no more than A.
//
// `levels_` has a lower bound of each resource's level. Most are never looked at more closely,
// because other resources hold back all of A that uses them.
void FlowNetwork::fill() {
  solved_ += members_.size();
  edges_filled_ += edges_.size();
  levels_.begin(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& s = slots_[i];
    if (s.outside == 0) s.outside_use = s.outside_need = 0;
    s.free = s.time;
    s.load = s.need - s.outside_need;
    s.unfixed = s.members;
    s.here = 0;
    s.level = s.fastest = 0;
    levels_.put(i, bound(s));
  }
  levels_.build();
  double least = kNoRate, most = 0;  // of the caps
  by_cap_.resize(members_.size());
  for (std::uint32_t member = 0; member < members_.size(); ++member) {
    Member& m = members_[member];
    m.fair = kUnfixed;
    by_cap_[member] = member;
    least = std::min(least, m.cap);
    most = std::max(most, m.cap);
  }
  if (least < most)
    std::sort(by_cap_.begin(), by_cap_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return members_[a].cap != members_[b].cap ? members_[a].cap < members_[b].cap : a < b;
    });
  auto next = by_cap_.begin();
  for (std::size_t left = members_.size(); left > 0;) {
    while (members_[*next].fair != kUnfixed) ++next;
    Member& slowest = members_[*next];
    const double lowest = levels_.level();
    if (slowest.cap <= lowest) {
      fix(slowest, slowest.cap, kOwnCap);
      --left;
      continue;
    }
    const std::size_t i = levels_.number();
    Slot& s = slots_[i];
    if (s.unfixed == 0) {
      levels_.change(i, LowestLevel::kNone);
      continue;
    }
    double level = std::max(lowest, bound(s));
    if (level * (1 - kSame) <= lowest && s.outside > 0) level = raise(s, level);
    if (level * (1 - kSame) > lowest) {
      levels_.change(i, level);
      continue;
    }
    levels_.change(i, LowestLevel::kNone);
    s.level = level;
    for (std::uint32_t e = s.edges; s.unfixed > 0; e = edges_[e].next) {
      Member& m = members_[edges_[e].member];
      if (m.fair != kUnfixed) continue;
      fix(m, std::min(level, m.cap), s.number);
      ++s.here;
      --left;
    }
  }
}

// Returns a lower bound of the rate of unfixed members at which the resource is full: the higher of
// that rate if the users outside A have it too, and if they keep theirs.
double FlowNetwork::bound(const Slot& s) {
  if (s.time == 0) return 0;  // sums of shares leave rests
  const double equal = s.free / (s.load + s.outside_need);
  return std::max(0.0, std::max(equal, (s.free - s.outside_use) / s.load));
}

// Returns the rate, at least `level`, at which the resource is full: fixed members and slower users
// outside A keep their rates, and all others have the returned one.
double FlowNetwork::raise(const Slot& s, double level) const {
  const auto& users = resources_[s.number].users;
  for (;;) {
    double free = s.free, load = s.load, next = kNoRate;  // next: the lowest rate above `level`
    for (const User& u : users) {
      const double rate = states_[u.flow].rate;
      const bool faster = rate > level;
      free -= faster ? 0 : std::max(rate, 0.0) * u.ps_per_byte;
      load += faster ? u.ps_per_byte : 0;
      next = std::min(next, faster ? rate : kNoRate);
    }
    if (load <= 0) return kNoRate;
    level = std::max(level, free / load);
    if (level < next) return level;
  }
}

void FlowNetwork::fix(Member& m, double rate, std::uint32_t bottleneck) {
  m.fair = rate;
  m.bottleneck = bottleneck;
  for (std::uint32_t e = m.first; e < m.last; ++e) {
    Slot& s = slots_[edges_[e].slot];
    s.free -= rate * edges_[e].ps_per_byte;
    s.load -= edges_[e].ps_per_byte;
    s.fastest = rate;
    --s.unfixed;
  }
}

// Chooses flows outside A whose rates are not fair beside those of A: faster than a flow of A on
// the full resource that holds that one back; faster than an overfull resource allows; slower than
// the fastest on their own bottleneck; or held back by a resource that has time left. If there are
// any, chooses those that will not be fair beside these, too, and returns true.
bool FlowNetwork::choose_the_unfairly_treated() {
  const std::size_t before = members_.size(), slots = slots_.size();
  for (std::size_t i = 0; i < slots; ++i) {
    const Slot& s = slots_[i];
    const std::uint32_t number = s.number;
    Resource& r = resources_[number];
    if (s.outside == 0) {
      r.above = s.fastest;
      continue;
    }
    const double left = s.free - s.outside_use;
    const bool full = left <= (1 - kFull) * s.time, overfull = left < (1 - kContended) * s.time;
    const bool freed = s.outside_held > 0 && (!full || less(r.above, s.fastest));
    const bool greedy = s.here > 0 && less(s.level, r.above);
    if (!overfull && !freed && !greedy) continue;
    const double most = overfull ? raise(s, 0) : kNoRate, held = greedy ? s.level : kNoRate;
    const double fastest = std::max(r.above, s.fastest);
    double above = 0;
    for (const User& u : r.users) {
      const auto [rate, bottleneck, is_wanted] = states_[u.flow];
      if (rate == kInA) continue;
      if (rate > most || less(held, rate) ||
          (freed && bottleneck == number && (!full || less(rate, fastest))))
        choose(u.flow);  // slots_ may move
      else
        above = std::max(above, rate);
    }
    r.above = above;
  }
  if (members_.size() == before) return false;
  choose_the_held_back();
  return true;
}

// Chooses all flows that are held back by a resource of A, and by those of these flows.
void FlowNetwork::choose_the_held_back() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].outside_held == 0) continue;
    const std::uint32_t number = slots_[i].number;
    for (const User& u : resources_[number].users)
      if (bottleneck(u.flow) == number && rate(u.flow) != kInA) choose(u.flow);
  }
}

}  // namespace ghostrank
