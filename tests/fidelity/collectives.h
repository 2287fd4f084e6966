// Collectives of a real library beside ghostrank's of the same name, on the same links: time of a
// call, and the bytes of every ordered pair. Both take turns, in rounds, and medians are compared.
//
// Units: bytes, seconds. Threading: one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collectives/schedule.h"
#include "tests/fidelity/cases.h"

namespace ghostrank::fidelity {

struct Call {
  std::string name;
  Func func;
  bool blocks = false;      // a Collective's count is of one rank's block, and `size` of all blocks
  std::string algorithm{};  // a row's name; empty: the library's own choice
  // Ranks meet before each call, and rank r begins it r times so many milliseconds later, so that
  // who is first is no matter of chance; 0: they begin when their last one has ended.
  int apart_ms = 0;
};

struct Library {
  std::string name;   // as `collectives.library` has it
  std::string title;  // of its column
  Workers (*start)(testing::Lab& lab, int ranks);
  std::vector<Call> calls;
  std::vector<std::uint64_t> sizes;
  // What TCP carries for one call of an algorithm (empty: its own choice), headers included.
  std::function<Bytes(const Collective&, const std::string& algorithm)> payload;
  int barriers;  // calls without elements that each order puts around those that are timed
  double most;   // distance in time
  // Why a time is not bounded; empty where it is.
  std::function<std::string(const Call&, int ranks)> unbounded;
  // Calls are not back to back but begin together: the library's after a barrier each, of which the
  // median counts, and one of ghostrank's in a round.
  bool separate = false;
};

// Times every call among `ranks` on links as they are, each row with workers of its own, so that
// its connections are new, as ghostrank's are. They understand `collective NAME BYTES WARMUPS CALLS
// [ALGORITHM]`, `separate` for it where the library's calls are, and `apart` with the milliseconds
// in place of the algorithm where a call's ranks are. Returns what they say of themselves.
json compare_calls(testing::Lab& lab, int ranks, const Library& library, std::vector<Row>& rows,
                   Findings& out);
Row heading(const Library& library);
std::vector<std::uint64_t> sizes_of(const Options& options);

}  // namespace ghostrank::fidelity
