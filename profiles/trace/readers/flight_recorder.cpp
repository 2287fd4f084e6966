// PyTorch's Flight Recorder, JSON or pickled dumps of versions 2.0 to 2.10, a file for each rank:
// the ring of the last calls of c10d or of torchcomms.
//
//   {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
//    "entries": [{"record_id": 7, "process_group": ["0", "default_pg"], "collective_seq_id": 3,
//                 "p2p_seq_id": 0, "profiling_name": "nccl:all_reduce", "input_sizes": [[4, 8]],
//                 "input_dtypes": ["Float"], "output_sizes": [[4, 8]], "output_dtypes": ["Float"],
//                 "state": "completed", "is_p2p": false, ...}, ...]}
//
// Calls follow each other in the order in which the host made them; the times are the host's and
// are not used. Sends and receives of a batch start together and stay "scheduled"; the wrapper
// "nccl:coalesced" that follows them, with the same numbers, completes for all of them. A coalesced
// collective ("nccl:allreduce_coalesced") is one call of NCCL for each tensor, all in one
// ncclGroup. A call of a process group that a member with a file lacks, because its ring has
// dropped it or because it had not completed, is left out everywhere. So are sends and receives
// that the other end lacks: the first ones where its ring has dropped entries, else the last ones.
// The dump names no root; member 0 is assumed, and a note says so. A pickled dump, as a process
// writes when it times out, has the same values (pickle.h).
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "profiles/error.h"
#include "profiles/trace/json_stream.h"
#include "profiles/trace/pickle.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/torch_names.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kMostNumber = std::int64_t{1} << 62;

struct Numbers {  // of an entry; a batch and its wrapper share them
  std::string group;
  std::int64_t collective = 0, transfer = 0;
  auto operator<=>(const Numbers&) const = default;
};

// What starts together: the calls of one entry, or the entries of a batch.
struct Call {
  Numbers numbers;
  bool open = false;  // a batch whose wrapper has not come
  std::uint64_t entries = 1;
  std::vector<TraceEvent> events;
  bool is_collective() const { return events[0].kind == TraceEvent::Kind::collective; }
};

struct RankCalls {
  int rank = 0;
  std::string file;
  std::vector<Call> calls;
  bool wrapped = false;  // the ring has dropped entries
};

class DumpReader {
 public:
  DumpReader(Trace& trace, std::map<std::string, std::vector<WorldRank>>& groups, RankCalls& out)
      : trace_(trace), groups_(groups), out_(out) {}

  void run() {
    const std::string text = read_trace_file(out_.file);
    if (is_old_pickle(text))
      fail("a pickle of protocol 0 or 1; write it with protocol 2 to 5, or as JSON");
    // Entries share the frames of their stacks, so written out they would be most of a dump.
    const JsonTape json = text.starts_with('\x80') ? json_of_pickle(text, out_.file, "frames")
                                                   : parse_json(text, out_.file);
    json_ = &json;
    if (json.root().kind != JsonNode::Kind::object) fail("a dump is a JSON object");
    check_version(child(json.root(), "version"));
    if (const JsonNode* config = json.find(json.root(), "pg_config")) read_groups(*config);
    const JsonNode* entries = json.find(json.root(), "entries");
    if (!entries) return;
    if (entries->kind != JsonNode::Kind::array) fail("entries is no list");
    in_entries_ = true;
    for (const JsonNode& entry : json.children(*entries)) {
      if (is_completed(entry) && call_in(entry) == kWrapper)
        completed_batches_.insert(numbers_of(entry));
      ++number_;
    }
    number_ = 0;
    for (const JsonNode& entry : json.children(*entries)) {
      if (number_ == 0 && json.find(entry, "record_id"))
        out_.wrapped = integer(entry, "record_id") > 0;
      take(entry);
      ++number_;
    }
  }

 private:
  static constexpr std::string_view kWrapper = "coalesced";

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(out_.file + (in_entries_ ? ": entry " + std::to_string(number_) : "") + ": " +
                what);
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
      std::vector<WorldRank>& known = groups_[called];  // empty: no file has said them yet
      if (known.empty()) known = found;
      if (!found.empty() && known != found)
        fail("process group " + quote(called) +
             " has other ranks than in another file; groups "
             "that share a name cannot be told apart");
    }
  }

  struct Tensor {
    std::uint64_t bytes = 0;
    std::uint32_t width = 1;  // of an element
  };
  // The tensors of one side of an entry.
  std::vector<Tensor> tensors(const JsonNode& entry, const char* sizes, const char* types) const {
    const JsonNode &dims = child(entry, sizes), &names = child(entry, types);
    if (dims.kind != JsonNode::Kind::array || names.kind != JsonNode::Kind::array)
      fail(std::string(sizes) + " and " + types + " are no lists");
    std::vector<std::string_view> type_of;
    for (const JsonNode& one : json_->children(names)) type_of.push_back(text(one, types));
    std::vector<Tensor> out;
    std::uint64_t sum = 0;
    for (const JsonNode& one : json_->children(dims)) {
      if (type_of.empty() || one.kind != JsonNode::Kind::array) fail("a tensor without a type");
      const std::string_view type = type_of[std::min(out.size(), type_of.size() - 1)];
      const auto element = torch_bytes(type);
      if (!element) fail(quote(type) + " is no type of elements");
      std::uint64_t size = *element;
      for (const JsonNode& dim : json_->children(one)) {
        if (!dim.is_integer() || dim.integer < 0) fail(std::string(sizes) + " has no size");
        const std::uint64_t factor = dim.integer;
        if (factor > 0 && size > kMostTraceBytes / factor) fail("a tensor of more than 2^44 bytes");
        size *= factor;
      }
      out.push_back({size, *element});
      sum += size;
      if (sum > kMostTraceBytes) fail("tensors of more than 2^44 bytes");
    }
    return out;
  }

  // All tensors as one, with the element width of the last.
  static Tensor joined(const std::vector<Tensor>& tensors) {
    Tensor all;
    for (const Tensor& one : tensors) all = {all.bytes + one.bytes, one.width};
    return all;
  }

  void leave_out(const std::string& why) { ++trace_.left_out[why]; }

  bool is_completed(const JsonNode& entry) const {
    if (entry.kind != JsonNode::Kind::object) fail("no JSON object");
    return text(child(entry, "state"), "state") == "completed";
  }
  // The call in "nccl:all_reduce"; the backend may also be gloo, xccl or one of torchcomms.
  std::string_view call_in(const JsonNode& entry) const {
    const std::string_view name = text(child(entry, "profiling_name"), "profiling_name");
    return name.substr(name.rfind(':') + 1);
  }
  Numbers numbers_of(const JsonNode& entry) {
    const bool transfers = json_->find(entry, "p2p_seq_id") != nullptr;
    return {group_of(entry), integer(entry, "collective_seq_id"),
            transfers ? integer(entry, "p2p_seq_id") : 0};
  }
  void take(const JsonNode& entry) {
    std::string_view name = call_in(entry);
    // NCCL has no barrier; PyTorch's is an all-reduce of one element, "nccl:all_reduce_barrier".
    if (constexpr std::string_view kBarrier = "_barrier"; name.ends_with(kBarrier))
      name.remove_suffix(kBarrier.size());
    const auto known = torch_call(name.substr(0, name.find(' ')));
    const bool sends = known && known->call == TorchCall::send;
    const bool transfers = sends || (known && known->call == TorchCall::recv);
    const Numbers numbers = numbers_of(entry);
    const bool batched = transfers && completed_batches_.contains(numbers);
    if (!is_completed(entry) && !batched) return leave_out("calls that had not completed");
    if (name == kWrapper) {
      if (!out_.calls.empty()) out_.calls.back().open = false;
      return leave_out("wrappers of coalesced calls");
    }
    if (!transfers && (!known || known->call != TorchCall::collective))
      return leave_out("calls that are not played: " + std::string(name));
    if (transfers && name.find(sends ? "->" : "<-") == std::string_view::npos)  // of torchcomms
      return leave_out("sends and receives whose peer the dump does not say");
    TraceEvent event;
    event.position = number_;
    event.name = trace_.name(name);
    if (!transfers) {
      out_.calls.push_back({numbers, false, 1,
                            collectives(entry, known->func, name.ends_with("_coalesced"), event)});
      return;
    }
    transfer(entry, name, sends, event);
    Call* const last = out_.calls.empty() ? nullptr : &out_.calls.back();
    if (batched && last && last->open && last->numbers == numbers) {
      last->events.push_back(event);
      ++last->entries;
    } else {
      out_.calls.push_back({numbers, batched, 1, {event}});
    }
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

  // The calls of an entry, each as `event` but for what the entry says of its tensors.
  std::vector<TraceEvent> collectives(const JsonNode& entry, Func func, bool coalesced,
                                      TraceEvent event) const {
    event.kind = TraceEvent::Kind::collective;
    event.func = func == Func::all_to_all_v ? Func::all_to_all : func;
    if (func == Func::barrier) return {event};
    const bool of_output = func == Func::reduce_scatter || func == Func::scatter;
    event.blocks = of_output || func == Func::all_gather || func == Func::gather;
    std::vector<Tensor> sized = of_output ? tensors(entry, "output_sizes", "output_dtypes")
                                          : tensors(entry, "input_sizes", "input_dtypes");
    if (!coalesced || sized.empty()) sized = {joined(sized)};
    std::vector<TraceEvent> calls;
    for (const Tensor& one : sized) {
      event.stated = one.bytes;
      event.dtype = played_as(one.width);
      event.with_next = calls.size() + 1 < sized.size();
      calls.push_back(event);
    }
    return calls;
  }

  // "send 0->1", "recv 0<-1": the peer is a position in the group, see resolve_peers().
  void transfer(const JsonNode& entry, std::string_view name, bool sends, TraceEvent& event) const {
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
    if (position < 0 || position >= kMostTraceRanks)
      fail(quote(name) + " names no member of its process group");
    event.kind = sends ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
    event.peer = static_cast<std::int32_t>(position);
    const Tensor moved = joined(sends ? tensors(entry, "input_sizes", "input_dtypes")
                                      : tensors(entry, "output_sizes", "output_dtypes"));
    event.stated = moved.bytes;
    event.dtype = played_as(moved.width);
  }

  Trace& trace_;
  std::map<std::string, std::vector<WorldRank>>& groups_;
  RankCalls& out_;
  const JsonTape* json_ = nullptr;
  bool in_entries_ = false;              // else what is wrong is of the whole dump
  std::uint64_t number_ = 0;             // of the entry
  std::set<Numbers> completed_batches_;  // their wrappers' numbers
};

// Makes the peers of sends and receives ranks of the job. Any file may say the members of a group.
void resolve_peers(const std::map<std::string, std::vector<WorldRank>>& groups,
                   std::vector<RankCalls>& ranks, const Trace& trace) {
  for (RankCalls& one : ranks)
    for (Call& call : one.calls) {
      if (call.is_collective()) continue;
      const std::vector<WorldRank>& members = groups.at(call.numbers.group);
      for (TraceEvent& event : call.events) {
        const auto fail = [&](const std::string& what) {
          throw Error(one.file + ": entry " + std::to_string(event.position) + ": " + what);
        };
        if (!members.empty() && event.peer >= std::ssize(members))
          fail(quote(trace.names[event.name]) + " names no member of its process group");
        if (!members.empty()) event.peer = members[event.peer].value();
        if (event.peer == one.rank) fail("a message of a rank to itself");
      }
    }
}

// Leaves out collectives that a given member of their group lacks. Those of one coalesced launch
// share a number.
void drop_incomplete(const std::map<std::string, std::vector<WorldRank>>& groups,
                     std::vector<RankCalls>& ranks, Trace& trace) {
  using Key = std::pair<std::string, std::int64_t>;
  std::map<Key, std::map<int, std::uint64_t>> seen;  // how many, by rank
  std::map<std::string, std::uint64_t> given;
  for (const auto& [name, members] : groups)
    for (const RankCalls& one : ranks)
      given[name] += members.empty() || std::find(members.begin(), members.end(),
                                                  WorldRank(one.rank)) != members.end();
  for (const RankCalls& one : ranks)
    for (const Call& call : one.calls)
      if (call.is_collective()) ++seen[{call.numbers.group, call.numbers.collective}][one.rank];
  const auto is_complete = [&](const Key& key) {
    const std::map<int, std::uint64_t>& counts = seen[key];
    return counts.size() >= given[key.first] && std::ranges::all_of(counts, [&](const auto& count) {
             return count.second == counts.begin()->second;
           });
  };
  for (RankCalls& one : ranks) {
    const auto lacking = std::erase_if(one.calls, [&](const Call& call) {
      return call.is_collective() && !is_complete({call.numbers.group, call.numbers.collective});
    });
    if (lacking > 0)
      trace.left_out["calls that other members of the process group lack"] += lacking;
  }
}

// Leaves out sends and receives that the rank at the other end lacks, if it is given.
void drop_unmatched(std::vector<RankCalls>& ranks, Trace& trace) {
  using Ends = std::tuple<std::string, int, int>;  // process group, sender, receiver
  std::map<Ends, std::array<std::int64_t, 2>> of;  // how many receives, sends
  std::map<int, bool> wrapped;                     // by given rank
  const auto is_send = [](const TraceEvent& e) { return e.kind == TraceEvent::Kind::send; };
  const auto ends_of = [&](const RankCalls& one, const Call& call, const TraceEvent& e) {
    const std::string& group = call.numbers.group;
    return is_send(e) ? Ends{group, one.rank, e.peer} : Ends{group, e.peer, one.rank};
  };
  for (const RankCalls& one : ranks) {
    wrapped[one.rank] = one.wrapped;
    for (const Call& call : one.calls)
      if (!call.is_collective())
        for (const TraceEvent& e : call.events) ++of[ends_of(one, call, e)][is_send(e)];
  }
  for (RankCalls& one : ranks) {
    std::map<std::pair<Ends, bool>, std::int64_t> seen;
    for (Call& call : one.calls) {
      if (call.is_collective()) continue;
      const auto lacking = std::erase_if(call.events, [&](const TraceEvent& e) {
        const auto other = wrapped.find(e.peer);
        if (other == wrapped.end()) return false;
        const Ends ends = ends_of(one, call, e);
        const std::int64_t own = of[ends][is_send(e)], theirs = of[ends][!is_send(e)];
        const std::int64_t number = seen[{ends, is_send(e)}]++;
        return other->second ? number < own - theirs : number >= theirs;
      });
      if (lacking > 0) trace.left_out["sends and receives that the other end lacks"] += lacking;
      call.entries -= lacking;
    }
    std::erase_if(one.calls, [](const Call& call) { return call.events.empty(); });
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
  std::uint64_t roots = 0;
  for (const RankCalls& one : ranks) {
    trace.ranks = std::max(trace.ranks, one.rank + 1);
    TraceRank& rank = trace.given.emplace_back();
    rank.rank = WorldRank(one.rank);
    rank.file = one.file;
    rank.tracks = {"compute"};
    std::vector<std::uint32_t> after;
    for (const Call& call : one.calls) {
      std::vector<std::uint32_t> ends;
      for (TraceEvent event : call.events) {
        event.group = index.at(call.numbers.group);
        roots += call.is_collective() && has_root(event.func);
        ends.push_back(add_event(rank, event, after));
      }
      if (ends.size() > 1) {
        TraceEvent join;
        join.name = trace.name("end of a group");
        join.position = call.events.back().position;
        ends = {add_event(rank, join, ends)};
      }
      after = std::move(ends);
      trace.used += call.entries;
    }
  }
  if (roots > 0) trace.notes.push_back(note_of_roots(roots));
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
  const std::vector<std::optional<int>> named = ranks_in_names(files);
  for (std::size_t f = 0; f < files.size(); ++f) {
    if (!named[f] && files.size() > 1)
      throw Error(files[f] + ": which rank's dump is this? name the files ..._rank_0, ..._rank_1");
    if (!named[f]) trace.notes.push_back(note_of_rank_0(files[f]));
    if (!seen.insert(named[f].value_or(0)).second)
      throw Error(files[f] + ": a second dump of rank " + std::to_string(named[f].value_or(0)));
    ranks.push_back({named[f].value_or(0), files[f], {}});
    DumpReader(trace, groups, ranks.back()).run();
  }
  std::ranges::sort(ranks, {}, &RankCalls::rank);
  resolve_peers(groups, ranks, trace);
  drop_incomplete(groups, ranks, trace);
  drop_unmatched(ranks, trace);
  add_ranks(groups, ranks, trace);
  return trace;
}

}  // namespace ghostrank
