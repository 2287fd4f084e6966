#include "collectives/slot_scheme.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <set>
#include <stdexcept>

#include "collectives/schemes/shared/slot_timers.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kHeader = 8, kElement = 4;
constexpr std::uint32_t kMostSlots = 16384, kMostElements = 256;

void put(std::uint32_t n, std::byte* to) {
  for (int i = 0; i < 4; ++i) to[i] = std::byte(n >> (24 - 8 * i) & 0xff);
}

std::uint32_t get(const std::byte* from) {
  std::uint32_t n = 0;
  for (int i = 0; i < 4; ++i) n = n << 8 | std::to_integer<std::uint32_t>(from[i]);
  return n;
}

std::uint32_t bits_at(std::span<const std::byte> elements, std::size_t at) {
  std::uint32_t bits;
  std::memcpy(&bits, elements.data() + at, sizeof bits);
  return bits;
}

class Packets final : public WireFormat {
 public:
  explicit Packets(const SlotScheme& scheme) : scheme_(scheme) {}
  std::string_view name() const override { return scheme_.form().name; }

  void encode(const Note& note, std::span<std::byte> packet) const override {
    put(std::uint32_t{scheme_.form().port} << 16 | note.index, packet.data());
    put(note.call, packet.data() + 4);
    for (std::size_t at = 0; at < note.content.size(); at += kElement)
      put(scheme_.to_wire(bits_at(note.content, at)), packet.data() + kHeader + at);
  }

  std::optional<Note> decode(std::span<const std::byte> packet,
                             std::vector<std::byte>& store) const override {
    if (packet.size() < kHeader || packet.size() % kElement != 0) return std::nullopt;
    const std::uint32_t first = get(packet.data()), index = first & 0xffff;
    if (first >> 16 != scheme_.form().port || !scheme_.has(index)) return std::nullopt;
    store.resize(packet.size() - kHeader);
    for (std::size_t at = 0; at < store.size(); at += kElement) {
      const std::uint32_t bits = scheme_.from_wire(get(packet.data() + kHeader + at));
      std::memcpy(store.data() + at, &bits, sizeof bits);
    }
    return Note{.call = get(packet.data() + 4),
                .index = index,
                .type = scheme_.form().type,
                .elements = store.size() / kElement,
                .content = store};
  }

 private:
  const SlotScheme& scheme_;
};

class Worker final : public Agent {
 public:
  Worker(const SlotScheme& scheme, Picoseconds timeout)
      : form_(scheme.form()),
        first_index_(2 * scheme.first_slot()),
        switch_(scheme.size()),
        timers_(static_cast<int>(form_.slots), timeout),
        slots_(form_.slots) {}

  void on_call(Io& io, const Call& call) override {
    const std::uint64_t chunks = (call.collective.count + form_.elements - 1) / form_.elements;
    if (chunks == 0) return io.done(call.number);
    if (open_.empty()) {
      timers_.start_call();
      timers_.arm(io);
    }
    open_.push_back({call, chunks_, chunks});
    chunks_ += chunks;
    go_on(io);
  }

  void on_note(Io& io, GroupParty, const Note& result) override {
    Slot& slot = slots_[(result.index - first_index_) / 2];
    if (!slot.busy || index_of(slot.chunk) != result.index) return;  // a result it has already
    if (result.elements != form_.elements) return;                   // of another format
    const auto open = call_of(slot.chunk);
    const auto [first, elements] = reach_of(*open, slot.chunk);
    io.tensor(open->call.number)
        .write(first, result.content.first(result.content.empty() ? 0 : elements * kElement));
    slot.busy = false;
    if (--open->left == 0) {
      io.done(open->call.number);
      open_.erase(open);
    }
    open_.empty() ? io.disarm(0) : go_on(io);
  }

  void on_timer(Io& io, std::uint32_t) override {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
      if (slots_[slot].busy && timers_.expired(slot)) send(io, slots_[slot].chunk);
    timers_.arm(io);
  }

 private:
  struct Open {
    Call call;
    std::uint64_t first, left;  // chunk numbers over all calls, the same on all ranks
  };
  struct Slot {
    bool busy = false;
    std::uint64_t chunk = 0;
  };

  std::uint32_t index_of(std::uint64_t chunk) const {
    return first_index_ +
           static_cast<std::uint32_t>(chunk % form_.slots * 2 + chunk / form_.slots % 2);
  }
  std::deque<Open>::iterator call_of(std::uint64_t chunk) {
    auto open = open_.end();
    while ((--open)->first > chunk) continue;
    return open;
  }
  // The chunk's first element of the call's tensor, and how many there are.
  std::pair<std::uint64_t, std::uint64_t> reach_of(const Open& open, std::uint64_t chunk) const {
    const std::uint64_t first = (chunk - open.first) * form_.elements;
    return {first, std::min<std::uint64_t>(form_.elements, open.call.collective.count - first)};
  }

  void go_on(Io& io) {
    for (; next_ < chunks_ && !slots_[next_ % form_.slots].busy; ++next_) {
      slots_[next_ % form_.slots] = {true, next_};
      timers_.begin(next_ % form_.slots);
      send(io, next_);
    }
  }

  void send(Io& io, std::uint64_t chunk) {
    const Open& open = *call_of(chunk);
    const auto [first, elements] = reach_of(open, chunk);
    Note part{.call = open.call.number, .index = index_of(chunk), .type = form_.type};
    part.elements = form_.elements;  // a switch takes packets of one size
    const auto real = io.tensor(part.call).read(first, elements);
    filled_.assign(form_.elements * kElement, std::byte{0});
    std::ranges::copy(real, filled_.begin());
    if (!real.empty()) part.content = filled_;
    io.send(switch_, part, Carriage::packet);  // no room: the timer resends it
    timers_.sent(chunk % form_.slots);
  }

  const SlotForm& form_;
  const std::uint32_t first_index_;  // of the first slot, in set 0
  const GroupParty switch_;
  SlotTimers timers_;
  std::deque<Open> open_;
  std::vector<Slot> slots_;
  std::uint64_t next_ = 0, chunks_ = 0;  // the next chunk to send; the chunks of all calls so far
  std::vector<std::byte> filled_;        // the packet that is sent
};

class Switch final : public Agent {
 public:
  explicit Switch(const SlotScheme& scheme) : scheme_(scheme), rounds_(2 * scheme.form().slots) {
    for (GroupParty p = 0; p < scheme.size(); ++p) all_.push_back(p);
  }

  void on_note(Io& io, GroupParty from, const Note& part) override {
    const std::uint32_t at = part.index - 2 * scheme_.first_slot();
    Round &round = rounds_[at], &other = rounds_[at ^ 1];
    other.heard.erase(from);
    if (round.heard.empty()) round = {{}, scheme_.size(), {}};
    if (round.heard.insert(from).second) {
      add(round.result, part.content);
      if (--round.missing > 0) return;
      io.send(all_, result_of(round, part), Carriage::packet);
    } else if (round.missing == 0) {  // the worker missed the result, or it is still under way
      io.send(from, result_of(round, part), Carriage::packet);
    }
  }

 private:
  struct Round {
    std::set<GroupParty> heard;
    int missing = 0;
    std::vector<std::byte> result;  // empty: nobody holds real data
  };

  void add(std::vector<std::byte>& result, std::span<const std::byte> more) const {
    if (result.empty()) return result.assign(more.begin(), more.end());
    for (std::size_t at = 0; at < more.size(); at += kElement) {
      const std::uint32_t both = scheme_.from_wire(scheme_.combine(
          scheme_.to_wire(bits_at(result, at)), scheme_.to_wire(bits_at(more, at))));
      std::memcpy(result.data() + at, &both, sizeof both);
    }
  }
  static Note result_of(const Round& round, Note note) {
    note.content = round.result;
    return note;
  }

  const SlotScheme& scheme_;
  std::vector<GroupParty> all_;
  std::vector<Round> rounds_;
};

class Combined final : public Expected {
 public:
  explicit Combined(const SlotScheme& scheme) : scheme_(scheme) {}

  std::span<const float> next(std::span<const std::vector<float>> given) override {
    result_ = given[0];
    for (std::size_t rank = 1; rank < given.size(); ++rank)
      for (std::size_t i = 0; i < result_.size(); ++i)
        result_[i] = std::bit_cast<float>(
            scheme_.from_wire(scheme_.combine(on_wire(result_[i]), on_wire(given[rank][i]))));
    return result_;
  }

 private:
  std::uint32_t on_wire(float x) const { return scheme_.to_wire(std::bit_cast<std::uint32_t>(x)); }

  const SlotScheme& scheme_;
  std::vector<float> result_;
};

}  // namespace

SlotScheme::SlotScheme(int size, const Communicator& comm, const SlotForm& form)
    : Ends(size),
      form_(form),
      first_slot_(static_cast<std::uint32_t>(comm.in_switch.first_slot)),
      timeout_(comm.in_switch.timeout_ps),
      packets_(std::make_unique<Packets>(*this)) {
  const auto within = [&](std::uint32_t n, std::uint32_t most, const char* what) {
    if (n < 1 || n > most)
      throw std::invalid_argument("the slot scheme '" + std::string(form.name) + "' has " +
                                  std::to_string(n) + " " + what + "; it may have 1 to " +
                                  std::to_string(most));
  };
  within(form.slots, kMostSlots, "slots");
  within(form.elements, kMostElements, "elements in a packet");
  within(form.port, 0xffff, "as its UDP port");
  if (bytes_of(form.type) != kElement)
    throw std::invalid_argument("the slot scheme '" + std::string(form.name) +
                                "' has elements of " + std::to_string(bytes_of(form.type)) +
                                " bytes; they have 4");
  if (first_slot_ > kMostSlots - form.slots)
    throw std::invalid_argument("the slot scheme '" + std::string(form.name) +
                                "' has its slots from number " + std::to_string(first_slot_) +
                                " on, and packets number " + std::to_string(kMostSlots) +
                                " of all groups together; use fewer (SlotForm::slots)");
}

std::unique_ptr<Agent> SlotScheme::agent(GroupParty party) const {
  if (party == size()) return std::make_unique<Switch>(*this);
  return std::make_unique<Worker>(*this, timeout_);
}

std::vector<Ends::Edge> SlotScheme::traffic(const Call& call) const {
  const std::uint64_t packets = (call.collective.count + form_.elements - 1) / form_.elements;
  const std::uint64_t all = packets * (kHeader + kElement * form_.elements);
  std::vector<Edge> edges;
  for (GroupRank r = 0; r < size(); ++r)
    for (const auto& [from, to] : {std::pair(r, size()), std::pair(size(), r)})
      edges.push_back({from, to, all, packets, Carriage::packet});
  return edges;
}

std::uint64_t SlotScheme::overhead_bytes() const { return kHeader; }

// A round in set 1 takes back every mark in set 0, which the first chunk of a slot uses.
std::optional<SwitchService> SlotScheme::switch_service() const {
  SwitchService service;
  service.port = form_.port;
  service.slots = static_cast<int>(form_.slots);
  service.elements = static_cast<int>(form_.elements);
  service.of_every = {Func::all_reduce};
  service.rails.emplace_back();
  for (GroupRank r = 0; r < size(); ++r) service.rails[0].push_back(r);
  for (std::uint32_t slot = 0; slot < form_.slots; ++slot)
    service.greeting.push_back(
        {.index = 2 * (first_slot_ + slot) + 1, .type = form_.type, .elements = form_.elements});
  return service;
}

std::unique_ptr<Expected> SlotScheme::expected(const Call&) const {
  return sums() ? nullptr : std::make_unique<Combined>(*this);
}

std::string SlotScheme::refuses(const Call& call) const {
  if (!sums() && form_.type != DataType::float32)
    return "slots whose results are no sums hold float32; its form says " +
           std::string(name_of(form_.type));
  return call.type == form_.type
             ? ""
             : "its switch combines " + std::string(name_of(form_.type)) + " alone";
}

}  // namespace ghostrank
