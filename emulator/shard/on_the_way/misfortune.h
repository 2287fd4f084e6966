// Loses, duplicates and delays packets between nodes on purpose (fabric.packets). What happens to a
// packet is a pure function of (seed, first iteration of the segment, sender, receiver, what the
// packet says, how often it was sent before). So runs lose the same packets in virtual time and on
// a real network, whatever order they leave in.
//
// Units: emulated picoseconds. Threading: one owner (a shard). Bounds: per pair of parties it
// remembers as many indices as two sets of slots have, and of each the last four packets.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "collectives/agent.h"
#include "emulator/common/random.h"
#include "emulator/result/result.h"
#include "profiles/job/job.h"

namespace ghostrank {

class Misfortune {
 public:
  static constexpr Picoseconds kLost = -1;

  // `slots`: the most packets that a sender has in flight to one receiver.
  Misfortune(const PacketSpec& spec, std::uint64_t seed, int slots)
      : spec_(spec), seed_(seed), places_(2 * static_cast<std::size_t>(slots)) {}

  // Begins a segment whose first iteration is `first`: nobody has sent a packet yet.
  void begin(std::uint32_t first) {
    first_ = first;
    pairs_.clear();
  }

  // Returns for each of two copies of the packet how much later than normal it arrives; kLost: no
  // such copy arrives. `latency`: between the two NICs. Counts in `counts` what it did.
  std::array<Picoseconds, 2> next(WorldParty sender, WorldParty receiver, const Note& packet,
                                  Picoseconds latency, PacketCounts& counts) {
    std::array<Picoseconds, 2> copies{0, kLost};
    if (spec_.loss == 0 && spec_.duplicates == 0 && spec_.reordering == 0) return copies;
    const std::uint64_t said = digest(packet);
    const auto [forgotten, before] = sent_before(sender, receiver, packet.index, said);
    RandomBits random(
        {seed_, first_, sender.index(), receiver.index(), packet.index, said, forgotten, before});
    if (random.unit() < spec_.loss) copies[0] = kLost;
    if (random.unit() < spec_.duplicates) copies[1] = 0;
    counts.lost_on_purpose += copies[0] < 0;
    counts.doubled_on_purpose += copies[1] == 0;
    for (Picoseconds& copy : copies) {
      if (copy != 0 || random.unit() >= spec_.reordering) continue;
      copy =
          static_cast<Picoseconds>(random.unit() * static_cast<double>(kLateLatencies * latency));
      ++counts.delayed_on_purpose;
    }
    return copies;
  }

 private:
  static constexpr int kLateLatencies = 8;  // upper bound of a copy's delay, in latencies

  struct Packet {
    std::uint64_t said = 0, times = 0;
  };
  struct Place {  // a slot or block
    // Several, because packets of one index may say different things in turn: a switch passes on
    // those of several workers.
    std::array<Packet, 4> last;
    std::uint64_t packets = 0;  // that `last` has taken; each overwrites the oldest
  };
  struct Pair {
    std::unordered_map<std::uint32_t, Place> places;  // by Note::index
    std::uint64_t forgotten = 0;                      // how often `places` was full and emptied
  };
  struct Sent {
    std::uint64_t forgotten, before;
  };

  static std::uint64_t digest(const Note& packet) {
    std::uint64_t digest = mix_bits(packet.tag ^ std::uint64_t{packet.call} << 8);
    for (std::size_t at = 0; at < packet.words.size(); at += sizeof digest) {
      std::uint64_t word = 0;
      std::memcpy(&word, packet.words.data() + at, std::min(sizeof word, packet.words.size() - at));
      digest = mix_bits(digest ^ word);
    }
    return digest;
  }

  // How often the sender has sent the packet before. A forgotten packet counts from 0 again, with
  // another value of `forgotten`, so that no packet is lost for ever.
  Sent sent_before(WorldParty sender, WorldParty receiver, std::uint32_t index,
                   std::uint64_t said) {
    Pair& pair = pairs_[std::uint64_t{sender.index()} << 32 | receiver.index()];
    if (pair.places.size() >= places_ && !pair.places.contains(index)) {
      pair.places.clear();
      ++pair.forgotten;
    }
    Place& place = pair.places[index];
    auto packet = std::ranges::find(place.last, said, &Packet::said);
    if (packet == place.last.end()) {
      packet = place.last.begin() + place.packets++ % place.last.size();
      *packet = {said, 0};
    }
    return {pair.forgotten << 32 | place.packets / place.last.size(), packet->times++};
  }

  const PacketSpec& spec_;
  const std::uint64_t seed_;
  const std::size_t places_;
  std::uint32_t first_ = 0;
  std::unordered_map<std::uint64_t, Pair> pairs_;
};

}  // namespace ghostrank
