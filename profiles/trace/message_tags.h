// The tags with which the messages of a trace are played. Between two ranks, those of one tag are
// matched in the order in which the two come to them as they play.
//
// So two messages share a tag only where that order is sure, because at both ends the earlier one
// has ended when the later one starts, or where it is that of the trace: they have its tag and
// their bytes in common. Messages that the file matches otherwise than the order of
// TraceOrder::sequence never share one. Threading: pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profiles/trace/order.h"
#include "profiles/trace/trace.h"

namespace ghostrank {

struct MessageTags {
  std::vector<std::vector<std::uint16_t>> of;  // by given rank and event; empty: all are 0
  std::uint16_t count = 1;
};

// True if `earlier` has always ended when `later` starts: events of one step of a given rank.
using Follows = std::function<bool(std::uint32_t rank, std::uint32_t earlier, std::uint32_t later)>;

// `sequences`: TraceOrder::sequence by given rank and step. Throws Error(usage) if a pair of ranks
// needs too many tags.
MessageTags message_tags(const Trace& trace, const TraceOrder& order,
                         const std::vector<std::vector<std::vector<std::uint32_t>>>& sequences,
                         const Follows& follows);

}  // namespace ghostrank
