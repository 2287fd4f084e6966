// SwitchML's rules restated as its authors give them (two bitmaps, a counter that counts down), on
// single numbers: the reference for every target.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

namespace ghostrank::switchml {

enum class Answer { none, everybody, sender };

class Reference {
 public:
  explicit Reference(int workers) : workers_(workers) {}

  std::pair<Answer, std::uint32_t> receive(int worker, int slot, int set, std::uint32_t value) {
    Slot& s = slots_[slot];
    const auto v = static_cast<std::size_t>(set);
    const std::uint32_t bit = 1u << worker, before = s.bitmap[v];
    s.bitmap[v] |= bit;
    s.bitmap[1 - v] &= ~bit;
    const bool duplicate = (before & bit) != 0;
    if (before == 0) {
      s.value[v] = value;
    } else if (!duplicate) {
      s.value[v] += value;
    }
    const int flag = s.count[v];
    if (!duplicate) s.count[v] = s.count[v] == 0 ? workers_ - 1 : s.count[v] - 1;
    const bool last = workers_ == 1 ? !duplicate : !duplicate && flag == 1;
    if (last) return {Answer::everybody, s.value[v]};
    if (duplicate && (workers_ == 1 || flag == 0)) return {Answer::sender, s.value[v]};
    return {Answer::none, 0};
  }

 private:
  struct Slot {
    std::array<std::uint32_t, 2> bitmap{}, value{};
    std::array<int, 2> count{};
  };
  int workers_;
  std::map<int, Slot> slots_;
};

}  // namespace ghostrank::switchml
