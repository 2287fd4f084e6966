// NCCL Inspector's JSON lines, v4.0 to v4.3: completed collectives, sends and receives.
//
//   {"header": {"id": "0x7f", "rank": 2, "n_ranks": 8, ...}, "metadata": {"hostname", "pid", ...},
//    "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184,
//                  "coll_exec_time_us": 61974, "event_trace_ts": {"kernel_events": [...]}, ...}}
//
// Up to v4.2 every line has header and metadata; in v4.3 a dump_stats line has them for the lines
// after it. The communicator with most ranks is the job, and its ranks are the job's. The members
// of other communicators are found through the processes that are in both. Sizes are NCCL's counts:
// of an all-gather the rank's input, of a reduce-scatter its output.
//
// With event traces (NCCL_INSPECTOR_DUMP_VERBOSE=1) calls are ordered by the start of their
// kernels. Time before a call with no call in flight becomes a computation that follows all earlier
// calls. If the previous call is still in flight, the time between the two starts becomes a
// computation that runs beside it. Without event traces calls keep the order of the file, and there
// are no delays.
#include <algorithm>
#include <map>
#include <tuple>

#include "profiles/error.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/inspector_file.h"
#include "profiles/trace/readers/nccl_ranks.h"

namespace ghostrank {
namespace {

class Importer {
 public:
  Importer(const InspectorRecords& in, const std::string& path, Trace& trace)
      : in_(in), path_(path), trace_(trace) {}

  void run() {
    if (in_.records.empty())
      throw Error(path_ + ":1:1: there are no collectives, sends or receives in it");
    rank_of_membership_ = name_ranks(in_.comms, in_.memberships, path_, trace_);
    add_ranks();
    drop_incomplete();
    for (auto& [rank, records] : by_rank_) add_events(rank, records);
    for (const auto& [membership, dropped] : in_.dropped)
      if (dropped > 0) trace_.left_out["operations that the plugin dropped"] += dropped;
    if (roots_ > 0)
      trace_.notes.push_back(std::to_string(roots_) +
                             " calls have a root that the format does not name: member 0");
    if (untimed_ > 0)
      trace_.notes.push_back(
          std::to_string(untimed_) +
          " records have no event trace: they keep the order of the file, without delays");
  }

 private:
  void add_ranks() {
    for (const InspectorRecord& record : in_.records)
      by_rank_[rank_of_membership_[record.membership]].push_back(record);
    const auto earlier = [](const InspectorRecord& a, const InspectorRecord& b) {
      return a.start_us < b.start_us;
    };
    for (auto& [rank, records] : by_rank_)
      if (!std::is_sorted(records.begin(), records.end(), earlier))
        std::stable_sort(records.begin(), records.end(), earlier);
  }

  // Leaves out calls, by their number, that some member with a file lacks (rings overflow, or sizes
  // are below the bound), because they cannot be played.
  void drop_incomplete() {
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // comm, call, number
    const auto key = [](const InspectorRecord& record) {
      return Key{record.comm, record.call, record.number};
    };
    std::vector<Key> seen;  // sorted
    std::vector<std::ptrdiff_t> memberships(in_.comms.size());
    for (const InspectorMembership& membership : in_.memberships) ++memberships[membership.comm];
    if (std::all_of(memberships.begin(), memberships.end(), [](auto count) { return count < 2; }))
      return;
    for (const InspectorRecord& record : in_.records)
      if (record.call < kInspectorSend) seen.push_back(key(record));
    std::sort(seen.begin(), seen.end());
    std::uint64_t lacking = 0;
    for (auto& [rank, records] : by_rank_)
      lacking += std::erase_if(records, [&](const InspectorRecord& record) {
        const auto [from, to] = std::equal_range(seen.begin(), seen.end(), key(record));
        return record.call < kInspectorSend && to - from < memberships[record.comm];
      });
    if (lacking > 0) trace_.left_out["calls that other members of the communicator lack"] = lacking;
  }

  void add_events(WorldRank number, const std::vector<InspectorRecord>& records) {
    TraceRank& rank = trace_.given.emplace_back();
    rank.rank = number;
    rank.file = records.empty() ? path_ : in_.memberships[records.front().membership].file;
    rank.tracks = {"compute"};
    rank.events.reserve(2 * records.size());
    // Calls that nothing follows yet; events that the next call follows.
    std::vector<std::uint32_t> ended, before;
    std::int64_t last_start = -1, last_stop = -1;
    bool messages = false;  // the previous record is a message
    for (const InspectorRecord& record : records) {
      const bool timed = record.start_us >= 0;
      untimed_ += !timed;
      if (timed && last_start >= 0) {
        const bool idle = record.start_us >= last_stop;
        const std::int64_t gap = record.start_us - (idle ? last_stop : last_start);
        if (idle) before.insert(before.end(), ended.begin(), ended.end());
        if (idle) ended.clear();
        TraceEvent compute;
        compute.kind = gap > 0 ? TraceEvent::Kind::compute : TraceEvent::Kind::join;
        compute.duration = gap * kPicosPerMicro;
        compute.counted = false;
        compute.name = trace_.name("between calls");
        compute.position = record.line;
        before = {add_event(rank, compute, before)};
      }
      // Consecutive untimed messages are one NCCL group and start together.
      const bool grouped = record.call >= kInspectorSend && messages;
      if (!timed && !grouped) {
        before.insert(before.end(), ended.begin(), ended.end());
        ended.clear();
        if (before.size() > 1) before = {add_event(rank, join_at(record), before)};
      }
      messages = record.call >= kInspectorSend;
      ended.push_back(add_event(rank, event_of(record), before));
      if (timed) {
        last_start = record.start_us;
        last_stop = std::max(last_stop, record.stop_us);
      }
      ++trace_.used;
    }
  }

  TraceEvent join_at(const InspectorRecord& record) {
    TraceEvent join;
    join.name = trace_.name("between calls");
    join.position = record.line;
    return join;
  }

  TraceEvent event_of(const InspectorRecord& record) {
    TraceEvent event;
    event.group = record.comm;
    event.stated = record.bytes;
    event.position = record.line;
    if (record.start_us >= 0) event.duration = (record.stop_us - record.start_us) * kPicosPerMicro;
    if (record.call >= kInspectorSend) {
      const auto& members = trace_.groups[record.comm].members;
      event.kind = record.call == kInspectorSend ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
      event.peer = members.empty() ? record.peer : members[record.peer].value();
      event.name = trace_.name(record.call == kInspectorSend ? "Send" : "Recv");
      return event;
    }
    event.kind = TraceEvent::Kind::collective;
    event.func = kInspectorCalls[record.call].func;
    event.blocks = kInspectorCalls[record.call].blocks;
    event.name = trace_.name(kInspectorCalls[record.call].name);
    event.peer = std::max(record.peer, 0);
    const bool rooted = event.func == Func::broadcast || event.func == Func::reduce ||
                        event.func == Func::gather || event.func == Func::scatter;
    roots_ += rooted && record.peer < 0;
    return event;
  }

  const InspectorRecords& in_;
  const std::string& path_;  // of the first file, for errors
  Trace& trace_;
  std::vector<WorldRank> rank_of_membership_;
  std::map<WorldRank, std::vector<InspectorRecord>> by_rank_;
  std::uint64_t untimed_ = 0, roots_ = 0;
};

}  // namespace

void import_records(const InspectorRecords& records, const std::string& path, Trace& trace) {
  Importer(records, path, trace).run();
}

Trace import_inspector(const std::vector<std::string>& files, int) {
  Trace trace;
  trace.format = "inspector";
  trace.unit = "microseconds since 1970, of each host's clock";
  InspectorRecords records;
  for (const std::string& file : files) read_inspector(file, records);
  if (records.records.empty())
    throw Error(files.front() +
                ":1:1: there are no collectives, sends or receives in it; were all of them below "
                "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES?");
  trace.used = records.markers;
  if (records.proxy > 0) trace.left_out["records of proxy steps and operations"] = records.proxy;
  if (const std::uint64_t inferred = records.infer_sizes(); inferred > 0)
    trace.notes.push_back(std::to_string(inferred) +
                          " communicators whose size is not told have the ranks that are seen");
  import_records(records, files.front(), trace);
  return trace;
}

}  // namespace ghostrank
