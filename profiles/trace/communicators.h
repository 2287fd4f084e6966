// The communicators of a trace as the groups of a Workload: which of them share a kind, and where
// the communicators of ranks without a trace lie.
//
// First fit: a communicator joins the first kind that has its size and none of its members, first
// of those with a name like its own ("pp_1": "pp_0"). So do those of missing ranks that the file
// names; others repeat a given one, shifted: n members a, a + s, a + 2 s, ... tile the job in
// blocks of n s ranks. Where they do not, and the file says which ranks do the same as a given one,
// those have its communicators, moved along. Errors: Error(usage). Threading: plain values.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiles/trace/order.h"
#include "profiles/trace/trace.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class Communicators {
 public:
  // Adds to `out` the groups that the collectives of `order` use.
  Communicators(const Trace& trace, const TraceOrder& order, int ranks, Workload& out);
  // Adds one kind of group that holds all ranks for every tag of messages.
  void add_messages(std::uint16_t tags, Workload& out);

  std::uint16_t kind(std::uint32_t group) const;  // kNoIndex: all ranks
  std::uint16_t messages(std::uint16_t tag) const { return first_of_messages_ + tag; }
  std::uint64_t inferred() const { return inferred_; }

 private:
  std::uint16_t add_kind(const std::string& name, Workload& out);
  // `like`: only kinds that have a communicator of such a name. 0xffff: there is none.
  std::uint16_t first_fit(const std::string& name, const std::vector<WorldRank>& members,
                          bool like) const;
  void join(std::uint16_t kind, const std::string& name, const std::vector<WorldRank>& members,
            Workload& out);
  void place_named(const Trace& trace, Workload& out);
  void infer_missing(const Trace& trace, std::uint16_t kind, Workload& out);
  using Members = std::vector<std::vector<WorldRank>>;  // by communicator
  std::optional<Members> tiles(std::uint16_t kind, const Workload& out, std::string& why) const;
  std::optional<Members> moved_along(const Trace& trace, std::uint16_t kind,
                                     const Workload& out) const;

  std::vector<std::uint16_t> kind_;  // by group; the last entry is the group of all ranks
  std::vector<VectorBy<WorldRank, bool>> taken_;  // by kind: a group of the kind has the rank
  std::vector<std::size_t> size_;                 // by kind
  std::set<std::pair<std::string, std::uint16_t>> kinds_of_;  // by name without its number
  std::uint16_t first_of_messages_ = 0;                       // kind
  std::uint64_t inferred_ = 0;  // communicators added for missing ranks
};

}  // namespace ghostrank
