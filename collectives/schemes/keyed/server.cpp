// The servers of a scheme with keys; see keyed.h. Each core of the machine sums one push at a time,
// and completes the sums of a key in the order of the calls, because every root pushes a key in
// that order.
//
// A core that takes pushes as they come needs an event only where a sum is complete: a timer above
// the numbers of the cores. Where it chooses (KeyRules::schedules), or every push counts by itself
// (asynchronous), it has a queue, and a timer of its own number ends its work on each push.
//
// With KeyRules::racks the machines of the servers are boxes, each in a rack with an equal share of
// the nodes. A root exchanges a key with the box of its rack, and the box with the key's owner:
//
//   root  |  push >                     result
//   box   |        + of its rack > push                   > result to its roots
//   owner |                            + of every rack > result to its roots and every other box
#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "collectives/schemes/keyed/keyed.h"
#include "collectives/schemes/keyed/nesterov.h"
#include "collectives/schemes/shared/numbers.h"

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
    const auto tag = static_cast<KeyTag>(note.tag);
    if (tag == KeyTag::probe) return reply(io, from, KeyTag::alive, note.call, note);
    const std::uint64_t name = std::uint64_t{note.call} << 32 | note.index;
    Round& round = round_of(name);
    if (tag == KeyTag::push) {
      if (ends_.rules().answer == Answer::at_once) reply(io, from, KeyTag::pushed, note.call, note);
      if (!note.words.empty()) inherit(io, note);
      take(io, from, name, note, round);
    } else if (tag == KeyTag::result) {
      from < ends_.size() ? take_result(io, name, note, round) : pass_on(io, note, round);
    } else if (round.is_summed || std::ranges::count(round.stored, from) > 0) {
      answer(io, from, name, round);
    } else {
      round.waiting.push_back(from);
    }
    if (round.answered == pushers(note.index)) close(name);
  }

  // Elastic: a result that a root gave may have ended a round before its sum is complete.
  void on_timer(Io& io, std::uint32_t timer) override {
    if (timer >= cores_.size()) return complete(io, timer - cores_.size());
    const Push done = *cores_[timer].at_work;
    cores_[timer].at_work.reset();
    if (const auto round = rounds_.find(done.name); round != rounds_.end())
      add(io, done, round->second);
    start(io, timer);
  }

  void on_room(Io& io) override { outbox_.on_room(io); }

 private:
  struct Key;
  // One sum of one key.
  struct Round {
    Key* key = nullptr;  // set by the first push
    Sum sum;
    std::size_t pushes = 0, summed = 0, answered = 0;
    std::uint64_t number = 0;  // among the rounds of the key, from 0
    bool is_summed = false;
    Note like{};                      // type and elements of its notes
    std::vector<std::byte> answer;    // in place of the sum; else empty
    std::vector<GroupParty> waiting;  // roots whose pulls came before the sum was complete
    std::vector<GroupParty> stored;   // asynchronous: roots whose pushes count
    std::map<GroupParty, std::vector<float>> parts;  // of compressed pushes
  };
  struct Push {
    std::uint64_t name = 0, bytes = 0;
    GroupParty from = 0;
    Work work = Work::add;
    bool last = false;   // of its round
    bool steps = false;  // the weights
  };
  struct Core {
    std::uint64_t bytes = 0;  // of the keys that it sums
    std::deque<Push> queue;
    std::optional<Push> at_work;
  };
  struct Key {
    std::uint32_t core = 0;
    std::uint64_t pushes = 0, rounds = 0;
    std::vector<float> weights, moments;  // if they are stepped and ranks hold real data
    std::optional<PieceCodec> codec;      // where sums travel compressed
    Sum store;                            // asynchronous: of all pushes
  };

  // Pushes of a round often come one after the other, and so do pulls.
  Round& round_of(std::uint64_t name) {
    if (latest_ == nullptr || latest_name_ != name) {
      latest_ = &rounds_[name];
      latest_name_ = name;
    }
    return *latest_;
  }
  void close(std::uint64_t name) {
    rounds_.erase(name);
    latest_ = nullptr;
  }

  // The helper that owns the key: this one, unless it sums for another as the box of its rack.
  int owner_of(std::uint32_t key) const { return ends_.racks() > 1 ? ends_.owner_of(key) : self_; }
  bool owns(std::uint32_t key) const { return owner_of(key) == self_; }
  // Parties that push a key to this server: its roots, and to an owner the boxes of other racks.
  std::size_t pushers(std::uint32_t key) const {
    return roots_.size() + (owns(key) ? static_cast<std::size_t>(ends_.racks()) - 1 : 0);
  }

  // Sums the data at once; the cores decide when the sum is ready.
  void take(Io& io, GroupParty from, std::uint64_t name, const Note& note, Round& round) {
    const PieceCompression* how = ends_.compression(note.index);
    const std::uint64_t bytes = how ? ends_.piece_of(note.index).elements * sizeof(float)
                                    : note.elements * bytes_of(note.type);
    if (round.key == nullptr)
      round.key = &key_of(io, note.index, bytes, steps_weights(note.index, note.type));
    Key& key = *round.key;
    const bool first = round.pushes++ == 0;
    if (first) round.number = key.rounds++;
    round.like = {.type = note.type, .elements = note.elements};
    if (!ends_.rules().waits)
      key.store.add(note);
    else if (!how)
      round.sum.add(note);
    else if (holds_payload(note))
      round.parts[from] = PieceCodec::decompressed(*how, note.index, round.number, note.content,
                                                   ends_.piece_of(note.index).elements);
    ++key.pushes;
    Core& core = cores_[key.core];
    const bool last = round.pushes == pushers(note.index);
    const bool copies = ends_.rules().waits ? first : key.pushes == 1;
    const Work work = copies ? Work::copy : Work::add;
    const bool steps = last && steps_weights(note.index, note.type);
    const Push push{name, bytes, from, work, last, steps};
    if (!queues()) return add_next(io, key.core, push);
    core.queue.push_back(push);
    if (!core.at_work) start(io, key.core);
  }

  bool queues() const { return ends_.rules().schedules || !ends_.rules().waits; }

  // Without a queue: the core adds the push after those that came before.
  void add_next(Io& io, std::uint32_t core, const Push& push) {
    work(io, core, push);
    if (!push.last) return;
    if (free_.empty()) {
      free_.push_back(complete_.size());
      complete_.emplace_back();
    }
    const std::size_t at = free_.back();
    free_.pop_back();
    complete_[at] = push.name;
    io.arm(static_cast<std::uint32_t>(cores_.size() + at), 0);
  }

  // The sum of a round is complete.
  void complete(Io& io, std::size_t at) {
    free_.push_back(at);
    const std::uint64_t name = complete_[at];
    const auto round = rounds_.find(name);
    if (round == rounds_.end()) return;
    if (!round->second.is_summed) publish(io, name, round->second);
    if (round->second.answered == pushers(key_in(name))) close(name);
  }

  // With a queue: a core has added a push.
  void add(Io& io, const Push& push, Round& round) {
    const std::size_t all = pushers(key_in(push.name));
    if (!ends_.rules().waits) store(io, push, round);
    if (++round.summed == all && ends_.rules().waits && !round.is_summed)
      publish(io, push.name, round);
    if (round.answered == all) close(push.name);
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
    work(io, number, *core.at_work);
    io.arm(number, 0);
  }

  // Lets the event go on when the core has done with the push.
  void work(Io& io, std::uint32_t core, const Push& push) {
    io.run_on(core);
    io.work(push.work, push.bytes);
    const std::uint32_t key = key_in(push.name);
    if (const PieceCompression* how = ends_.compression(key)) {
      const CodecTime time = how->time(ends_.piece_of(key).elements);
      io.spend(time.decompress + (push.last ? time.compress : 0));
    }
    if (push.steps) io.work(Work::optimise, push.bytes);
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
    take_step(ends_.optimizer(), weights, std::span(key.moments).first(n), gradients);
    round.answer = bytes_of_floats(round.like.type, weights);
  }

  // Adds the parts in the order of the nodes, not of their pushes: every run then has the same sum.
  void compress_sum(std::uint32_t name, const PieceCompression& how, Round& round) {
    if (round.parts.empty()) {
      round.like.elements = how.payloads(ends_.piece_of(name).elements).sum;
      return;
    }
    std::vector<float> sum(ends_.piece_of(name).elements);
    for (const auto& [root, part] : round.parts)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    round.parts.clear();
    Key& key = keys_.at(name);
    if (!key.codec)
      key.codec.emplace(how, how.server_memory(), name, ends_.size() + self_, sum.size());
    round.answer = key.codec->compress(std::move(sum));
    round.like.elements = round.answer.size() / bytes_of(round.like.type);
  }

  // Asynchronous: a push counts from now on, and its root may pull.
  void store(Io& io, const Push& push, Round& round) {
    const auto waits = std::ranges::find(round.waiting, push.from);
    if (waits == round.waiting.end()) return round.stored.push_back(push.from);
    round.waiting.erase(waits);
    answer(io, push.from, push.name, round);
  }

  // Elastic: this server sums the key in place of a dead one, and tells every root so; again where
  // it learns of an earlier call, whose result some root may have from the dead one.
  void inherit(Io& io, const Note& push) {
    const auto [known, fresh] = inherited_.try_emplace(push.index, push.call);
    if (!fresh && static_cast<std::int32_t>(push.call - known->second) >= 0) return;
    known->second = push.call;
    Note moved{.tag = static_cast<std::uint8_t>(KeyTag::moved), .call = push.call};
    moved.index = push.index;
    moved.type = push.type;
    moved.words = push.words;
    for (const GroupParty root : roots_) outbox_.send(io, root, moved);
  }

  // Elastic: a root has the result from the dead server.
  void take_result(Io& io, std::uint64_t name, const Note& result, Round& round) {
    round.like = {.type = result.type, .elements = result.elements};
    round.answer.assign(result.content.begin(), result.content.end());
    round.is_summed = true;
    ++round.answered;
    answer_waiting(io, name, round);
  }

  void answer_waiting(Io& io, std::uint64_t name, Round& round) {
    for (const GroupParty root : round.waiting) answer(io, root, name, round);
    round.waiting.clear();
  }

  void publish(Io& io, std::uint64_t name, Round& round) {
    round.is_summed = true;
    const std::uint32_t key = key_in(name);
    const int owner = owner_of(key);
    const int relay = ends_.relay_in(ends_.rack_of_helper(self_), key);
    if (owner != self_)
      return send(io, ends_.size() + (relay < 0 ? owner : relay), KeyTag::push, name, round);
    if (steps_weights(key, round.like.type)) step_weights(keys_.at(key), round);
    if (const PieceCompression* how = ends_.compression(key)) compress_sum(key, *how, round);
    for (const GroupParty root : roots_) {
      if (ends_.rules().answer == Answer::when_summed)
        reply(io, root, KeyTag::pushed, call_of(name), {.index = key});
      if (ends_.rules().answer == Answer::result) answer(io, root, name, round);
    }
    answer_racks(io, relay, name, round);
    answer_waiting(io, name, round);
  }

  // The owner, to the boxes of all other racks.
  void answer_racks(Io& io, int relay, std::uint64_t name, Round& round) {
    if (ends_.racks() == 1) return;
    if (relay >= 0) {
      send(io, ends_.size() + relay, KeyTag::result, name, round);
      round.answered += static_cast<std::size_t>(ends_.racks()) - 1;
      return;
    }
    for (int rack = 0; rack < ends_.racks(); ++rack)
      if (const int box = ends_.helper_in(rack, self_); box != self_)
        answer(io, ends_.size() + box, name, round);
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
    note.content = !ends_.rules().waits   ? keys_.at(note.index).store.content()
                   : round.answer.empty() ? round.sum.content()
                                          : std::span<const std::byte>(round.answer);
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
    const PieceCompression* how = ends_.compression(name);
    const std::uint64_t errors = how && how->server_memory() != Memory::none ? bytes : 0;
    io.hold(ends_.bytes_held(bytes, pushers(name)) + weights + errors);
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
  Round* latest_ = nullptr;                          // that round_of() found last
  std::uint64_t latest_name_ = 0;
  // Keys that were dead servers': the earliest call that was pushed here.
  std::unordered_map<std::uint32_t, std::uint32_t> inherited_;
  std::vector<std::uint64_t> complete_;  // rounds, by their timers
  std::vector<std::size_t> free_;        // of these timers
  KeyOutbox outbox_;
};

}  // namespace

std::unique_ptr<Agent> key_server(const KeyedEnds& ends, int helper) {
  return std::make_unique<Server>(ends, helper);
}

}  // namespace ghostrank
