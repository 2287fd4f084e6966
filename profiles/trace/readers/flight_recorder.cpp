// PyTorch's Flight Recorder, JSON dumps of versions 2.0 to 2.10, a file for each rank: the ring of
// the last calls of c10d.
//
//   {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
//    "entries": [{"record_id": 7, "process_group": ["0", "default_pg"], "collective_seq_id": 3,
//                 "p2p_seq_id": 0, "profiling_name": "nccl:all_reduce", "input_sizes": [[4, 8]],
//                 "input_dtypes": ["Float"], "output_sizes": [[4, 8]], "output_dtypes": ["Float"],
//                 "state": "completed", "is_p2p": false, ...}, ...]}
//
// Calls follow each other in the order in which the host made them; the times are the host's and
// are not used. Sends and receives of a batch stay "scheduled"; the wrapper "nccl:coalesced" that
// follows them, with the same numbers, completes for all of them. A call of a process group that a
// member with a file lacks, because its ring has dropped it or because it had not completed, is
// left out everywhere. The dump names no root: member 0. The pickled form is refused: loading a
// pickle runs what is in it.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "profiles/error.h"
#include "profiles/trace/json_stream.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/torch_names.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kMostNumber = std::int64_t{1} << 62;

struct Call {
  std::string group;
  std::int64_t sequence = 0;  // of collectives in their group
  TraceEvent event;
};

struct RankCalls {
  int rank = 0;
  std::string file;
  std::vector<Call> calls;
};

class Reader {
 public:
  Reader(Trace& trace, std::map<std::string, std::vector<WorldRank>>& groups, RankCalls& out)
      : trace_(trace), groups_(groups), out_(out) {}

  void run() {
    const std::string text = read_trace_file(out_.file);
    if (text.starts_with('\x80'))
      throw Error(out_.file +
                  ": byte 0: a pickle, and loading one runs what is in it; dump JSON "
                  "(torch._C._distributed_c10d._dump_nccl_trace_json)");
    const JsonTape json = parse_json(text, out_.file);
    json_ = &json;
    if (json.root().kind != JsonNode::Kind::object) fail("a dump is a JSON object");
    check_version(child(json.root(), "version"));
    if (const JsonNode* config = json.find(json.root(), "pg_config")) read_groups(*config);
    const JsonNode* entries = json.find(json.root(), "entries");
    if (!entries) return;
    if (entries->kind != JsonNode::Kind::array) fail("entries is no list");
    for (const JsonNode& entry : json.children(*entries)) {
      if (is_completed(entry) && name_of(entry) == kWrapper)
        completed_batches_.insert(numbers_of(entry));
      ++number_;
    }
    number_ = 0;
    for (const JsonNode& entry : json.children(*entries)) {
      take(entry);
      ++number_;
    }
  }

 private:
  static constexpr std::string_view kWrapper = "nccl:coalesced";
  struct Numbers {  // of an entry; a batch and its wrapper share them
    std::string group;
    std::int64_t collective = 0, transfer = 0;
    auto operator<=>(const Numbers&) const = default;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(out_.file + ": entry " + std::to_string(number_) + ": " + what);
  }
  const JsonNode& child(const JsonNode& object, std::string_view key) const {
    const JsonNode* value = json_->find(object, key);
    if (!value) fail(std::string(key) + " is missing");
    return *value;
  }
  std::string_view text(const JsonNode& value, const char* what) const {
    if (value.kind != JsonNode::Kind::string) fail(std::string(what) + " is no text");
    return value.text;
  }
  std::int64_t integer(const JsonNode& object, std::string_view key) const {
    const JsonNode& value = child(object, key);
    if (!value.is_integer() || value.integer < 0 || value.integer > kMostNumber)
      fail(std::string(key) + " is no integer from 0 to 2^62");
    return value.integer;
  }

  void check_version(const JsonNode& version) const {
    const std::string_view number = text(version, "version");
    if (!number.starts_with("2."))
      fail("version " + quote(number) + " is not read; 2.0 to 2.10 are");
  }

  // "[0, 1, 2]" as a text, or a list.
  std::vector<WorldRank> members(const JsonNode& ranks) const {
    std::vector<WorldRank> out;
    const auto add = [&](std::int64_t rank) {
      if (rank < 0 || rank >= kMostTraceRanks)
        fail("ranks of a process group: " + std::to_string(rank) + " is no rank");
      out.push_back(WorldRank(rank));
    };
    if (ranks.kind == JsonNode::Kind::array) {
      for (const JsonNode& one : json_->children(ranks)) add(one.is_integer() ? one.integer : -1);
    } else {
      std::int64_t number = -1;
      for (const char c : text(ranks, "ranks")) {
        if (c >= '0' && c <= '9') {
          number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
          if (number >= kMostTraceRanks) add(number);
        } else if (c == ',' || c == ']') {
          if (number >= 0) add(number);
          number = -1;
        } else if (c != '[' && c != ' ') {
          fail("ranks is no list of ranks");
        }
      }
    }
    if (std::set<WorldRank>(out.begin(), out.end()).size() != out.size())
      fail("a process group has a rank twice");
    return out;
  }

  void read_groups(const JsonNode& config) {
    if (config.kind != JsonNode::Kind::object) fail("pg_config is no object");
    for (const JsonNode& one : json_->children(config)) {
      if (one.kind != JsonNode::Kind::object) fail("pg_config: a process group is no object");
      const JsonNode* ranks = json_->find(one, "ranks");
      const JsonNode* name = json_->find(one, "name");
      const std::string called(name ? text(*name, "name") : one.key);
      std::vector<WorldRank> found = ranks ? members(*ranks) : std::vector<WorldRank>{};
      const auto [at, fresh] = groups_.try_emplace(called, found);
      if (!fresh && at->second != found)
        fail("process group " + quote(called) +
             " has other ranks than in another file; groups "
             "that share a name cannot be told apart");
    }
  }

  // Bytes of all tensors of one side.
  std::uint64_t bytes(const JsonNode& entry, const char* sizes, const char* types,
                      std::uint32_t& width) const {
    const JsonNode &dims = child(entry, sizes), &names = child(entry, types);
    if (dims.kind != JsonNode::Kind::array || names.kind != JsonNode::Kind::array)
      fail(std::string(sizes) + " and " + types + " are no lists");
    std::vector<std::string_view> type_of;
    for (const JsonNode& one : json_->children(names)) type_of.push_back(text(one, types));
    std::uint64_t sum = 0;
    std::size_t tensor = 0;
    for (const JsonNode& one : json_->children(dims)) {
      if (type_of.empty() || one.kind != JsonNode::Kind::array) fail("a tensor without a type");
      const auto element = torch_bytes(type_of[std::min(tensor++, type_of.size() - 1)]);
      if (!element) fail(quote(type_of[0]) + " is no type of elements");
      width = *element;
      std::uint64_t size = width;
      for (const JsonNode& dim : json_->children(one)) {
        if (!dim.is_integer() || dim.integer < 0) fail(std::string(sizes) + " has no size");
        const auto factor = static_cast<std::uint64_t>(dim.integer);
        if (factor > 0 && size > kMostTraceBytes / factor) fail("a tensor of more than 2^44 bytes");
        size *= factor;
      }
      sum += size;
      if (sum > kMostTraceBytes) fail("tensors of more than 2^44 bytes");
    }
    return sum;
  }

  void leave_out(const std::string& why) { ++trace_.left_out[why]; }

  bool is_completed(const JsonNode& entry) const {
    if (entry.kind != JsonNode::Kind::object) fail("no JSON object");
    return text(child(entry, "state"), "state") == "completed";
  }
  std::string_view name_of(const JsonNode& entry) const {
    return text(child(entry, "profiling_name"), "profiling_name");
  }
  Numbers numbers_of(const JsonNode& entry) {
    const bool transfers = json_->find(entry, "p2p_seq_id") != nullptr;
    return {group_of(entry), integer(entry, "collective_seq_id"),
            transfers ? integer(entry, "p2p_seq_id") : 0};
  }
  void take(const JsonNode& entry) {
    std::string_view name = name_of(entry);
    if (const auto colon = name.find(':'); colon != std::string_view::npos)
      name.remove_prefix(colon + 1);
    // NCCL has no barrier; PyTorch's is an all-reduce of one element, "nccl:all_reduce_barrier".
    if (constexpr std::string_view kBarrier = "_barrier"; name.ends_with(kBarrier))
      name.remove_suffix(kBarrier.size());
    const auto known = torch_call(name.substr(0, name.find(' ')));
    const bool sends = known && known->call == TorchCall::send;
    const bool transfers = sends || (known && known->call == TorchCall::recv);
    if (!is_completed(entry) && !(transfers && completed_batches_.contains(numbers_of(entry))))
      return leave_out("calls that had not completed");
    if (name.ends_with("coalesced") && !known) return leave_out("wrappers of coalesced calls");
    if (!transfers && (!known || known->call != TorchCall::collective))
      return leave_out("calls that are not played: " + std::string(name));
    Call call;
    call.event.position = number_;
    call.event.name = trace_.name(name);
    call.group = group_of(entry);
    call.sequence = integer(entry, "collective_seq_id");
    if (transfers)
      transfer(entry, name, sends, call);
    else
      collective(entry, known->func, call.event);
    out_.calls.push_back(std::move(call));
  }

  std::string group_of(const JsonNode& entry) {
    const JsonNode* named = json_->find(entry, "process_group");
    if (!named) named = json_->find(entry, "pg_name");
    if (!named || named->kind != JsonNode::Kind::array || named->size == 0)
      fail("process_group is no [name, description]");
    std::string name(text(*json_->children(*named).begin(), "process_group"));
    groups_.try_emplace(name);
    return name;
  }

  void collective(const JsonNode& entry, Func func, TraceEvent& event) const {
    event.kind = TraceEvent::Kind::collective;
    event.func = func == Func::all_to_all_v ? Func::all_to_all : func;
    if (func == Func::barrier) return;
    std::uint32_t width = 1;
    const std::uint64_t out = bytes(entry, "output_sizes", "output_dtypes", width);
    const std::uint64_t in = bytes(entry, "input_sizes", "input_dtypes", width);
    event.dtype = played_as(width);
    const bool of_output = func == Func::reduce_scatter || func == Func::scatter;
    event.stated = of_output ? out : in;
    event.blocks = of_output || func == Func::all_gather || func == Func::gather;
  }

  // "send 0->1", "recv 0<-1", positions in the group.
  void transfer(const JsonNode& entry, std::string_view name, bool sends, Call& call) {
    const std::size_t arrow = name.find(sends ? "->" : "<-");
    std::int64_t position = -1;
    if (arrow != std::string_view::npos) {
      position = 0;
      for (const char c : name.substr(arrow + 2))
        position = c >= '0' && c <= '9' && position >= 0 && position < kMostTraceRanks
                       ? position * 10 + (c - '0')
                       : -1;
      if (name.size() == arrow + 2) position = -1;
    }
    const auto& members = groups_.at(call.group);
    if (position < 0 || (!members.empty() && position >= static_cast<std::int64_t>(members.size())))
      fail(quote(name) + " names no member of its process group");
    call.event.kind = sends ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
    const WorldRank peer = members.empty() ? WorldRank(position) : members[position];
    call.event.peer = peer.value();
    if (call.event.peer == out_.rank) fail("a message of a rank to itself");
    std::uint32_t width = 1;
    call.event.stated = sends ? bytes(entry, "input_sizes", "input_dtypes", width)
                              : bytes(entry, "output_sizes", "output_dtypes", width);
    call.event.dtype = played_as(width);
  }

  Trace& trace_;
  std::map<std::string, std::vector<WorldRank>>& groups_;
  RankCalls& out_;
  const JsonTape* json_ = nullptr;
  std::uint64_t number_ = 0;             // of the entry
  std::set<Numbers> completed_batches_;  // their wrappers' numbers
};

// Collectives that every given member of their group has.
void drop_incomplete(const std::map<std::string, std::vector<WorldRank>>& groups,
                     std::vector<RankCalls>& ranks, Trace& trace) {
  std::map<std::pair<std::string, std::int64_t>, std::uint64_t> seen;
  std::map<std::string, std::uint64_t> given;
  for (const auto& [name, members] : groups)
    for (const RankCalls& one : ranks)
      given[name] += members.empty() || std::find(members.begin(), members.end(),
                                                  WorldRank(one.rank)) != members.end();
  for (const RankCalls& one : ranks)
    for (const Call& call : one.calls)
      if (call.event.kind == TraceEvent::Kind::collective) ++seen[{call.group, call.sequence}];
  for (RankCalls& one : ranks) {
    const auto lacking = std::erase_if(one.calls, [&](const Call& call) {
      return call.event.kind == TraceEvent::Kind::collective &&
             seen[{call.group, call.sequence}] < given[call.group];
    });
    if (lacking > 0)
      trace.left_out["calls that other members of the process group lack"] += lacking;
  }
}

void add_ranks(const std::map<std::string, std::vector<WorldRank>>& groups,
               const std::vector<RankCalls>& ranks, Trace& trace) {
  std::map<std::string, std::uint32_t> index;
  for (const auto& [name, members] : groups) {
    index[name] = static_cast<std::uint32_t>(trace.groups.size());
    trace.groups.push_back({name, members});
    for (const WorldRank member : members) trace.ranks = std::max(trace.ranks, member.value() + 1);
  }
  for (const RankCalls& one : ranks) {
    trace.ranks = std::max(trace.ranks, one.rank + 1);
    TraceRank& rank = trace.given.emplace_back();
    rank.rank = WorldRank(one.rank);
    rank.file = one.file;
    rank.tracks = {"compute"};
    std::vector<std::uint32_t> after;
    for (const Call& call : one.calls) {
      TraceEvent event = call.event;
      if (event.kind == TraceEvent::Kind::collective) event.group = index.at(call.group);
      after = {add_event(rank, event, after)};
      ++trace.used;
    }
  }
}

}  // namespace

Trace import_flight_recorder(const std::vector<std::string>& files, int) {
  Trace trace;
  trace.format = "flight-recorder";
  trace.unit = "nanoseconds of each host's clock, which are not used";
  trace.position_unit = "entry";
  trace.notes.emplace_back(
      "calls follow each other as the host made them: the ring has no times of devices");
  std::map<std::string, std::vector<WorldRank>> groups;
  std::vector<RankCalls> ranks;
  std::set<int> seen;
  for (const std::string& file : files) {
    const auto rank = rank_at_end(file);
    if (!rank && files.size() > 1)
      throw Error(file + ": which rank's dump is this? name the files ..._rank_0, ..._rank_1");
    if (!seen.insert(rank.value_or(0)).second)
      throw Error(file + ": a second dump of rank " + std::to_string(rank.value_or(0)));
    ranks.push_back({rank.value_or(0), file, {}});
    Reader(trace, groups, ranks.back()).run();
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankCalls& a, const RankCalls& b) { return a.rank < b.rank; });
  drop_incomplete(groups, ranks, trace);
  add_ranks(groups, ranks, trace);
  if (trace.used == 0) throw Error(files.front() + ": there is no call in it that can be played");
  return trace;
}

}  // namespace ghostrank
