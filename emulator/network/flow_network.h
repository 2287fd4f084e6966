// Max-min fair sharing of a network by flows. A resource (a NIC's egress or ingress, a link) has
// time to give: 1 per unit of time, less while it is slower than flows count on, or none. A flow
// has a rate x, in bytes per picosecond of its busiest connection, and takes x * need of the time
// of each resource that it uses. So one flow may stand for all edges of a ring, which share one
// rate: `need` is then the sum over the edges that cross the resource.
//
// Fair: no flow can have more without taking from one that has no more. Every flow is held back by
// its own cap or by one resource, its bottleneck, which is full and on which none is faster.
//
//   settle()   for each flow that has come, or whose bottleneck has become free:
//              A = the flow, and others of these that it meets
//              repeat: fill A progressively beside all others, whose rates stay
//                      add to A the flows that are then unfairly fast or slow, and those that are
//                      held back by a resource of A, because its time is shared anew
//
// So a flow that comes or goes costs as much as the part of the network that feels it, and flows
// that come at one time to different parts cost no more than if they had come one by one. A
// resource that its users cannot fill, each at its ceiling, holds nobody back; only the others,
// which are contended, are looked at. A flow's ceiling is its cap. But one with many needs would
// crowd each part that it is in, though most hold it back nowhere, so its ceiling is some times its
// rate. If its fair rate turns out to be above that, it gets a higher one, and A is filled again.
//
// Units: picoseconds, bytes. Errors: none. Threading: one owner.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "emulator/common/few.h"
#include "emulator/network/link_times.h"
#include "emulator/network/lowest_level.h"
#include "profiles/units.h"

namespace ghostrank {

class FlowNetwork {
 public:
  using Id = std::uint32_t;
  static constexpr std::uint32_t kOwnCap = 0xffffffff;  // a flow's bottleneck: its cap

  // The time of a resource that a flow needs for each byte.
  struct Need {
    std::uint32_t resource = 0;
    double ps_per_byte = 0;
  };

  explicit FlowNetwork(std::size_t resources);

  // A flow of `bytes` comes at `now`, never faster than `cap` bytes per picosecond. `needs` lists a
  // resource once, in ascending order; it must stay in place until the flow is removed. Its rate is
  // 0 until settle().
  Id add(std::span<const Need> needs, double bytes, double cap, Picoseconds now);
  // A flow leaves.
  void remove(Id id);
  // The resource gives `share` of its time, at most 1, from the next settle() on. 0: flows that use
  // it stand still.
  void give(std::uint32_t resource, double share);
  bool changed() const { return !come_.empty() || !freed_.empty(); }

  void clear();  // removes all flows; resources give all of their time

  // Notes in `times` from now on when resources are busy: resource `first` is its link 0. Null:
  // nowhere.
  void watch(LinkTimes* times, std::uint32_t first) {
    times_ = times;
    first_watched_ = times ? first : 0xffffffff;
  }

  // Gives every flow its fair rate from `now` on. Returns the flows whose rates have changed, valid
  // until the next call.
  std::span<const Id> settle(Picoseconds now);

  // When the flow's last byte passes, at its present rate; rounded up. kNever: it stands still.
  static constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
  Picoseconds end(Id id) const;
  double rate(Id id) const { return states_[id].rate; }
  std::uint32_t bottleneck(Id id) const { return states_[id].bottleneck; }
  // Total time by which flows took longer so far than at their caps, because this resource held
  // them back. Summed over resources it is exactly the cost of sharing.
  Picoseconds held_back(std::uint32_t resource) const { return std::llround(held_back_[resource]); }
  std::size_t flows() const { return flows_.size() - free_.size(); }
  std::uint64_t solved() const { return solved_; }  // rates computed so far
  // Resources looked at for them: counted once for each flow that uses them, at every filling.
  std::uint64_t looked_at() const { return edges_filled_; }

  // Prefetches what add() touches of the resources that a flow needs, unless they are many.
  [[gnu::always_inline]] void fetch_needed(std::span<const Need> needs) const {
    if (needs.size() > kAhead) return;
    for (const Need& need : needs) fetch(resources_[need.resource]);
  }
  // Prefetch what remove() touches: call fetch_flow() well before fetch_lists(), and that well
  // before fetch_resources(). Force-inlined: out of line, GCC drops these calls because they have
  // no side effects.
  [[gnu::always_inline]] void fetch_flow(Id id) const {
    __builtin_prefetch(&flows_[id]);
    __builtin_prefetch(&flows_[id].left);
    __builtin_prefetch(&states_[id]);
  }
  [[gnu::always_inline]] void fetch_lists(Id id) const {
    const Flow& f = flows_[id];
    __builtin_prefetch(f.needs.data());
    __builtin_prefetch(f.places.data());
    __builtin_prefetch(f.contended.data());
  }
  [[gnu::always_inline]] void fetch_resources(Id id) const {
    if (flows_[id].in_use) fetch(flows_[id], 0, kAhead);
  }

 private:
  // Where a flow is listed for one of its needs, so that it is found at once: flows may have
  // thousands of needs, and resources hundreds of users.
  struct Place {
    std::uint32_t user = 0;       // in Resource::users
    std::uint32_t contended = 0;  // in Flow::contended, while the resource is
  };
  struct Contended {
    std::uint32_t resource, need;  // its number among the flow's
    double ps_per_byte;
  };
  struct alignas(64) Flow {
    std::span<const Need> needs;
    std::vector<Place> places;         // by need
    std::vector<Contended> contended;  // those of `needs` at such resources, in any order
    double left = 0, cap = 0;
    double ceiling = 0;  // the rate is no higher; at most `cap`
    Picoseconds since = 0;
    Picoseconds held_since = 0;  // since when it has its bottleneck
    bool in_use = false;
    bool has_come = false;  // is in come_
    bool altered = false;   // its rate has changed in this settle()
  };
  // Of a flow, apart from it, because those of all users of a resource are asked for.
  struct State {
    double rate = 0;  // kInA: it is a member of A
    std::uint32_t bottleneck = kOwnCap;
    bool is_wanted = false;  // to be settled
  };
  struct User {
    Id flow;
    std::uint32_t need;  // its number among the flow's
    double ps_per_byte;
  };
  // Two cache lines. Those that come and go touch both, settle() mostly the first.
  struct alignas(64) Resource {
    double time = 1;         // that it gives per unit of time
    double need = 0;         // of all users, for a byte of each
    double used = 0;         // by all users; of a NIC only while it is contended
    double above = 0;        // no user is faster; unknown unless it is contended
    double ceilings = 0;     // time that the users take, each at its ceiling
    std::uint32_t held = 0;  // users whose bottleneck it is; unknown unless it is contended
    std::uint32_t slot = 0;  // in slots_, if that one is of this resource
    Few<User, 3> users;      // most have no more
    Picoseconds noted = 0;   // until when `times_` knows its use
    bool contended = false;
    bool freed = false;  // is in freed_
  };
  static_assert(sizeof(Resource) == 128);

  // A, the flows that get new rates, with the contended resources that they use: small beside the
  // network and in one place, because it is filled several times.
  struct Member {
    Id flow;
    std::uint32_t bottleneck;
    double before, cap;
    double fair;                // kUnfixed until it is computed
    std::uint32_t first, last;  // of its edges
  };
  struct Edge {
    std::uint32_t slot, member;
    std::uint32_t next;  // of the slot; kNoEdge: none
    double ps_per_byte;
  };
  struct Slot {
    std::uint32_t number, edges;  // of its resource; the first of its edges
    // While A is filled. free: time that no fixed member takes; load: time that the unfixed members
    // need for a byte of each.
    double free, load;
    double level, fastest;                 // of members that it holds back; of all
    std::uint32_t unfixed, here, members;  // of these: not fixed, held back, all
    // Users outside A: what they take and need, and how many of them it holds back.
    std::uint32_t outside, outside_held;
    double outside_use, outside_need;
    double time, need;  // as of the resource
  };

  // A list that is filled again and again: it keeps its memory, and new values are old ones.
  template <typename Value>
  class List {
   public:
    // Makes room for `more` values, which may move all.
    void reserve(std::size_t more) {
      if (size_ + more > values_.size()) values_.resize(2 * (size_ + more));
    }
    Value& add() { return values_[size_++]; }  // there is room
    void clear() { size_ = 0; }
    std::uint32_t size() const { return size_; }
    Value& operator[](std::size_t i) { return values_[i]; }
    const Value& operator[](std::size_t i) const { return values_[i]; }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.begin() + size_; }

   private:
    std::vector<Value> values_;
    std::uint32_t size_ = 0;
  };

  static constexpr std::size_t kAhead = 8;  // how many resources are fetched together

  [[gnu::always_inline]] static void fetch(const Resource& r) {
    __builtin_prefetch(&r);
    __builtin_prefetch(&r.noted);
  }
  // Fetches the resources of some needs together: in a large network none is in the cache.
  [[gnu::always_inline]] void fetch(const Flow& f, std::size_t first, std::size_t most) const {
    if (first >= f.needs.size()) return;
    const auto needs = f.needs.subspan(first, std::min(f.needs.size() - first, most));
    for (const Need& need : needs) fetch(resources_[need.resource]);
    for (const Need& need : needs) {
      const auto& users = resources_[need.resource].users;
      if (!users.in_place()) __builtin_prefetch(&users.back());
    }
  }
  [[gnu::always_inline]] void fetch_contended(Id id) const {
    const std::vector<Contended>& contended = flows_[id].contended;
    for (std::size_t i = 0; i < std::min(contended.size(), kAhead); ++i)
      __builtin_prefetch(&resources_[contended[i].resource]);
  }
  void has_come(Id id);
  void come(Id id, std::uint32_t need);
  void leave(Id id, std::uint32_t need, Picoseconds at);
  void list_contended(std::uint32_t resource, const User& user);
  void update_contention(std::uint32_t resource);
  void has_time(std::uint32_t resource);
  double equal_share(const Flow& f) const;
  void set_ceiling(Id id, double ceiling);
  void want(Id id);
  void settle_part(Picoseconds now);
  void forget_members();
  bool raise_ceilings();
  void choose(Id id);
  std::uint32_t slot_of(std::uint32_t resource);
  void choose_the_wanted();
  void fill();
  void fix(Member& m, double rate, std::uint32_t bottleneck);
  bool choose_the_unfairly_treated();
  void choose_the_held_back();
  void alter(const Member& m, Picoseconds now);
  void use(std::uint32_t resource, double more, Picoseconds now);
  void note_held(Id id, Picoseconds until);
  static double bound(const Slot& s);
  double raise(const Slot& s, double level) const;

  std::vector<Flow> flows_;
  std::vector<State> states_;  // by flow
  std::vector<Id> free_;
  std::vector<Resource> resources_;
  std::vector<double> held_back_;  // by resource
  std::vector<Id> come_;
  std::vector<std::uint32_t> freed_;  // resources of flows that left
  std::vector<Id> wanted_, altered_, again_;
  std::size_t still_wanted_ = 0;  // of wanted_
  List<Member> members_;
  List<Edge> edges_;
  List<Slot> slots_;
  std::size_t looked_at_ = 0;  // of slots_, by choose_the_wanted()
  LowestLevel levels_;         // of slots_
  std::vector<std::uint32_t> by_cap_;
  std::uint64_t solved_ = 0, edges_filled_ = 0;
  LinkTimes* times_ = nullptr;
  std::uint32_t first_watched_ = 0xffffffff;
};

}  // namespace ghostrank
