// The actions of an agent during an event of the checker's world, and the delivery of its notes.
#include <algorithm>
#include <set>

#include "collectives/check/agents/world.h"
#include "collectives/check/str.h"
#include "collectives/wire_format.h"

namespace ghostrank::checking {

void AgentWorld::check_note(std::span<const GroupParty> to, const Note& note,
                            Carriage carriage) const {
  std::set<GroupParty> seen;
  for (const GroupParty party : to) {
    if (party < 0 || static_cast<std::size_t>(party) >= parties_.size())
      fail("sends to party " + std::to_string(party) + ", which there is not", note.call);
    if (party == current_) fail("sends to itself", note.call);
    if (!seen.insert(party).second) fail("sends to " + named(party) + " twice at once", note.call);
  }
  if (note.words.size() > kMostWords)
    fail("sends " + str(note.words.size()) + " B of words, more than " + str(kMostWords),
         note.call);
  if (!note.content.empty() && note.content.size() != note.elements * bytes_of(note.type))
    fail("sends " + str(note.content.size()) + " B as " + str(note.elements) + " elements of " +
             std::string(name_of(note.type)),
         note.call);
  const std::uint64_t bytes = note_bytes(note, overhead_);
  if (carriage == Carriage::packet && bytes > options_.datagram_bytes)
    fail("sends a packet of " + str(bytes) + " B, more than a datagram's " +
             str(options_.datagram_bytes),
         note.call);
}

// A refused party may find room for a later send, before on_room() comes: after a first refusal
// each send is refused with probability 0.5 or more.
bool AgentWorld::refuse() {
  PartyState& party = current();
  if (!dice_.happens(party.waits_for_room ? std::max(options_.no_room, 0.5) : options_.no_room))
    return false;
  ++report_.refused;
  if (!party.waits_for_room) {
    party.waits_for_room = true;
    push({.at = now_ + random_time(10 * kMicrosecond),
          .party = current_,
          .kind = Event::Kind::room});
  }
  return true;
}

// Decodes the packet with one byte changed, in half of the cases also cut short. decode() must read
// it without harm, which a run under sanitizers shows.
void AgentWorld::garble(std::span<const std::byte> packet) const {
  if (packet.empty()) return;
  Dice dice(options_.seed ^ report_.packets);
  const std::size_t left = dice.happens(0.5) ? dice.below(packet.size()) : packet.size();
  std::vector<std::byte> wrong(left), store;  // exact size, so that sanitizers see reads beyond it
  std::copy_n(packet.begin(), left, wrong.begin());
  if (left > 0) wrong[dice.below(left)] ^= std::byte(1 + dice.below(255));
  ends_.wire_format()->decode(wrong, store);
}

// Replaces the note by the receiver's decoding of the packet.
void AgentWorld::through_wire_format(Parcel& parcel) const {
  const WireFormat& format = *ends_.wire_format();
  const Note sent = parcel.note;
  std::vector<std::byte> packet(note_bytes(sent, overhead_)), store;
  format.encode(sent, packet);
  const std::optional<Note> read = format.decode(packet, store);
  const auto broken = [&](std::string_view what) {
    fail("sends a packet that " + std::string(format.name()) + " does not bring across: it " +
             std::string(what),
         sent.call);
  };
  if (!read) return broken("is not recognised");
  if (const auto what = malformed(*read, packet.size(), overhead_); !what.empty()) broken(what);
  if (read->tag != sent.tag || read->call != sent.call || read->index != sent.index ||
      read->type != sent.type || read->elements != sent.elements)
    broken("arrives with another tag, call, index, type or number of elements");
  if (!std::ranges::equal(read->words, sent.words)) broken("arrives with other words");
  if (!sent.content.empty() && !std::ranges::equal(read->content, sent.content))
    broken("arrives with other content");
  std::vector<std::byte> content, words(read->words.begin(), read->words.end());
  if (!sent.content.empty()) content.assign(read->content.begin(), read->content.end());
  parcel.note = *read;
  parcel.content = std::move(content);
  parcel.words = std::move(words);
  garble(packet);
}

std::shared_ptr<const Parcel> AgentWorld::packed(const Note& note, Carriage carriage) const {
  const auto parcel = std::make_shared<Parcel>();
  parcel->from = current_;
  parcel->carriage = carriage;
  parcel->content.assign(note.content.begin(), note.content.end());
  parcel->words.assign(note.words.begin(), note.words.end());
  parcel->note = note;
  if (carriage == Carriage::packet && ends_.wire_format()) through_wire_format(*parcel);
  parcel->note.content = parcel->content;
  parcel->note.words = parcel->words;
  return parcel;
}

bool AgentWorld::send(std::span<const GroupParty> to, const Note& note, Carriage carriage) {
  check_note(to, note, carriage);
  if (refuse()) return false;
  const auto parcel = packed(note, carriage);
  for (const GroupParty party : to) {
    Sent& sent = sent_[{current_, party, carriage}];
    sent.bytes += note_bytes(note, overhead_);
    ++sent.messages;
    deliver(party, parcel);
  }
  return true;
}

// 1 us to 16 ms, so that any time-out is too short for some notes and too long for others.
Picoseconds AgentWorld::long_time() {
  const Picoseconds least = kMicrosecond << dice_.below(14);
  return least + random_time(least);
}

void AgentWorld::arrive(GroupParty to, const std::shared_ptr<const Parcel>& parcel,
                        Picoseconds after, bool in_order) {
  Picoseconds at = now_ + after;
  if (in_order) {
    Picoseconds& last = last_[{parcel->from, to, parcel->carriage}];
    at = last = std::max(last, at);
  }
  push({.at = at, .party = to, .kind = Event::Kind::note, .parcel = parcel});
}

void AgentWorld::deliver(GroupParty to, const std::shared_ptr<const Parcel>& parcel) {
  if (parcel->carriage == Carriage::reliable) {
    const bool slow = dice_.happens(options_.slow);
    return arrive(to, parcel, latency() + (slow ? long_time() : 0), true);
  }
  const Misfortunes& m = options_.misfortunes;
  ++report_.packets;
  if (dice_.happens(m.loss)) {
    ++report_.lost;
    return;
  }
  int copies = 1;
  if (dice_.happens(m.duplicates)) {
    ++report_.doubled;
    copies = 2;
  }
  for (int copy = 0; copy < copies; ++copy) {
    Picoseconds after = latency();
    if (dice_.happens(m.delay)) {
      ++report_.late;
      after += long_time();
    }
    const bool overtaken = dice_.happens(m.reordering);
    if (overtaken) {
      ++report_.overtaken;
      after += random_time(10 * kMicrosecond);
    }
    arrive(to, parcel, after, !overtaken);
  }
}

void AgentWorld::arm(std::uint32_t timer, Picoseconds after) {
  if (after < 0) fail("arms timer " + str(timer) + " for a time that is over");
  current().timers[timer] = ++armings_;
  push({.at = now_ + after,
        .party = current_,
        .kind = Event::Kind::timer,
        .timer = timer,
        .arming = armings_});
}

void AgentWorld::disarm(std::uint32_t timer) { current().timers.erase(timer); }

void AgentWorld::spend(Picoseconds time) {
  if (time < 0) fail("spends a time below 0");
  now_ += time;
}

void AgentWorld::tell(Incident incident) {
  report_.restarts += incident == Incident::restart;
  report_.fallbacks += incident == Incident::fallback;
  report_.ring_calls += incident == Incident::ring_call;
}

AgentWorld::OpenTensor& AgentWorld::open_tensor(std::uint32_t call, const char* verb) {
  if (current_ >= ends_.size()) fail(std::string(verb) + ", which only a rank may", call);
  const auto open = current().open.find(call);
  if (open != current().open.end()) return *open->second;
  const auto known = index_.find(call);
  fail(std::string(verb) + ", but " +
           (known == index_.end()             ? "there is no such call"
            : known->second < current().begun ? "its part in the call is over"
                                              : "has not come to the call"),
       call);
}

Tensor& AgentWorld::tensor(std::uint32_t call) {
  OpenTensor& tensor = open_tensor(call, "asks for the tensor");
  tensor.lend(report_.events);
  return tensor;
}

void AgentWorld::done(std::uint32_t call) {
  OpenTensor& tensor = open_tensor(call, "says done");
  const std::size_t i = index_.at(call);
  if (options_.real_data) {
    const std::string wrong = values_[i].wrong(current_, tensor.work());
    if (!wrong.empty()) fail(wrong, call);
  }
  if (tensor.call().collective.func == Func::barrier)
    for (GroupParty r = 0; r < ends_.size(); ++r)
      if (parties_[r].begun <= i)
        fail("leaves the barrier before " + named(r) + " has come to it", call);
  tensor.take_back();
  auto node = current().open.extract(call);
  current().over.push_back(std::move(node.mapped()));
  plan_next_call(current_);
}

AgentWorld::OpenTensor::OpenTensor(AgentWorld& world, const Call& call, const CallValues* values,
                                   GroupRank rank)
    : world_(world),
      call_(call),
      rank_(rank),
      content_(content_of(call, world.options_.seed)),
      real_(values != nullptr),
      readable_(ghostrank::input_elements(call.collective, rank)),
      writable_(work_elements(call.collective, rank)),
      exchange_(readable_ > 0) {
  if (!exchange_) readable_ = writable_;
  if (!real_) return;
  work_ = values->work(rank);
  input_ = values->input(rank);
}

void AgentWorld::OpenTensor::check_access(const char* verb, std::uint64_t first,
                                          std::uint64_t elements, std::uint64_t all) const {
  if (lent_in_ != world_.report_.events)
    world_.fail(std::string(verb) + " a tensor that is not lent to it now", call_.number);
  if (first > all || elements > all - first)
    world_.fail(std::string(verb) + " " + str(elements) + " elements from " + str(first) +
                    " on of a tensor of " + str(all),
                call_.number);
}

std::span<const std::byte> AgentWorld::OpenTensor::read(std::uint64_t first,
                                                        std::uint64_t elements) {
  check_access("reads", first, elements, readable_);
  if (!real_) return {};
  const std::uint32_t bytes = bytes_of(call_.type);
  std::fill(shown_.begin(), shown_.end(), std::byte{0xff});
  shown_.resize(elements * bytes);
  const std::vector<std::byte>& from = exchange_ ? input_ : work_;
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first * bytes), shown_.size(),
              shown_.begin());
  return shown_;
}

void AgentWorld::OpenTensor::write(std::uint64_t first, std::span<const std::byte> elements) {
  const std::uint32_t bytes = bytes_of(call_.type);
  if (elements.size() % bytes != 0)
    world_.fail("writes " + str(elements.size()) + " B, which are no whole elements", call_.number);
  check_access("writes", first, elements.size() / bytes, writable_);
  if (!real_) return;
  std::copy(elements.begin(), elements.end(),
            work_.begin() + static_cast<std::ptrdiff_t>(first * bytes));
  std::fill(shown_.begin(), shown_.end(), std::byte{0xff});
}

bool AgentWorld::OpenTensor::nonzero(std::uint64_t first, std::uint64_t elements) {
  check_access("asks for blocks of", first, elements, readable_);
  return content_ ? content_->nonzero(rank_, first, elements) : elements > 0;
}

}  // namespace ghostrank::checking
