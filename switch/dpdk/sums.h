// Shortens sums in registers to DPDK's instruction for them. P4 has no register that adds, so p4c
// writes three instructions where DPDK has one; in a program that sums they are most of the work.
//
//   regrd T R I; add T S; regwr R I T     ->  regadd R I S
//   regrd T R I; add F T; regwr R I F     ->  regadd R I F; regrd F R I
//
// It does so only if nothing can tell the difference: T's value is not read afterwards, nothing
// jumps into the middle, and every field that R is read into or written from is as wide as T, so
// that nobody sees the carry beyond it, which stays in DPDK's wider cells.
//
// Threading: pure function.
#pragma once

#include "switch/dpdk/spec.h"

namespace ghostrank::dpdk {

// Returns the number of shortened sums.
int shorten_sums(Spec& spec);

}  // namespace ghostrank::dpdk
