// What a case found: a section of docs/accuracy.md between markers, and whether every bound held.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "tests/fidelity/peers.h"
#include "tools/measure/markdown.h"

namespace ghostrank::fidelity {

struct Findings {
  std::string markdown;
  std::string section;              // of the document; empty: the one named like the case
  std::vector<std::string> misses;  // bounds that did not hold, as sentences
};

using report::markdown_line;
using report::markdown_table;
using report::Row;

std::string milliseconds(double seconds);  // "12.3 ms"
std::string percent(double share);         // "+0.12 %"
std::string megabits(double bits_per_second);

// A bound on the distance of two figures; adds a miss where it does not hold. Returns the distance.
double hold(Findings& findings, const std::string& what, double ours, double theirs, double most);

// Bytes of every ordered pair, which must be equal.
void hold_bytes(Findings& findings, const std::string& what, const Bytes& ours,
                const Bytes& theirs);

}  // namespace ghostrank::fidelity
