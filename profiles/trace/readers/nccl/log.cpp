// NCCL's log: NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,COLL, of all processes, in one file or in
// several.
//
//   host:pid:tid [dev] NCCL INFO comm 0x55d0 rank 0 nranks 2 ... commId 0x8ab5 - Init COMPLETE
//   host:pid:tid [dev] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7f count 2049000
//     datatype 7 op 0 root 0 comm 0x55d0 [nranks=2] stream 0x56                     (one line)
//
//   host:pid:tid [dev] NCCL INFO ncclCommSplit comm 0x56e0 rank 0 nranks 1 ... parent 0x55d0
//     splitCount 1 color 0 key 0 - Init COMPLETE                                    (one line)
//
// A communicator is an address in its process; the INIT lines say which rank it is, and of which
// commId, or of which parent it is a part: the color of its k-th split. With neither, the k-th
// communicator of a size in one process is the k-th of that size in all. Calls have no times
// (nccl/calls.h) and keep the order of the lines. Of a send or receive `root` is the peer.
//
// RCCL's calls end in "globalrank 3", the rank in the communicator, which is enough without INIT
// lines. Those that MSCCL or MSCCL++ plays are "mscclFuncAllReduce:" and "mscclpp_ncclAllReduce:".
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "profiles/error.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/nccl/calls.h"
#include "profiles/trace/readers/nccl/log_lines.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

// Bytes of NCCL's data types, by number.
constexpr std::array<std::uint64_t, 12> kBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

class LogReader {
 public:
  LogReader(const std::string& path, NcclRecords& out, Trace& trace)
      : path_(path), out_(out), trace_(trace) {}

  void run() {
    const std::string text = read_trace_file(path_);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      ++line_;
      take(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(path_ + ":" + std::to_string(line_) + ":1: " + what);
  }

  static std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> out;
    constexpr std::string_view kBlank = " \t\r";
    for (std::size_t at = 0; (at = text.find_first_not_of(kBlank, at)) != std::string_view::npos;) {
      const std::size_t end = std::min(text.find_first_of(kBlank, at), text.size());
      out.push_back(text.substr(at, end - at));
      at = end;
    }
    return out;
  }

  // The word behind `key`; empty: there is none.
  static std::string_view after(const std::vector<std::string_view>& words, std::string_view key) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == key) return words[i + 1];
    return {};
  }

  std::uint64_t number(const std::vector<std::string_view>& words, std::string_view key,
                       std::uint64_t most) const {
    const std::string_view text = after(words, key);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > most)
      fail(std::string(key) + " is no integer from 0 to " + std::to_string(most));
    return value;
  }

  void take(std::string_view line) {
    const std::vector<NcclLogRecord>& records = lines_.records_in(line);
    if (records.empty())
      ++trace_.left_out[line.find_first_not_of(" \t\r") == std::string_view::npos
                            ? "empty lines"
                            : "lines that are not NCCL's"];
    for (const NcclLogRecord& record : records) take_record(record);
  }

  void take_record(const NcclLogRecord& record) {
    auto words = words_of(record.body);
    // Some versions write a number in brackets before the call.
    if (words.size() > 1 && words[0].starts_with('[') && words[0].ends_with(']'))
      words.erase(words.begin());
    const bool names = !after(words, "comm").empty() && !after(words, "nranks").empty() &&
                       !after(words, "rank").empty();
    const std::string_view does = words.size() < 2 ? "" : words[words.size() - 2];
    if (names && does != "Destroy" && does != "Abort") return take_communicator(record, words);
    const std::string_view name = words.empty() ? "" : words[0];
    const std::uint32_t call = call_named(name);
    const bool counted = name.ends_with(':') && !after(words, "opCount").empty();
    if (counted && call != kUnknownCall) return take_call(record, words, call);
    ++trace_.left_out[counted ? "calls that are not played: " +
                                    std::string(name.substr(0, name.size() - 1))
                              : "lines of NCCL without a call or a communicator"];
  }

  static constexpr auto kUnknownCall = static_cast<std::uint32_t>(std::size(kNcclCalls));

  static std::uint32_t call_named(std::string_view word) {
    if (!word.ends_with(':')) return kUnknownCall;
    word.remove_suffix(1);
    if (word == "Send") return kNcclSend;
    if (word == "Recv") return kNcclRecv;
    for (const std::string_view library : {"mscclFunc", "mscclpp_nccl"})
      if (word.starts_with(library)) word.remove_prefix(library.size());
    std::uint32_t call = 0;
    while (call < std::size(kNcclCalls) && kNcclCalls[call].name != word) ++call;
    return call;
  }

  static std::optional<std::int64_t> id_in(std::string_view digits) {
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return id;
  }

  // The number of a record's process among all processes.
  std::uint32_t process_of(const NcclLogRecord& record) {
    if (!record.named)
      fail("there is no host:pid:tid before NCCL INFO; give the log as NCCL wrote it");
    return out_.process(record.host, record.pid);
  }

  void take_communicator(const NcclLogRecord& record, const std::vector<std::string_view>& words) {
    const std::uint32_t process = process_of(record);
    const auto ranks = number(words, "nranks", kMostTraceRanks);
    const auto rank = number(words, "rank", kMostTraceRanks);
    if (rank >= ranks) fail("rank " + std::to_string(rank) + " of nranks " + std::to_string(ranks));
    const std::string address(after(words, "comm"));
    // NCCL logs a communicator at the start and at the end of its initialization.
    const auto known = membership_of_.find({process, address});
    const bool again = known != membership_of_.end() && calls_of_[known->second].empty() &&
                       out_.memberships[known->second].rank == static_cast<std::int32_t>(rank);
    std::string id(after(words, "commId"));
    if (id.empty()) id = part_of_parent(process, words);
    ++trace_.used;
    join(process, address, id, rank, ranks, again);
  }

  // `id` is empty if the log does not say it; `again`: the communicator has been logged before.
  std::uint32_t join(std::uint32_t process, const std::string& address, std::string id,
                     std::uint64_t rank, std::uint64_t ranks, bool again) {
    if (id.empty())
      id = std::to_string(ranks) + " ranks, communicator " +
           std::to_string(again ? made_[{process, ranks}] : ++made_[{process, ranks}]);
    return membership_of_[{process, address}] =
               out_.join({id, "", static_cast<int>(ranks)}, static_cast<std::int32_t>(rank),
                         process, path_, [this](const std::string& what) { fail(what); });
  }

  // The name of a communicator that was split off another one; empty: it was not, or the lines of
  // its parent are missing.
  std::string part_of_parent(std::uint32_t process, const std::vector<std::string_view>& words) {
    const auto parent = membership_of_.find({process, std::string(after(words, "parent"))});
    if (parent == membership_of_.end()) return "";
    std::string_view count = after(words, "splitCount");
    if (count.empty()) count = after(words, "childCount");
    return out_.comms[out_.memberships[parent->second].comm].id + ", split " + std::string(count) +
           ", color " + std::string(after(words, "color"));
  }

  // The membership whose call this is.
  std::uint32_t membership_in(const NcclLogRecord& record,
                              const std::vector<std::string_view>& words) {
    const std::string address(after(words, "comm"));
    const std::uint32_t process = process_of(record);
    const auto known = membership_of_.find({process, address});
    if (known != membership_of_.end()) return known->second;
    if (after(words, "globalrank").empty())
      fail("communicator " + quote(address) +
           " has no line before that says its rank; log with NCCL_DEBUG_SUBSYS=INIT,COLL");
    std::uint64_t ranks = 0;
    for (const std::string_view word : words)
      if (constexpr std::string_view kKey = "[nranks="; word.starts_with(kKey))
        ranks = id_in(word.substr(kKey.size(), word.size() - kKey.size() - 1)).value_or(0);
    if (ranks < 1 || ranks > kMostTraceRanks) fail("[nranks=N] is no number of ranks");
    return join(process, address, "", number(words, "globalrank", ranks - 1), ranks, false);
  }

  void take_call(const NcclLogRecord& from, const std::vector<std::string_view>& words,
                 std::uint32_t call) {
    NcclRecord record;
    record.call = call;
    record.membership = membership_in(from, words);
    record.comm = out_.memberships[record.membership].comm;
    const std::uint64_t type = number(words, "datatype", kBytes.size() - 1);
    record.bytes = number(words, "count", kMostTraceBytes / kBytes[type]) * kBytes[type];
    record.peer =
        static_cast<std::int32_t>(number(words, "root", out_.comms[record.comm].ranks - 1));
    record.number = calls_of_[record.membership][call]++;
    record.line = line_;
    out_.records.push_back(record);
  }

  const std::string& path_;
  NcclRecords& out_;
  Trace& trace_;
  std::uint64_t line_ = 0;
  NcclLogLines lines_;
  // By process and address: the membership there now.
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> membership_of_;
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>>
      calls_of_;                                                 // by membership and call
  std::map<std::pair<std::uint32_t, std::uint64_t>, int> made_;  // how many, by process and ranks
};

}  // namespace

Trace import_nccl_log(const std::vector<std::string>& files, int) {
  Trace trace;
  trace.format = "nccl-log";
  trace.unit = "none";
  NcclRecords records;
  for (const std::string& file : files) LogReader(file, records, trace).run();
  import_records(records, files.front(), trace);
  return trace;
}

}  // namespace ghostrank
