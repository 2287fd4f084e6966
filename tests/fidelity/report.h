// The result of a case: a section of docs/accuracy.md, and the bounds that did not hold.
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
  std::string section;              // of the document; empty: the case's name
  std::vector<std::string> misses;  // bounds that did not hold, as sentences
};

using report::markdown_line;
using report::markdown_table;
using report::Row;

std::string milliseconds(double seconds);  // "12.3 ms"
std::string percent(double share);         // "+0.12 %"
std::string megabits(double bits_per_second);

// Bounds the relative distance |ours / theirs - 1| by `most`; adds a miss if it is larger. Returns
// ours / theirs - 1.
double hold(Findings& findings, const std::string& what, double ours, double theirs, double most);

// The bytes of every ordered pair must be equal; adds a miss for each that is not.
void hold_bytes(Findings& findings, const std::string& what, const Bytes& ours,
                const Bytes& theirs);

}  // namespace ghostrank::fidelity
