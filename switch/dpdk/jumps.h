// Removes needless jumps. p4c writes every condition anew and skips blocks with two jumps; an
// interpreter pays for each.
//
//   jmpeq L A 0; ...; L : jmpeq M A 0       ->  jmpeq M A 0; ...   (its condition is known at L)
//   jmp L; ...; L : jmp M                   ->  jmp M; ...
//   jmplt T A 5; jmp E; T : ...             ->  jmpgt E A 4; T : ...
//
// Only jumps change, and they end where they ended before: a packet meets the same other
// instructions in the same order.
//
// Threading: pure function.
#pragma once

#include "switch/dpdk/spec.h"

namespace ghostrank::dpdk {

// Returns the number of jumps that were redirected or removed.
int shorten_jumps(Spec& spec);

}  // namespace ghostrank::dpdk
