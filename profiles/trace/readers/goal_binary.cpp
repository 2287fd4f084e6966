// GOAL in the binary form of LogGOPSim's txt2bin. Little endian, packed:
//
//   u64 4223 | u32 ranks | u8 cpus | u8 nics | by rank: u64 first byte, u64 end, both from byte 8
//   a rank: u32 operations | u32 roots | u32 root ... | operations of 39 bytes | u32 appendix ...
//   an operation: u32 number of its dependencies | u8 1 send, 2 recv, 3 calc | u32 peer |
//     u64 bytes, of a calc nanoseconds | u32 tag | u8 cpu | u8 nic | u32 number, u32 offset in the
//     appendix of the operations that wait for its end | the same, that wait for its start
//
// Its meaning, and what is refused, are those of the text (goal.cpp).
#include <algorithm>
#include <cstring>

#include "profiles/error.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/goal_rank.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kBase = 8;  // the table's offsets count from behind the magic number
constexpr std::uint64_t kTable = kBase + 4 + 1 + 1;
constexpr std::uint64_t kOperation = 39;

struct Operation {
  std::uint32_t waits = 0, peer = 0, tag = 0;
  std::uint8_t type = 0, cpu = 0, nic = 0;
  std::uint64_t size = 0;
  std::uint32_t ends = 0, ends_at = 0, starts = 0, starts_at = 0;
};

class GoalBinaryReader {
 public:
  GoalBinaryReader(const std::string& path, Trace& trace)
      : path_(path), trace_(trace), bytes_(read_trace_file(path)) {}

  void run() {
    trace_.format = "goal";
    trace_.unit = "nanoseconds of computation; no clock";
    trace_.position_unit = "operation";
    const auto ranks = take<std::uint32_t>(kBase);
    if (ranks == 0 || ranks > kMostTraceRanks)
      fail(kBase, std::to_string(ranks) + " ranks; 1 to 2^24 are read");
    trace_.ranks = ranks;
    for (std::uint32_t r = 0; r < ranks; ++r) read_rank(WorldRank(r));
    if (nics_) trace_.notes.emplace_back("numbers of NICs are not used: a rank's NIC is its GPU's");
  }

 private:
  [[noreturn]] void fail(std::uint64_t at, const std::string& what) const {
    throw Error(path_ + ": byte " + std::to_string(at) + ": " + what);
  }

  template <class T>
  T take(std::uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T))
      fail(bytes_.size(), "the file ends inside a field");
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  Operation operation_at(std::uint64_t at) const {
    return {
        take<std::uint32_t>(at),      take<std::uint32_t>(at + 5),  take<std::uint32_t>(at + 17),
        take<std::uint8_t>(at + 4),   take<std::uint8_t>(at + 21),  take<std::uint8_t>(at + 22),
        take<std::uint64_t>(at + 9),  take<std::uint32_t>(at + 23), take<std::uint32_t>(at + 27),
        take<std::uint32_t>(at + 31), take<std::uint32_t>(at + 35)};
  }

  void read_rank(WorldRank number) {
    const std::uint64_t entry = kTable + 16 * number.index();
    const std::uint64_t begin = take<std::uint64_t>(entry), end = take<std::uint64_t>(entry + 8);
    if (begin > end || end > bytes_.size() - kBase) fail(entry, "a rank lies outside the file");
    const std::uint64_t at = kBase + begin;
    const auto operations = take<std::uint32_t>(at), roots = take<std::uint32_t>(at + 4);
    const std::uint64_t first = 8 + 4 * static_cast<std::uint64_t>(roots);
    const std::uint64_t size = first + kOperation * operations;
    if (size > end - begin) fail(at, "a rank has more operations than bytes");
    appendix_ = at + size;
    in_appendix_ = (end - begin - size) / 4;
    rank_ = &trace_.given.emplace_back();
    rank_->rank = number;
    rank_->file = path_;
    rank_->tracks = {"compute"};
    rank_->events.reserve(operations);
    dependencies_.clear();
    std::vector<std::uint32_t> waits(operations), listed(operations);
    for (std::uint32_t i = 0; i < operations; ++i) {
      const std::uint64_t where = at + first + kOperation * i;
      const Operation one = operation_at(where);
      waits[i] = one.waits;
      add_operation(where, i, one);
      add_waiting(where, i, one.ends, one.ends_at, false, listed);
      add_waiting(where, i, one.starts, one.starts_at, true, listed);
    }
    for (std::uint32_t i = 0; i < operations; ++i)
      if (waits[i] != listed[i])
        fail(at + first + kOperation * i, "an operation waits for " + std::to_string(waits[i]) +
                                              " others, and " + std::to_string(listed[i]) +
                                              " have it in their lists");
    trace_.used += operations + dependencies_.size();
    add_goal_dependencies(*rank_, dependencies_);
  }

  void add_operation(std::uint64_t where, std::uint32_t number, const Operation& one) {
    TraceEvent event;
    event.position = number;
    event.tag = one.tag;
    nics_ |= one.nic > 0;
    if (one.type == 3) {
      if (one.size > kMostTraceNanos) fail(where, "a computation of more than 10^15 ns");
      event.kind = TraceEvent::Kind::compute;
      event.duration = static_cast<Picoseconds>(one.size) * kPicosPerNano;
      event.tag = 0;
      if (one.cpu > 0) event.track = track_named(*rank_, "cpu " + std::to_string(one.cpu));
    } else if (one.type == 1 || one.type == 2) {
      event.kind = one.type == 1 ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
      if (one.size > kMostTraceBytes) fail(where, "a message of more than 2^44 bytes");
      if (one.peer == kNoIndex)
        fail(where, "a receive from anybody: the file does not say from whom; name the rank");
      if (one.tag == kNoIndex)
        fail(where, "a receive of any tag: the file does not say of which; name it");
      if (one.peer >= static_cast<std::uint32_t>(trace_.ranks))
        fail(where, "peer " + std::to_string(one.peer) + " is no rank of the file");
      event.peer = one.peer;
      if (event.peer == rank_->rank.value()) fail(where, "a message of a rank to itself");
      event.stated = one.size;
    } else {
      fail(where, "an operation of type " + std::to_string(one.type) +
                      "; 1 (send), 2 (recv) and 3 (calc) are read, as txt2bin of "
                      "LogGOPSim writes them; give the text of a file of another program");
    }
    event.name = trace_.name(one.type == 3 ? "calc" : one.type == 1 ? "send" : "recv");
    rank_->events.push_back(event);
  }

  // Reads a list in the appendix: the operations that wait for the operation `on`.
  void add_waiting(std::uint64_t where, std::uint32_t on, std::uint32_t count, std::uint32_t offset,
                   bool on_start, std::vector<std::uint32_t>& listed) {
    if (count == 0) return;
    if (offset > in_appendix_ || count > in_appendix_ - offset)
      fail(where, "a list lies outside the rank's appendix");
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto waiting =
          take<std::uint32_t>(appendix_ + 4 * (static_cast<std::uint64_t>(offset) + i));
      // Every dependency is listed once, so lists together are no longer than the appendix.
      if (waiting >= listed.size() || dependencies_.size() >= in_appendix_)
        fail(where, "a list names an operation that there is not, or is shared with another");
      ++listed[waiting];
      dependencies_.push_back({waiting, on, on_start});
    }
  }

  const std::string& path_;
  Trace& trace_;
  const std::string bytes_;
  std::uint64_t appendix_ = 0, in_appendix_ = 0;
  TraceRank* rank_ = nullptr;
  std::vector<GoalDependency> dependencies_;
  bool nics_ = false;
};

}  // namespace

Trace import_goal_binary(const std::string& path) {
  Trace trace;
  GoalBinaryReader(path, trace).run();
  return trace;
}

}  // namespace ghostrank
