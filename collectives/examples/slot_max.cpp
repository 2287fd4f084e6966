// A complete scheme as a plug-in, based on slot_scheme.h: every element of the result is the
// largest of all ranks' elements, which a switch finds.
//
// On virtual and memory the switch is ghostrank's; on a real network it is a program for DPDK,
// slot_max.spec, with slot_max.entries:
//
//   collectives: {plugins: [slot_max.so], allreduce: mine/slot-max}
//   switch: {target: dpdk, program: slot_max.spec, entries: slot_max.entries, ...}
//
// Floats travel as integers of the same order, so that the switch compares integers; a NaN without
// a sign is larger than everything.
#include <algorithm>

#include "collectives/plugin.h"
#include "collectives/slot_scheme.h"

namespace {
using namespace ghostrank;

constexpr SlotForm kForm{.name = "slot-max", .port = 0x51c0, .type = DataType::float32};
constexpr std::uint32_t kSign = 1u << 31;

class SlotMax final : public SlotScheme {
 public:
  SlotMax(int size, const Communicator& comm) : SlotScheme(size, comm, kForm) {}

  std::uint32_t to_wire(std::uint32_t bits) const override {
    return bits & kSign ? ~bits : bits | kSign;
  }
  std::uint32_t from_wire(std::uint32_t element) const override {
    return element & kSign ? element & ~kSign : ~element;
  }
  std::uint32_t combine(std::uint32_t a, std::uint32_t b) const override { return std::max(a, b); }
  bool sums() const override { return false; }
};

const Algorithm kRows[]{
    {.library = "mine",
     .func = Func::all_reduce,
     .name = "slot-max",
     .ends = [](int n, auto& comm) { return std::make_unique<SlotMax>(n, comm); }}};

}  // namespace

GHOSTRANK_PLUGIN(kRows)
