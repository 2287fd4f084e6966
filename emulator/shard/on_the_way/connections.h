// Until when each connection is busy with data that its rank sent, because control messages that
// share the connection must stay behind that data. Only libraries whose control messages share the
// connections of their data use it.
//
// Units: emulated picoseconds. Memory: the busy connections, and at most 1,024 or as many again
// that are no longer busy. Threading: one owner (a shard).
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "collectives/schedule.h"
#include "profiles/units.h"

namespace ghostrank {

class Connections {
 public:
  struct Key {
    std::uint32_t rank = 0, group = 0;  // the sender's local index; the communicator
    GroupRank peer = kNoRank;
    bool operator==(const Key&) const = default;
  };

  void clear() { taken_.clear(); }
  std::size_t size() const { return taken_.size(); }

  // Data sent on the connection at `now` has left it at `until`.
  void take(const Key& key, Picoseconds until, Picoseconds now) {
    taken_.insert_or_assign(key, until);
    if (taken_.size() < sweep_at_) return;
    std::erase_if(taken_, [now](const auto& entry) { return entry.second <= now; });
    sweep_at_ = std::max(kSweepAt, 2 * taken_.size());
  }

  // Returns when a message that is ready at `at` may leave.
  Picoseconds behind(const Key& key, Picoseconds at) const {
    const auto found = taken_.find(key);
    return found == taken_.end() ? at : std::max(at, found->second);
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t h = (std::uint64_t{key.rank} << 32 | static_cast<std::uint32_t>(key.peer)) *
                        0x9e3779b97f4a7c15ULL;
      h = (h ^ key.group) * 0xff51afd7ed558ccdULL;
      return h ^ h >> 32;
    }
  };
  static constexpr std::size_t kSweepAt = 1024;

  std::unordered_map<Key, Picoseconds, Hash> taken_;
  std::size_t sweep_at_ = kSweepAt;
};

}  // namespace ghostrank
