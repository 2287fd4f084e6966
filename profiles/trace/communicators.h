// The communicators of a trace as the groups of a Workload: which of them are of one kind, and
// where those of ranks lie that the trace does not have.
//
// A kind is found by first fit: a communicator joins the first kind that has its size and none of
// its members. Communicators of missing ranks are those of the given ones moved along: members
// a, a + s, a + 2 s, ... tile the job in blocks of n s ranks. Threading: plain values.
#pragma once

#include <string>
#include <vector>

#include "profiles/trace/order.h"
#include "profiles/trace/trace.h"
#include "profiles/workload/program.h"

namespace ghostrank {

class Communicators {
 public:
  // Adds the groups that the events of `order` use to `out`, also one kind for every lane of
  // messages, which holds all ranks.
  Communicators(const Trace& trace, const TraceOrder& order, int ranks, Workload& out);

  std::uint16_t kind(std::uint32_t group) const;  // kNoIndex: all ranks
  std::uint16_t messages(std::uint16_t lane) const { return first_lane_ + lane; }
  std::uint64_t inferred() const { return inferred_; }

 private:
  std::uint16_t add_kind(const std::string& name, Workload& out);
  void place(std::uint32_t group, const std::vector<Rank>& members, Workload& out);
  void infer_missing(const Trace& trace, std::uint16_t kind, Workload& out);

  std::vector<std::uint16_t> kind_;       // by group, the last one of all ranks
  std::vector<std::vector<bool>> taken_;  // by kind and rank
  std::vector<std::size_t> size_;         // by kind
  std::uint16_t first_lane_ = 0;
  std::uint64_t inferred_ = 0;  // communicators that were moved along
};

}  // namespace ghostrank
