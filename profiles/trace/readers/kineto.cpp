// Kineto's traces (Chrome JSON), one file per rank: kernels of the device as they ran.
//
// clang-format off
//   {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_...",
//     "ts": 10.5, "dur": 7, "args": {"stream": 22, "Collective name": "allreduce",
//     "dtype": "Float", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2,
//     "Process Group Name": "0", "Process Group Ranks": "[0, 1]", ...}}, ...],
//    "distributedInfo": {"rank": 0, "world_size": 2, ...}}
// clang-format on
//
// Times are those of kernels, never of their launch. Their dependencies are rebuilt from them
// (device_kernels.h). The profiler's ranges "ProfilerStep#7" are steps; a kernel belongs to the
// step in which the host launched it ("correlation").
//
// With the execution trace of the same rank beside it, kernels of NCCL take their call from there:
// PyTorch before 2.3 gives the kernel no arguments, later ones cut long lists of splits short. The
// host's event leads from the kernel ("External id") to the call ("Record function id"), or, up to
// PyTorch 2.0, its place among these events (kineto_records.h).
//
// The kernel of coalesced calls has neither. The host launched it in a range "nccl:coalesced"; the
// calls are those that the same thread recorded before, since the last such range, and that have no
// kernel of their own.
//
// A kernel of NCCL that nothing describes takes its time and sends nothing. A call's root is not
// named by its kernel but by the host's event ("Rank").
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/trace/json_elements.h"
#include "profiles/trace/readers/device_kernels.h"
#include "profiles/trace/readers/execution_trace.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/kineto_groups.h"
#include "profiles/trace/readers/kineto_launches.h"
#include "profiles/trace/readers/kineto_others.h"
#include "profiles/trace/readers/kineto_records.h"
#include "profiles/trace/readers/torch_names.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kMostDevice = 1 << 20;
constexpr double kMostMicros = 4e15;  // as nanoseconds, two of them in 63 bits

class KinetoImporter {
 public:
  KinetoImporter(Trace& trace, std::map<WorldRank, ExecutionCalls> calls)
      : trace_(trace), calls_(std::move(calls)) {}

  // `rank`: if the file does not say it.
  void read(const std::string& path, int rank) {
    path_ = &path;
    kernels_.clear();
    correlations_.clear();
    launches_.clear();
    steps_.clear();
    record_of_.clear();
    unnumbered_.clear();
    groups_.clear();
    others_.clear();
    recorded_.clear();
    members_ = {};
    own_.reset();
    device_.reset();
    for_each_element(
        path, "traceEvents", [&](const JsonTape& json, std::uint64_t line) { take(json, line); },
        [&](std::string_view key, const JsonTape& json) {
          if (key == "distributedInfo") take_info(json);
        });
    settle_others(others_, kernels_);
    sort_host();
    if (const std::size_t left = launches_.leave_out_earlier(kernels_, correlations_); left > 0) {
      trace_.used -= left;
      trace_.left_out["kernels of NCCL that were launched before the trace began"] += left;
    }
    if (kernels_.empty())
      throw Error(path +
                  ":1:1: there are no kernels of a device; record with ProfilerActivity.CUDA");
    count_from_the_first_kernel();
    rank_ = &trace_.given.emplace_back();
    rank_->rank = WorldRank(own_.value_or(rank));
    rank_->file = path;
    rank_->tracks = {"compute"};
    if (const auto mine = calls_.find(rank_->rank); mine != calls_.end() && record_of_.empty())
      record_of_ = unnumbered_.number(mine->second, path, launches_, kernels_, correlations_);
    take_calls();
    if (calls_.empty()) take_roots();
    take_steps();
    for (const DeviceKernel& kernel : kernels_) {
      if (!kernel.call) continue;
      refuse_to_itself(kernel.event);
      for (const TraceEvent& event : kernel.also) refuse_to_itself(event);
    }
    add_kernels(kernels_, trace_, *rank_);
  }

  void take_notes() {
    if (!all_steps_.empty()) trace_.notes.push_back(note_of_steps(trace_.steps, all_steps_));
    if (joined_)
      trace_.notes.emplace_back(
          "coalesced collectives are one call of all their tensors here; the ranks' execution "
          "traces have each");
    if (undescribed_ > 0)
      trace_.notes.push_back(note_of_silent_kernels(
          undescribed_,
          "do not say which call they are ('Collective name', of PyTorch from 2.3 on; the ranks' "
          "execution traces say it, too)"));
    if (unknown_roots_ > 0) trace_.notes.push_back(note_of_roots(unknown_roots_));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(*path_ + ":" + std::to_string(line_) + ":1: " + what);
  }

  void refuse_to_itself(const TraceEvent& event) const {
    if (event.peer == rank_->rank.value() && event.kind != TraceEvent::Kind::collective)
      throw Error(position_text(trace_, *rank_, event) + ": a message of a rank to itself");
  }

  void take_info(const JsonTape& json) {
    members_.take_info(json);
    if (const JsonNode* rank = json.find(json.root(), "rank"); rank && rank->is_integer()) {
      if (rank->integer < 0 || rank->integer >= kMostTraceRanks)
        fail("distributedInfo names no rank");
      own_ = rank->integer;
    }
    if (const JsonNode* size = json.find(json.root(), "world_size"); size && size->is_integer()) {
      if (size->integer < 1 || size->integer > kMostTraceRanks)
        fail("world_size is no number of ranks");
      trace_.ranks = std::max(trace_.ranks, static_cast<int>(size->integer));
    }
  }

  // A time in the file, from microseconds to nanoseconds. A double of microseconds since 1970 is
  // exact to 0.25 us; from here on times are integers, whose sums lose nothing more.
  std::int64_t nanos(const JsonTape& json, const char* key) const {
    const JsonNode* value = json.find(json.root(), key);
    if (!value || !value->is_number() || !(value->number >= 0) || !(value->number < kMostMicros))
      fail(std::string(key) + " is no time in microseconds");
    const double whole = std::floor(value->number);
    return std::llround(whole) * 1000 + std::llround((value->number - whole) * 1e3);
  }

  // Kernels' times, so far nanoseconds of the file's clock, become picoseconds since the first
  // kernel began: as picoseconds, times since 1970 do not fit.
  void count_from_the_first_kernel() {
    const std::int64_t first = std::ranges::min_element(kernels_, {}, &DeviceKernel::start)->start;
    for (DeviceKernel& kernel : kernels_) {
      line_ = kernel.event.position;
      if (kernel.end - first > kMostTraceNanos)
        fail("a kernel ends over 11 days after the first one began; times are microseconds");
      kernel.start = (kernel.start - first) * kPicosPerNano;
      kernel.end = (kernel.end - first) * kPicosPerNano;
      if (!kernel.call) kernel.event.duration = kernel.end - kernel.start;
    }
  }

  void take(const JsonTape& json, std::uint64_t line) {
    line_ = line;
    const JsonNode* category = json.find(json.root(), "cat");
    const std::string_view cat = category ? category->text : std::string_view();
    if (!is_of_device(cat)) {
      if (take_step(json, cat)) return;
      take_launch(json, cat);
      take_group(json, cat);
      take_host(json);
      ++trace_.left_out["events that are none of the device's"];
      return;
    }
    DeviceKernel kernel;
    kernel.start = nanos(json, "ts");
    kernel.end = kernel.start + nanos(json, "dur");
    const JsonNode* name = json.find(json.root(), "name");
    const JsonNode* args = json.find(json.root(), "args");
    if (args && json.find(*args, "stream")) {
      const auto stream = id(json, *args, "stream");
      if (!stream) fail("stream is no number");
      kernel.stream = *stream;
    }
    if (const JsonNode* device = args ? json.find(*args, "device") : nullptr;
        device && device->is_integer()) {
      if (device->integer < 0 || device->integer > kMostDevice) fail("device is no number of one");
      if (!device_) device_ = device->integer;
      if (device->integer != *device_)
        kernel.stream = stream_of_device(device->integer, kernel.stream);
    }
    kernel.event.name = trace_.name(name ? name->text : "kernel");
    kernel.event.position = line;
    const JsonNode* call = args ? json.find(*args, "Collective name") : nullptr;
    const bool nccl =  // RCCL plays some calls by MSCCL
        name && (name->text.starts_with("nccl") || name->text.starts_with("msccl"));
    if (args) kernel.external = id(json, *args, "External id");
    correlations_.push_back(args ? id(json, *args, "correlation").value_or(-1) : -1);
    if (nccl && (!calls_.empty() || !call))
      kernel.call = true;  // take_calls() finds out which
    else if (nccl)
      take_call(json, *args, call->text, kernel);
    else if (call && calls_.empty())
      take_other(json, *args, call->text);
    if (!kernel.call) kernel.event.kind = TraceEvent::Kind::compute;
    ++trace_.used;
    kernels_.push_back(kernel);
  }

  void take_other(const JsonTape& json, const JsonNode& args, std::string_view name) {
    DeviceKernel kernel;
    take_call(json, args, name, kernel);
    others_.push_back({kernels_.size(), kernel.event});
  }

  std::optional<std::int64_t> id(const JsonTape& json, const JsonNode& args,
                                 const char* key) const {
    const JsonNode* value = json.find(args, key);
    if (value && value->is_integer()) return value->integer;
    if (value && value->kind == JsonNode::Kind::string) return parse_integer(value->text);
    return std::nullopt;
  }

  // A range of the host that the profiler calls a step.
  bool take_step(const JsonTape& json, std::string_view cat) {
    const JsonNode* name = json.find(json.root(), "name");
    if (cat != "user_annotation" || !name || !name->text.starts_with("ProfilerStep#")) return false;
    steps_.push_back({nanos(json, "ts"), nanos(json, "dur")});
    ++trace_.used;
    return true;
  }

  void take_launch(const JsonTape& json, std::string_view cat) {
    if (!is_launch(cat)) return;
    const JsonNode* args = json.find(json.root(), "args");
    const auto correlation = args ? id(json, *args, "correlation") : std::nullopt;
    if (correlation && *correlation >= 0)
      launches_.add({*correlation, nanos(json, "ts"), thread_of(json)});
  }

  std::int64_t thread_of(const JsonTape& json) const {
    return id(json, json.root(), "tid").value_or(0);
  }

  void take_group(const JsonTape& json, std::string_view cat) {
    const JsonNode* name = json.find(json.root(), "name");
    if (cat != "user_annotation" || !name || name->text != "nccl:coalesced") return;
    const std::int64_t begin = nanos(json, "ts");
    groups_.add({thread_of(json), begin, begin + nanos(json, "dur")});
  }

  void sort_host() {
    launches_.sort();
    groups_.sort();
    std::sort(recorded_.begin(), recorded_.end(), [](const KinetoCall& a, const KinetoCall& b) {
      return std::pair{a.thread, a.begin} < std::pair{b.thread, b.begin};
    });
  }

  void take_steps() {
    if (steps_.empty()) return;
    std::sort(steps_.begin(), steps_.end());
    std::vector<std::int64_t> begins, launched;
    for (const auto& [begin, duration] : steps_) {
      begins.push_back(begin);
      all_steps_.push_back(duration);
    }
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const KinetoLaunch* const launch = launches_.of(correlations_[k]);
      launched.push_back(launch ? launch->at : -1);
    }
    trace_.steps = std::max(trace_.steps, put_into_steps(kernels_, launched, begins));
  }

  // An event of the host: which call it recorded.
  void take_host(const JsonTape& json) {
    const JsonNode* name = json.find(json.root(), "name");
    const JsonNode* args = json.find(json.root(), "args");
    if (!args || !name || !name->text.starts_with("record_param_comms")) return;
    const auto external = id(json, *args, "External id");
    if (!external) return;
    KinetoCall call{thread_of(json), nanos(json, "ts"), *external, {}, {}};
    if (!calls_.empty()) {
      const auto record = id(json, *args, "Record function id");
      if (!record)
        return unnumbered_.add(
            {call.begin, call.begin + nanos(json, "dur"), call.thread, *external});
      record_of_.emplace(*external, *record);
    } else {
      const JsonNode* kind = json.find(*args, "Collective name");
      const auto known = kind ? torch_call(kind->text) : std::nullopt;
      if (!known || (known->call != TorchCall::collective && known->call != TorchCall::send &&
                     known->call != TorchCall::recv))
        return;
      // A call of one rank has no kernel of NCCL's.
      if (id(json, *args, "Group size") == 1) return;
      DeviceKernel kernel;
      try {
        take_call(json, *args, kind->text, kernel);
        call.event = kernel.event;
      } catch (const Error& error) {
        call.refusal = error.what();
      }
    }
    recorded_.push_back(std::move(call));
  }

  // Finds the calls of NCCL's kernels that do not name them themselves.
  void take_calls() {
    if (!calls_.empty() && !calls_.contains(rank_->rank))
      throw Error(*path_ + ": there is no execution trace of rank " + to_string(rank_->rank) +
                  "; name it ...rank" + to_string(rank_->rank) + "...json");
    used_.clear();
    std::set<std::int64_t> own;  // by External id: calls that have a kernel or a copy
    for (const DeviceKernel& kernel : kernels_)
      if (kernel.external) own.insert(*kernel.external);
    std::map<const KinetoRange*, DeviceKernel*> first_of;  // by group
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      DeviceKernel& kernel = kernels_[k];
      if (!kernel.call || kernel.event.kind != TraceEvent::Kind::join) continue;
      line_ = kernel.event.position;
      const KinetoLaunch* const launch = launches_.of(correlations_[k]);
      std::vector<TraceEvent> calls;
      if (kernel.external && record_of_.contains(*kernel.external)) {
        calls = recorded(record_of_.at(*kernel.external));
        if (calls.empty())
          fail("call " + std::to_string(record_of_.at(*kernel.external)) +
               " of this kernel is not in " + calls_.at(rank_->rank).trace.given.front().file);
      } else if (const KinetoRange* const group = launch ? groups_.around(*launch) : nullptr) {
        const auto [first, fresh] = first_of.emplace(group, &kernel);
        if (!fresh) {  // a further kernel of the group: its first kernel has the calls
          first->second->start = std::min(first->second->start, kernel.start);
          first->second->end = std::max(first->second->end, kernel.end);
          kernel.call = kernel.event.counted = false;
          kernel.event.kind = TraceEvent::Kind::compute;
          continue;
        }
        calls = calls_of(*group, own);
      }
      if (calls.empty() && !calls_.empty())
        fail(
            "no event of the host leads from this kernel of NCCL to a call ('External id', "
            "'Record function id')");
      if (calls.empty()) {
        kernel.call = false;
        kernel.event.kind = TraceEvent::Kind::compute;
        kernel.event.duration = kernel.end - kernel.start;
        ++undescribed_;
        continue;
      }
      for (TraceEvent& call : calls) {
        call.name = kernel.event.name;
        call.position = kernel.event.position;
      }
      kernel.event = calls.front();
      kernel.also.assign(calls.begin() + 1, calls.end());
    }
    if (calls_.empty()) return;
    const ExecutionCalls& mine = calls_.at(rank_->rank);
    trace_.used += used_.size();
    const std::uint64_t rest = mine.by_record.size() - used_.size();
    if (rest > 0) trace_.left_out["calls of an execution trace without a kernel"] += rest;
    for (const auto& [reason, number] : mine.trace.left_out) trace_.left_out[reason] += number;
  }

  static bool has_root(const TraceEvent& event) {
    return event.kind == TraceEvent::Kind::collective && ghostrank::has_root(event.func);
  }

  // Takes the roots of kernels' calls from the host's events of these calls.
  void take_roots() {
    std::map<std::int64_t, std::int32_t> root_of;  // by External id
    for (const KinetoCall& call : recorded_)
      if (has_root(call.event)) root_of.emplace(call.external, call.event.peer);
    const auto take = [&](TraceEvent& event, const std::optional<std::int64_t>& external) {
      if (!has_root(event) || event.peer >= 0) return;
      const auto at = external ? root_of.find(*external) : root_of.end();
      if (at != root_of.end()) event.peer = at->second;
      if (event.peer >= 0) return;
      event.peer = 0;
      ++unknown_roots_;
    };
    for (DeviceKernel& kernel : kernels_) {
      if (!kernel.call) continue;
      take(kernel.event, kernel.external);
      for (TraceEvent& event : kernel.also) take(event, std::nullopt);
    }
  }

  // The calls that the group's thread recorded since its last group, except those in `own`.
  std::vector<TraceEvent> calls_of(const KinetoRange& group, const std::set<std::int64_t>& own) {
    const std::int64_t from = groups_.end_before(group);
    std::vector<TraceEvent> out;
    const auto begin = [](const KinetoCall& call) { return std::pair{call.thread, call.begin}; };
    auto at = std::ranges::lower_bound(recorded_, std::pair{group.thread, from}, {}, begin);
    for (; at != recorded_.end() && begin(*at) < std::pair{group.thread, group.begin}; ++at) {
      if (own.contains(at->external)) continue;
      if (!at->refusal.empty()) throw Error(at->refusal);
      if (calls_.empty()) {
        out.push_back(at->event);
      } else {
        const auto more = recorded(record_of_.at(at->external));
        out.insert(out.end(), more.begin(), more.end());
      }
    }
    return out;
  }

  // A call of the rank's execution trace, with those that are coalesced with it; empty: a wait.
  std::vector<TraceEvent> recorded(std::int64_t record) {
    const ExecutionCalls& mine = calls_.at(rank_->rank);
    const auto at = mine.by_record.find(record);
    if (at == mine.by_record.end()) return {};
    used_.insert(record);
    std::vector<TraceEvent> out;
    const std::vector<TraceEvent>& events = mine.trace.given.front().events;
    for (std::size_t i = at->second; i < events.size(); ++i) {
      TraceEvent event = events[i];
      event.first_dep = event.deps = 0;
      if (event.group != kNoIndex) event.group = group_like(mine.trace.groups[event.group], trace_);
      if (event.splits != kNoIndex) {
        trace_.splits.push_back(mine.trace.splits[event.splits]);
        event.splits = static_cast<std::uint32_t>(trace_.splits.size() - 1);
      }
      out.push_back(event);
      if (!event.with_next) break;
    }
    return out;
  }

  std::int64_t integer(const JsonTape& json, const JsonNode& args, const char* key,
                       std::int64_t most) const {
    const std::optional<std::int64_t> number = id(json, args, key);
    if (!number || *number < 0 || *number > most)
      fail("'" + std::string(key) + "' is no integer from 0 to " + std::to_string(most));
    return *number;
  }

  std::string text(const JsonTape& json, const JsonNode& args, const char* key) const {
    const JsonNode* value = json.find(args, key);
    if (!value) return "";
    return value->kind == JsonNode::Kind::string ? std::string(value->text)
                                                 : std::to_string(value->integer);
  }

  NumberList numbers(const JsonTape& json, const JsonNode& args, const char* key) const {
    const JsonNode* value = json.find(args, key);
    if (!value) return {};
    auto list = number_list(json, *value);
    if (!list) fail("'" + std::string(key) + "' is no list of numbers from 0");
    return std::move(*list);
  }

  std::uint32_t group_of(const JsonTape& json, const JsonNode& args) {
    TraceGroup group{text(json, args, "Process Group Name"), {}};
    const std::int64_t size = integer(json, args, "Group size", kMostTraceRanks);
    NumberList ranks = numbers(json, args, "Process Group Ranks");
    if (ranks.cut) {
      auto all = members_.members(group.name, ranks.numbers, size);
      if (!all)
        fail(
            "'Process Group Ranks' is cut short, and the distributedInfo before the events does "
            "not have all " +
            std::to_string(size) + " members of process group " + quote(group.name) +
            "; give the ranks' execution traces, too");
      ranks.numbers = std::move(*all);
    }
    for (const std::int64_t rank : ranks.numbers) {
      if (rank >= kMostTraceRanks) fail("'Process Group Ranks' has a member that is no rank");
      group.members.emplace_back(rank);
    }
    const std::set<WorldRank> unique(group.members.begin(), group.members.end());
    if (unique.size() != group.members.size()) fail("'Process Group Ranks' has a rank twice");
    if (!group.members.empty() && std::ssize(group.members) != size)
      fail("'Group size' is " + std::to_string(size) + " but there are " +
           std::to_string(group.members.size()) + " 'Process Group Ranks'");
    if (group.members.empty()) trace_.ranks = std::max(trace_.ranks, static_cast<int>(size));
    return group_like(group, trace_);
  }

  void take_call(const JsonTape& json, const JsonNode& args, std::string_view name,
                 DeviceKernel& kernel) {
    const auto known = torch_call(name);
    if (!known || known->call == TorchCall::wait || known->call == TorchCall::init)
      fail("collective " + quote(name) + " is none of PyTorch's");
    if (known->call == TorchCall::batch)
      fail("a coalesced call does not say what it is; record without coalescing");
    kernel.call = true;
    joined_ |= name.ends_with("_coalesced");
    TraceEvent& event = kernel.event;
    const auto width = torch_bytes(text(json, args, "dtype"));
    if (!width) fail("dtype " + quote(text(json, args, "dtype")) + " is no type of elements");
    event.dtype = played_as(*width);
    constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
    const auto bytes = [&](const char* key) {
      return static_cast<std::uint64_t>(integer(json, args, key, kMostElements)) * *width;
    };
    event.stated = bytes("In msg nelems");
    if (known->call != TorchCall::collective) {
      const bool sends = known->call == TorchCall::send;
      event.kind = sends ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
      if (event.stated == 0) event.stated = bytes("Out msg nelems");
      const std::int64_t peer =
          integer(json, args, sends ? "Dst Rank" : "Src Rank", kMostTraceRanks - 1);
      // A rank of the job, where execution traces have its position in the group.
      event.group = group_of(json, args);
      const auto& members = trace_.groups[event.group].members;
      const WorldRank other(static_cast<std::int32_t>(peer));
      if (!members.empty() && std::find(members.begin(), members.end(), other) == members.end())
        fail("the peer is no member");
      event.peer = other.value();
      return;
    }
    event.kind = TraceEvent::Kind::collective;
    event.func = known->func;
    event.group = group_of(json, args);
    event.blocks = event.func == Func::all_gather || event.func == Func::gather;
    if (has_root(event))
      event.peer = json.find(args, "Rank")
                       ? static_cast<std::int32_t>(integer(json, args, "Rank", kMostTraceRanks))
                       : -1;
    if (event.func == Func::scatter) {
      event.stated = bytes("Out msg nelems");
      event.blocks = true;
    }
    if (event.func == Func::all_to_all || event.func == Func::all_to_all_v)
      splits(json, args, bytes("Out msg nelems"), event);
  }

  void splits(const JsonTape& json, const JsonNode& args, std::uint64_t out, TraceEvent& event) {
    std::vector<std::uint64_t> counts;
    std::uint64_t sum = 0;
    const NumberList given = numbers(json, args, "In split size");
    if (given.cut) fail("'In split size' is cut short; give the ranks' execution traces, too");
    for (const std::int64_t rows : given.numbers) {
      if (rows > (std::int64_t{1} << 40)) fail("'In split size' is too large");
      counts.push_back(static_cast<std::uint64_t>(rows));
      sum += counts.back();
    }
    event.func = Func::all_to_all;
    if (counts.empty()) return;
    const std::uint64_t elements = event.stated / bytes_of(event.dtype);
    if (sum == 0 ? elements != 0 : elements % sum != 0)
      fail("'In split size' does not divide 'In msg nelems'");
    for (std::uint64_t& count : counts) count *= sum == 0 ? 0 : elements / sum;
    event.func = Func::all_to_all_v;
    event.stated = out;
    event.splits = static_cast<std::uint32_t>(trace_.splits.size());
    trace_.splits.push_back(std::move(counts));
  }

  Trace& trace_;
  const std::string* path_ = nullptr;
  TraceRank* rank_ = nullptr;
  std::optional<std::int64_t> own_;
  std::optional<std::int64_t> device_;  // the first that the file names
  std::uint64_t line_ = 1;
  std::vector<DeviceKernel> kernels_;
  std::vector<std::int64_t> correlations_;  // by kernel; -1: none
  using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;
  KinetoLaunches launches_;
  KinetoRanges groups_;  // "nccl:coalesced"
  std::vector<OtherKernel> others_;
  std::vector<KinetoCall> recorded_;
  KinetoRecords unnumbered_;  // without "Record function id"
  KinetoGroups members_;
  std::uint64_t unknown_roots_ = 0;
  std::uint64_t undescribed_ = 0;              // kernels of NCCL whose call is unknown
  bool joined_ = false;                        // calls of several tensors are played as one
  std::set<std::int64_t> used_;                // calls of the execution trace that have a kernel
  Times steps_;                                // begin and duration in nanoseconds
  std::vector<std::int64_t> all_steps_;        // durations of all files' steps
  std::map<WorldRank, ExecutionCalls> calls_;  // empty: the kernels name their calls
  std::map<std::int64_t, std::int64_t> record_of_;  // by "External id" of the host's events
};

}  // namespace

Trace import_kineto(const std::vector<std::string>& given, int) {
  std::vector<std::string> files = given;
  Trace trace;
  trace.format = "kineto";
  trace.unit = "microseconds, of each rank's clock";
  trace.notes.emplace_back(
      "what ties streams together is rebuilt from the kernels' times; idle time of a stream is "
      "kept");
  std::map<WorldRank, ExecutionCalls> calls = take_execution_calls(files);
  if (!calls.empty())
    trace.notes.emplace_back("calls are those of the execution traces, times those of the kernels");
  KinetoImporter importer(trace, std::move(calls));
  const std::vector<std::optional<int>> named = ranks_in_names(files);
  for (std::size_t f = 0; f < files.size(); ++f)
    importer.read(files[f], files.size() > 1 ? named[f].value_or(0) : 0);
  importer.take_notes();
  std::ranges::sort(trace.given, {}, &TraceRank::rank);
  return trace;
}

}  // namespace ghostrank
