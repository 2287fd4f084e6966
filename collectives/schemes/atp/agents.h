// The agents of the scheme `atp`. Parties: ranks; then for each rail its switch and its server.
//
// Threading: the layout is immutable; an agent has one owner.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collectives/schemes/atp.h"
#include "collectives/schemes/shared/member.h"

namespace ghostrank::atp {

inline constexpr std::uint64_t kElements = 62;  // of a packet
// Bytes of a sum in progress: its elements, its packet's number, its workers and its communicator.
inline constexpr std::uint64_t kSumBytes = 4 * kElements + 12;
inline constexpr std::uint64_t kOverhead = 4;  // bytes of the header that are not in `words`
inline constexpr double kUnits = 1e6;          // x travels as the int32 x * kUnits

// Note::tag.
enum class Tag : std::uint8_t {
  data,   // of a worker, or the sum of several; up
  raw,    // a worker's elements as they are, up: the switch only passes them
  sum,    // the result, down
  plain,  // the result of raw elements, down
  ask,    // for the elements as they are, down
};

// Note::words: 22 bytes; with kOverhead, the 26 of the header.
struct Words {
  std::uint32_t sequence = 0;  // of the packet, over all calls of the communicator
  std::uint32_t workers = 0;   // a bit for each worker in the sum; down: for each receiver
  bool again = false;          // sent again
  bool overflow = false;       // some element does not fit

  std::vector<std::byte> bytes() const;
  static std::optional<Words> read(std::span<const std::byte> bytes);
};

struct Layout final : MemberLayout {
  Layout(int ranks, const AtpOptions& chosen, const Communicator& comm)
      : MemberLayout(ranks, comm), options(chosen), ranks_(ranks) {}

  std::uint64_t per_chunk(const Call&) const override { return kElements; }
  bool alone() const { return rails.nodes() == 1; }  // without switches and servers
  GroupParty switch_of(int rail) const { return ranks_ + 2 * rail; }
  GroupParty server_of(int rail) const { return ranks_ + 2 * rail + 1; }
  std::uint32_t all_workers() const {
    return static_cast<std::uint32_t>((std::uint64_t{1} << rails.nodes()) - 1);
  }

  AtpOptions options;

 private:
  int ranks_;
};

// into += from, saturating. Returns true if all numbers and sums fit into an int32. The ends of its
// range do not count as fitting, so that an overflow stays visible.
bool add_units(std::vector<std::int32_t>& into, std::span<const std::int32_t> from);
std::vector<std::int32_t> units_in(const Note& note);

std::unique_ptr<WorkerPart> part_of(std::shared_ptr<const Layout> layout, GroupRank worker);
std::unique_ptr<Agent> switch_agent(std::shared_ptr<const Layout> layout, int rail, Site& site);
std::unique_ptr<Agent> server_agent(std::shared_ptr<const Layout> layout, int rail);

}  // namespace ghostrank::atp
