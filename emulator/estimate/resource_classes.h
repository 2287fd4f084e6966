// NICs and links that all calls use alike, as those of replicas on other nodes, count as one
// resource: a class. So an estimate on a thousand NICs has some dozens of them.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "emulator/traffic/traffic.h"

namespace ghostrank {

class ResourceClasses {
 public:
  using Busy = std::vector<CallsOnNetwork::Busy>;

  // For how long the classes are busy, in ascending order.
  using Times = std::map<std::uint32_t, Picoseconds>;

  // Says that a call keeps these resources busy. It stays in place. Before all calls of of().
  void add(const Busy& busy);
  // Makes the classes of all that was added.
  void make();
  const Times& of(const Busy& busy) const { return times_.at(&busy); }
  std::size_t size() const { return classes_.size(); }

 private:
  std::vector<const Busy*> all_;
  std::unordered_map<const Busy*, Times> times_;
  std::unordered_map<std::uint64_t, std::uint32_t> classes_;  // by what all calls make of them
};

}  // namespace ghostrank
