// The servers of a scheme with keys; see keyed.h. Each core of the machine has a queue of pushes,
// and sums one at a time; a timer of the core's number ends its work. A core completes the sums of
// a key in the order of the calls, because every root pushes a key in that order.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "collectives/schemes/keyed.h"
#include "collectives/schemes/nesterov.h"
#include "collectives/schemes/numbers.h"

namespace ghostrank {
namespace {

class Server final : public Agent {
 public:
  Server(const KeyedEnds& ends, int helper) : ends_(ends), self_(helper), cores_(ends.cores()) {
    for (std::size_t n = 0; n < ends.nodes().size(); ++n)
      if (ends.rack_of_node(n) == ends.rack_of_helper(helper))
        roots_.push_back(ends.nodes()[n].front());
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    const std::uint64_t name = std::uint64_t{note.call} << 32 | note.index;
    Round& round = rounds_[name];
    const auto tag = static_cast<KeyTag>(note.tag);
    if (tag == KeyTag::push) {
      if (ends_.rules().answer == Answer::at_once) reply(io, from, KeyTag::pushed, note.call, note);
      take(io, name, note, round);
    } else if (tag == KeyTag::result) {
      pass_on(io, note, round);
    } else if (round.is_summed) {
      answer(io, from, name, round);
    } else {
      round.waiting.push_back(from);
    }
    if (round.answered == pushers(note.index)) rounds_.erase(name);
  }

  void on_timer(Io& io, std::uint32_t core) override {
    const std::uint64_t name = cores_[core].at_work->name;
    cores_[core].at_work.reset();
    Round& round = rounds_.at(name);
    const std::size_t all = pushers(key_in(name));
    if (++round.summed == all) publish(io, name, round);
    if (round.answered == all) rounds_.erase(name);
    start(io, core);
  }

  void on_room(Io& io) override { outbox_.on_room(io); }

 private:
  // One sum of one key.
  struct Round {
    Sum sum;
    std::size_t pushes = 0, summed = 0, answered = 0;
    bool is_summed = false;
    Note like{};                      // type and elements of the key
    std::vector<std::byte> weights;   // that answer in place of the sum; else empty
    std::vector<GroupParty> waiting;  // roots whose pulls came before the sum was complete
  };
  struct Push {
    std::uint64_t name = 0, bytes = 0;
    Work work = Work::add;
    bool steps = false;  // the weights, because it is the last push of its round
  };
  struct Core {
    std::uint64_t bytes = 0;  // of the keys that it sums
    std::deque<Push> queue;
    std::optional<Push> at_work;
  };
  struct Key {
    std::uint32_t core = 0;
    std::uint64_t pushes = 0;
    std::vector<float> weights, moments;  // if they are stepped and ranks hold real data
  };

  // The helper that owns the key: this one, unless it is the box of a rack for another.
  int owner_of(std::uint32_t key) const { return ends_.racks() > 1 ? ends_.owner_of(key) : self_; }
  bool owns(std::uint32_t key) const { return owner_of(key) == self_; }
  // Parties that push a key to this server: its roots, and to an owner the boxes of other racks.
  std::size_t pushers(std::uint32_t key) const {
    return roots_.size() + (owns(key) ? static_cast<std::size_t>(ends_.racks()) - 1 : 0);
  }

  // The data are summed as they come; the cores decide when.
  void take(Io& io, std::uint64_t name, const Note& note, Round& round) {
    const std::uint64_t bytes = note.elements * bytes_of(note.type);
    const bool steps = steps_weights(note.index, note.type);
    Key& key = key_of(io, note.index, bytes, steps);
    round.sum.add(note);
    round.like = {.type = note.type, .elements = note.elements};
    const bool first = round.pushes++ == 0;
    ++key.pushes;
    Core& core = cores_[key.core];
    const bool last = round.pushes == pushers(note.index);
    core.queue.push_back({name, bytes, first ? Work::copy : Work::add, last && steps});
    if (!core.at_work) start(io, key.core);
  }

  // Lets a core sum the next push of its queue.
  void start(Io& io, std::uint32_t number) {
    Core& core = cores_[number];
    if (core.queue.empty()) return;
    auto next = core.queue.begin();
    if (ends_.rules().schedules)
      next =
          std::min_element(core.queue.begin(), core.queue.end(),
                           [&](const Push& a, const Push& b) { return urgency(a) < urgency(b); });
    core.at_work = *next;
    core.queue.erase(next);
    io.run_on(static_cast<int>(number));
    io.work(core.at_work->work, core.at_work->bytes);
    if (core.at_work->steps) io.work(Work::optimise, core.at_work->bytes);
    io.arm(number, 0);
  }

  // BytePS's schedule: the key with the fewest pushes so far first, then the lowest key.
  std::pair<std::uint64_t, std::uint32_t> urgency(const Push& push) const {
    const auto key = static_cast<std::uint32_t>(push.name);
    return {keys_.at(key).pushes, key};
  }

  bool steps_weights(std::uint32_t key, DataType type) const {
    return owns(key) && ends_.steps_weights(key / kMostParts, type);
  }

  void step_weights(Key& key, Round& round) {
    const std::vector<float> gradients = floats_of(round.like.type, round.sum.content());
    const std::size_t n = gradients.size();
    if (key.weights.size() < n) {
      key.weights.resize(n);
      key.moments.resize(n);
    }
    const std::span<float> weights = std::span(key.weights).first(n);
    Nesterov{}.step(weights, std::span(key.moments).first(n), gradients);
    round.weights = bytes_of_floats(round.like.type, weights);
  }

  void publish(Io& io, std::uint64_t name, Round& round) {
    round.is_summed = true;
    const std::uint32_t key = key_in(name);
    const int owner = owner_of(key);
    if (owner != self_) return send(io, ends_.size() + owner, KeyTag::push, name, round);
    if (steps_weights(key, round.like.type)) step_weights(keys_.at(key), round);
    for (const GroupParty root : roots_) {
      if (ends_.rules().answer == Answer::when_summed)
        reply(io, root, KeyTag::pushed, call_of(name), {.index = key});
      if (ends_.rules().answer == Answer::result) answer(io, root, name, round);
    }
    for (int rack = 0; rack < ends_.racks(); ++rack)
      if (const int box = ends_.helper_in(rack, owner); box != self_)
        answer(io, ends_.size() + box, name, round);
    for (const GroupParty root : round.waiting) answer(io, root, name, round);
    round.waiting.clear();
  }

  static std::uint32_t call_of(std::uint64_t name) {
    return static_cast<std::uint32_t>(name >> 32);
  }
  static std::uint32_t key_in(std::uint64_t name) { return static_cast<std::uint32_t>(name); }

  void answer(Io& io, GroupParty to, std::uint64_t name, Round& round) {
    send(io, to, KeyTag::result, name, round);
    ++round.answered;
  }

  void send(Io& io, GroupParty to, KeyTag tag, std::uint64_t name, const Round& round) {
    Note note = round.like;
    note.index = key_in(name);
    note.content = round.weights.empty() ? round.sum.content() : round.weights;
    reply(io, to, tag, call_of(name), note, round.like.elements);
  }

  // The owner's result, for the roots of this rack.
  void pass_on(Io& io, const Note& result, Round& round) {
    for (const GroupParty root : roots_)
      reply(io, root, KeyTag::result, result.call, result, result.elements);
    round.answered = roots_.size();
  }

  void reply(Io& io, GroupParty root, KeyTag tag, std::uint32_t call, const Note& about,
             std::uint64_t elements = 0) {
    Note note{.tag = static_cast<std::uint8_t>(tag), .call = call, .index = about.index};
    note.type = about.type;
    note.elements = elements;
    if (elements > 0) note.content = about.content;
    outbox_.send(io, root, note);
  }

  // A key stays on one core: where the scheme wants it, or on the one with the fewest bytes so far.
  Key& key_of(Io& io, std::uint32_t name, std::uint64_t bytes, bool steps) {
    const auto [known, fresh] = keys_.try_emplace(name);
    if (!fresh) return known->second;
    const std::uint64_t weights = steps ? 2 * bytes : 0;  // and their momentum
    io.hold(ends_.bytes_held(bytes, pushers(name)) + weights);
    const int wanted = ends_.core_of(name);
    const auto least =
        std::min_element(cores_.begin(), cores_.end(),
                         [](const Core& a, const Core& b) { return a.bytes < b.bytes; });
    known->second.core = static_cast<std::uint32_t>(wanted >= 0 ? wanted : least - cores_.begin());
    cores_[known->second.core].bytes += bytes;
    return known->second;
  }

  const KeyedEnds& ends_;
  const int self_;                 // the number of this helper
  std::vector<GroupParty> roots_;  // of the nodes that it serves
  std::vector<Core> cores_;
  std::unordered_map<std::uint32_t, Key> keys_;
  std::unordered_map<std::uint64_t, Round> rounds_;  // by call and key
  KeyOutbox outbox_;
};

}  // namespace

std::unique_ptr<Agent> key_server(const KeyedEnds& ends, int helper) {
  return std::make_unique<Server>(ends, helper);
}

}  // namespace ghostrank
