// Compares a real library's collectives with ghostrank's of the same name on the same links: the
// time of a call, and the bytes of every ordered pair. Both sides take turns in rounds; medians are
// compared.
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
  bool blocks = false;      // a Collective counts one rank's block, `size` is all blocks
  std::string algorithm{};  // a row's name; empty: the library's choice
  // Ranks meet before each call, and rank r begins it r * apart_ms later, so that chance does not
  // decide which is first. 0: each rank begins when its last call has ended.
  int apart_ms = 0;
};

struct Library {
  std::string name;   // as `collectives.library` has it
  std::string title;  // of its column
  Workers (*start)(testing::Lab& lab, int ranks);
  std::vector<Call> calls;
  std::vector<std::uint64_t> sizes;
  // TCP payload of one call of an algorithm (empty: the library's choice), headers included.
  std::function<Bytes(const Collective&, const std::string& algorithm)> payload;
  int barriers;  // barriers that each order adds around the timed calls
  double most;   // bound on the relative distance in time
  // The reason why the time of a call has no bound; empty: it has one.
  std::function<std::string(const Call&, int ranks)> unbounded;
  // Calls begin together instead of back to back: each of the library's after a barrier (their
  // median counts), and one of ghostrank's per round.
  bool separate = false;
};

// Times every call among `ranks` ranks on the lab's links. Each row starts new workers, so that its
// connections are as new as ghostrank's. Workers understand `collective NAME BYTES WARMUPS CALLS
// [ALGORITHM]`, `separate` with the same arguments for a separate library, and `apart` with
// milliseconds instead of the algorithm for calls with apart_ms. Returns the workers' hello.
json compare_calls(testing::Lab& lab, int ranks, const Library& library, std::vector<Row>& rows,
                   Findings& out);
Row heading(const Library& library);
std::vector<std::uint64_t> sizes_of(const Options& options);

}  // namespace ghostrank::fidelity
