// A switch of the scheme `atp`: adds packets up in the aggregators that it shares with other
// communicators, and passes on packets that find none.
//
// Slot s of a worker's window has aggregator base + s, so that a communicator's packets in flight
// do not meet each other; slots beyond the number of aggregators have none.
#include <algorithm>
#include <cstring>
#include <limits>

#include "collectives/schemes/atp/agents.h"

namespace ghostrank::atp {
namespace {

constexpr std::uint32_t kBetweenJobs = 2654435761u;  // spreads the bases of communicators

class AtpSwitch final : public Agent {
 public:
  AtpSwitch(std::shared_ptr<const Layout> layout, int rail, AtpAggregators& shared)
      : layout_(std::move(layout)),
        workers_(layout_->rails.workers(rail)),
        server_(layout_->server_of(rail)),
        shared_(shared),
        job_(shared.jobs++),
        spent_(layout_->options.packet_rate > 0
                   ? static_cast<Picoseconds>(1e12 / layout_->options.packet_rate)
                   : 0) {
    const std::size_t cells = layout_->options.aggregators;
    if (shared_.cells.size() < cells) shared_.cells.resize(cells);
  }

  void on_note(Io& io, GroupParty from, const Note& note) override {
    const auto words = Words::read(note.words);
    if (!words) return;
    if (spent_ > 0) io.spend(spent_);
    shared_.held.at_least(io, shared_.cells.size() * kSumBytes);
    if (from == server_) return answer(io, note, *words);
    if (static_cast<Tag>(note.tag) == Tag::data)
      add(io, note, *words);
    else if (static_cast<Tag>(note.tag) == Tag::raw)
      io.send(server_, note, Carriage::packet);
  }

 private:
  using Cell = AtpAggregators::Cell;

  // Null: the packet has no aggregator.
  Cell* cell_of(const Words& words) {
    const std::size_t slot = words.sequence % layout_->options.window;
    if (slot >= shared_.cells.size()) return nullptr;
    const std::size_t base = job_ * kBetweenJobs;
    return &shared_.cells[(base + slot) % shared_.cells.size()];
  }
  bool is_ours(const Cell& cell, const Words& words) const {
    return cell.job == job_ && cell.sequence == words.sequence;
  }
  // A later packet of the same communicator in the slot shows that the earlier one has its result.
  bool may_take(const Cell& cell, const Words& words) const {
    return cell.job < 0 ||
           (cell.job == job_ && static_cast<std::int32_t>(words.sequence - cell.sequence) > 0);
  }

  void add(Io& io, const Note& note, const Words& words) {
    Cell* cell = cell_of(words);
    if (!cell || (!is_ours(*cell, words) && (words.again || !may_take(*cell, words)))) {
      ++shared_.passed;
      io.send(server_, note, Carriage::packet);
      return;
    }
    if (!is_ours(*cell, words)) *cell = {.job = job_, .sequence = words.sequence};
    if ((words.workers & ~cell->workers) != 0) {
      cell->overflow |= words.overflow;
      if (!note.content.empty()) cell->overflow |= !add_units(cell->values, units_in(note));
      cell->workers |= words.workers;
    } else if (!words.again && cell->workers != layout_->all_workers()) {
      return;  // a duplicate
    }
    const bool whole = cell->workers == layout_->all_workers();
    if (whole || words.again) pass_sum(io, note, *cell);
    if (words.again) *cell = {};
  }

  // If a send finds no room, workers send again.
  void pass_sum(Io& io, const Note& like, const Cell& cell) {
    shared_.aggregated += cell.workers == layout_->all_workers();
    const auto bytes =
        Words{.sequence = cell.sequence, .workers = cell.workers, .overflow = cell.overflow}
            .bytes();
    Note note = like;
    note.content = std::as_bytes(std::span(cell.values));
    note.words = bytes;
    io.send(server_, note, Carriage::packet);
  }

  void answer(Io& io, const Note& note, const Words& words) {
    if (Cell* cell = cell_of(words); cell && is_ours(*cell, words)) *cell = {};
    to_.clear();
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if ((words.workers >> w & 1) != 0) to_.push_back(workers_[w]);
    if (!to_.empty()) io.send(to_, note, Carriage::packet);
  }

  const std::shared_ptr<const Layout> layout_;
  const std::vector<GroupRank>& workers_;
  const GroupParty server_;
  AtpAggregators& shared_;
  const int job_;            // this communicator, among those of the switch
  const Picoseconds spent_;  // per packet
  std::vector<GroupParty> to_;
};

}  // namespace

std::vector<std::byte> Words::bytes() const {
  std::vector<std::byte> bytes(22);
  std::memcpy(bytes.data(), &sequence, 4);
  std::memcpy(bytes.data() + 4, &workers, 4);
  bytes[8] = std::byte{static_cast<unsigned char>((again ? 1 : 0) | (overflow ? 2 : 0))};
  return bytes;
}

std::optional<Words> Words::read(std::span<const std::byte> bytes) {
  if (bytes.size() != 22) return std::nullopt;
  Words words;
  std::memcpy(&words.sequence, bytes.data(), 4);
  std::memcpy(&words.workers, bytes.data() + 4, 4);
  words.again = (bytes[8] & std::byte{1}) != std::byte{0};
  words.overflow = (bytes[8] & std::byte{2}) != std::byte{0};
  return words;
}

bool add_units(std::vector<std::int32_t>& into, std::span<const std::int32_t> from) {
  using Limits = std::numeric_limits<std::int32_t>;
  const auto fits = [](std::int64_t n) { return n > Limits::min() && n < Limits::max(); };
  into.resize(from.size());
  bool all = true;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t sum = std::int64_t{into[i]} + from[i];
    all &= fits(from[i]) && fits(sum);
    into[i] = static_cast<std::int32_t>(
        std::clamp(sum, std::int64_t{Limits::min()}, std::int64_t{Limits::max()}));
  }
  return all;
}

std::vector<std::int32_t> units_in(const Note& note) {
  std::vector<std::int32_t> units(note.content.size() / sizeof(std::int32_t));
  std::memcpy(units.data(), note.content.data(), units.size() * sizeof(std::int32_t));
  return units;
}

std::unique_ptr<Agent> switch_agent(std::shared_ptr<const Layout> layout, int rail, Site& site) {
  return std::make_unique<AtpSwitch>(std::move(layout), rail, site.get<AtpAggregators>());
}

}  // namespace ghostrank::atp
