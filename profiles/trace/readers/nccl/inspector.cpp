// NCCL Inspector's JSON lines, v4.0 to v4.4: completed collectives, sends and receives.
//
//   {"header": {"id": "0x7f", "rank": 2, "n_ranks": 8, ...}, "metadata": {"hostname", "pid", ...},
//    "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184,
//                  "coll_exec_time_us": 61974, "event_trace_ts": {"kernel_events": [...]}, ...}}
//
// Up to v4.2 every line has header and metadata; from v4.3 on a dump_stats line has them for the
// lines after it. The communicator with most ranks is the job, and its ranks are the job's. The
// members of other communicators are found through the processes that are in both. Sizes are NCCL's
// counts: of an all-gather the rank's input, of a reduce-scatter its output.
//
// With event traces (NCCL_INSPECTOR_DUMP_VERBOSE=1) kernels have times.
#include <algorithm>
#include <optional>

#include "profiles/error.h"
#include "profiles/trace/json_stream.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/nccl/calls.h"

namespace ghostrank {
namespace {

class InspectorReader {
 public:
  InspectorReader(const std::string& path, NcclRecords& out) : path_(path), out_(out) {}

  void run() {
    JsonLines lines(path_);
    JsonTape tape;
    while (next(lines, tape)) {
      line_ = lines.line();
      take(tape);
    }
  }

 private:
  // A process that is killed leaves its last line unfinished.
  bool next(JsonLines& lines, JsonTape& tape) try {
    return lines.next(tape);
  } catch (const Error&) {
    if (lines.whole()) throw;
    ++out_.broken_off;
    return false;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(path_ + ":" + std::to_string(line_) + ":1: " + what);
  }

  std::int64_t integer(const JsonTape& tape, const JsonNode& object, std::string_view key,
                       std::int64_t most) const {
    const JsonNode* value = tape.find(object, key);
    if (!value || !value->is_integer() || value->integer < 0 || value->integer > most)
      fail(std::string(key) + " is no integer from 0 to " + std::to_string(most));
    return value->integer;
  }

  std::string_view text(const JsonTape& tape, const JsonNode& object, std::string_view key) const {
    const JsonNode* value = tape.find(object, key);
    if (!value || value->kind != JsonNode::Kind::string) fail(std::string(key) + " is missing");
    return value->text;
  }

  void take(const JsonTape& tape) {
    const JsonNode& root = tape.root();
    if (root.kind != JsonNode::Kind::object) fail("a line is a JSON object");
    const JsonNode* header = tape.find(root, "header");
    const JsonNode* metadata = tape.find(root, "metadata");
    if (header) {
      if (!metadata) fail("a header without metadata");
      membership_ = membership_of(tape, *header, *metadata);
    }
    if (const JsonNode* stats = tape.find(root, "dump_stats")) return take_stats(tape, *stats);
    if (const JsonNode* perf = tape.find(root, "coll_perf")) return take_call(tape, *perf);
    if (const JsonNode* perf = tape.find(root, "p2p_perf")) return take_message(tape, *perf);
    if (tape.find(root, "proxy_trace") || tape.find(root, "record_type")) {
      ++out_.proxy;
      return;
    }
    fail("neither coll_perf nor p2p_perf, dump_stats or proxy_trace");
  }

  std::uint32_t membership_of(const JsonTape& tape, const JsonNode& header,
                              const JsonNode& metadata) {
    check_version(tape, metadata);
    const std::string_view id = text(tape, header, "id");
    const auto rank = integer(tape, header, "rank", kMostTraceRanks - 1);
    const auto ranks = integer(tape, header, "n_ranks", kMostTraceRanks);
    if (ranks > 0 && rank >= ranks)  // 0: NCCL has not told the plugin (before 2.27)
      fail("rank " + std::to_string(rank) + " of n_ranks " + std::to_string(ranks));
    const std::string_view host = text(tape, metadata, "hostname");
    const auto pid = integer(tape, metadata, "pid", std::int64_t{1} << 40);
    // Consecutive lines mostly belong to one membership.
    if (membership_ && last_id_ == id && last_rank_ == rank && last_pid_ == pid &&
        last_host_ == host)
      return *membership_;
    last_id_ = id;
    last_host_ = host;
    last_rank_ = rank;
    last_pid_ = pid;
    const JsonNode* name = tape.find(header, "comm_name");
    return out_.join({last_id_, name ? std::string(name->text) : "", static_cast<int>(ranks)},
                     static_cast<std::int32_t>(rank), out_.process(last_host_, pid), path_,
                     [this](const std::string& what) { fail(what); });
  }

  void check_version(const JsonTape& tape, const JsonNode& metadata) const {
    const JsonNode* version = tape.find(metadata, "inspector_output_format_version");
    constexpr std::string_view kKnown[] = {"v4.0", "v4.1", "v4.2", "v4.3", "v4.4"};
    if (!version ||
        std::find(std::begin(kKnown), std::end(kKnown), version->text) == std::end(kKnown))
      fail("inspector_output_format_version " + quote(version ? version->text : "") +
           " is not read; v4.0 to v4.4 are");
  }

  void take_stats(const JsonTape& tape, const JsonNode& stats) {
    if (!membership_) fail("dump_stats without a header");
    std::uint64_t dropped = 0;
    for (const char* key : {"coll_dropped_total", "p2p_dropped_total"})
      if (const JsonNode* value = tape.find(stats, key);
          value && value->is_integer() && value->integer > 0)
        dropped += value->integer;
    out_.dropped[*membership_] = dropped;  // replaces the communicator's earlier total
    ++out_.markers;
  }

  NcclRecord record_of(const JsonTape& tape, const JsonNode& perf, const std::string& kind) const {
    if (!membership_) fail("a record before any header: v4.3 has it in the dump_stats line before");
    NcclRecord record;
    record.membership = *membership_;
    record.comm = out_.memberships[*membership_].comm;
    record.number = integer(tape, perf, kind + "_sn", std::int64_t{1} << 62);
    record.bytes = integer(tape, perf, kind + "_msg_size_bytes", kMostTraceBytes);
    record.line = line_;
    if (const JsonNode* times = tape.find(perf, "event_trace_ts"))
      take_times(tape, *times, kind, record);
    return record;
  }

  // A record's time is from the start of the first channel's kernel to the end of the last one's.
  void take_times(const JsonTape& tape, const JsonNode& times, const std::string& kind,
                  NcclRecord& record) const {
    constexpr std::int64_t kLatestMicros = std::int64_t{1} << 53;
    const std::string enqueued = kind + "_start_ts";
    if (tape.find(times, enqueued))
      record.enqueued_us = integer(tape, times, enqueued, kLatestMicros);
    const JsonNode* events = tape.find(times, "kernel_events");
    if (!events) return;
    for (const JsonNode& one : tape.children(*events)) {
      const auto start = integer(tape, one, "kernel_start_ts", kLatestMicros);
      const auto stop = integer(tape, one, "kernel_stop_ts", kLatestMicros);
      if (start == 0 || stop < start) continue;
      record.start_us = record.start_us < 0 ? start : std::min(record.start_us, start);
      record.stop_us = std::max(record.stop_us, stop);
    }
  }

  void take_call(const JsonTape& tape, const JsonNode& perf) {
    NcclRecord record = record_of(tape, perf, "coll");
    const std::string_view name = text(tape, perf, "coll");
    while (record.call < std::size(kNcclCalls) && kNcclCalls[record.call].name != name)
      ++record.call;
    if (record.call == std::size(kNcclCalls))
      fail("coll " + quote(name) + " is no collective of NCCL");
    if (tape.find(perf, "coll_root"))
      record.peer = static_cast<std::int32_t>(integer(tape, perf, "coll_root", most_rank(record)));
    out_.records.push_back(record);
  }

  void take_message(const JsonTape& tape, const JsonNode& perf) {
    NcclRecord record = record_of(tape, perf, "p2p");
    const std::string_view name = text(tape, perf, "p2p");
    if (name != "Send" && name != "Recv") fail("p2p " + quote(name) + " is neither Send nor Recv");
    record.call = name == "Send" ? kNcclSend : kNcclRecv;
    record.peer = static_cast<std::int32_t>(integer(tape, perf, "p2p_peer", most_rank(record)));
    out_.records.push_back(record);
  }

  std::int64_t most_rank(const NcclRecord& record) const {
    const int ranks = out_.comms[record.comm].ranks;
    return ranks > 0 ? ranks - 1 : static_cast<std::int64_t>(kMostTraceRanks) - 1;
  }

  const std::string& path_;
  NcclRecords& out_;
  std::uint64_t line_ = 0;
  std::optional<std::uint32_t> membership_;  // of the lines that follow
  std::string last_id_, last_host_;
  std::int64_t last_rank_ = -1, last_pid_ = -1;
};

}  // namespace

Trace import_inspector(const std::vector<std::string>& files, int) {
  Trace trace;
  trace.format = "inspector";
  trace.unit = "microseconds since 1970, of each host's clock";
  NcclRecords records;
  for (const std::string& file : files) InspectorReader(file, records).run();
  if (records.records.empty())
    throw Error(files.front() +
                ":1:1: there are no collectives, sends or receives in it; were all of them below "
                "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES?");
  trace.used = records.markers;
  if (records.proxy > 0) trace.left_out["records of proxy steps and operations"] = records.proxy;
  if (records.broken_off > 0) trace.left_out["lines that break off"] = records.broken_off;
  if (const std::uint64_t inferred = records.infer_sizes(); inferred > 0)
    trace.notes.push_back(std::to_string(inferred) +
                          " communicators whose size is not told have the ranks that are seen");
  import_records(records, files.front(), trace);
  return trace;
}

}  // namespace ghostrank
