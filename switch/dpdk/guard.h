// Adds a guard against old packets to the program that p4c made of p4/pna_dpdk.p4: what
// switch/pool.h says of guarded pools, in DPDK's instructions, before the program looks at its
// marks. The P4 sources themselves have no guard, and neither have their other targets.
//
//   guard_numbers    a register array beside marks_marks: the number of the packets of a set's
//                    round, plus kBegun once there was one
//   kGuarded         bit of a source's `again`: its job is guarded, any other passes at the cost of
//                    one instruction
//
// An old packet is counted as a duplicate and dropped. Threading: pure function.
#pragma once

#include <cstdint>
#include <string_view>

#include "switch/dpdk/spec.h"

namespace ghostrank::dpdk {

inline constexpr std::string_view kGuardNumbers = "guard_numbers";
inline constexpr std::uint32_t kGuarded = 1U << 31;

// Returns false, and leaves the program as it is, where it is not one made of p4/pna_dpdk.p4. Call
// it before shorten_sums() and shorten_jumps().
bool add_guard(Spec& spec);

}  // namespace ghostrank::dpdk
