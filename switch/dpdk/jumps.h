// Jumps that lead nowhere new. p4c writes every condition anew and goes around blocks by two jumps;
// an interpreter pays for each.
//
//   jmpeq L A 0; ...; L : jmpeq M A 0       ->  jmpeq M A 0; ...   (known where it comes from)
//   jmp L; ...; L : jmp M                   ->  jmp M; ...
//   jmplt T A 5; jmp E; T : ...             ->  jmpgt E A 4; T : ...
//
// Only jumps change, and only to where they would have led: what is done to a packet, and in which
// order, stays.
//
// Threading: pure function.
#pragma once

#include "switch/dpdk/spec.h"

namespace ghostrank::dpdk {

// Returns how many jumps lead elsewhere now or are gone.
int shorten_jumps(Spec& spec);

}  // namespace ghostrank::dpdk
