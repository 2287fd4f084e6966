// Exports of NVIDIA Nsight Systems, `nsys export --type sqlite --include-blobs=true`, schemas 3.24
// and 3.25.
//
//   CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _GRAPH_TRACE    what devices did, and when
//   CUPTI_ACTIVITY_KIND_RUNTIME                                   what launched it (correlationId)
//   NVTX_EVENTS                                                   calls of NCCL (nsys/ranges.h)
//
// A process is a rank. Times are those of devices, never of launches. All calls that NCCL launched
// together (nsys/batches.h) take the time from the first of their kernels to the last. Copies stand
// for kernels where it launched none: in a communicator of one rank, or on copy engines. Ranges
// named like "iteration 7" are steps, unless they lie within another step.
//
// Bytes are never made up: kernels of NCCL without a call that has a communicator and a size are
// played as the time that they took.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "profiles/error.h"
#include "profiles/trace/readers/device_kernels.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/nccl/calls.h"
#include "profiles/trace/readers/nccl/ranks.h"
#include "profiles/trace/readers/nsys/batches.h"
#include "profiles/trace/readers/nsys/ranges.h"
#include "profiles/trace/replay.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostKernels = kMostTraceEvents / 4;  // of a process; an event each, or more
constexpr std::int64_t kAnyString = std::int64_t{1} << 62;

struct Process {
  std::string file;
  std::uint32_t number = 0;            // in NcclRecords
  std::vector<DeviceKernel> kernels;   // of calls `group` is an index into Importer::called_
  std::vector<std::int64_t> launched;  // on the host, by kernel; -1: unknown
  std::vector<NsysStep> steps;
  std::optional<std::int64_t> device;  // the first that it used
};

struct Called {
  std::string comm;               // id of the communicator
  std::set<std::size_t> callers;  // processes
};

std::string comm_id(const NsysRange& range) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::uint64_t id = *range.payload[NcclField::comm]; id > 0 || out.empty(); id >>= 4)
    out.insert(out.begin(), kDigits[id & 15]);
  return "0x" + out;
}

class Importer {
 public:
  Importer(Trace& trace, int ranks) : trace_(trace), ranks_(ranks) {}

  void read(const std::string& path) {
    SqliteFile file(path);
    check_nsys_version(file);
    path_ = &path;
    by_pid_.clear();
    const NsysStrings strings = read_nsys_strings(file);
    NsysRanges ranges = read_nsys_ranges(file, strings);
    take_others(ranges);
    NsysBatches batches(std::move(ranges.nccl), trace_);
    batches.read_launches(file, !ranges.steps.empty(), trace_);
    take_kernels(file, strings, batches);
    take_rest(file, "CUPTI_ACTIVITY_KIND_MEMCPY", "copy", true, batches);
    take_rest(file, "CUPTI_ACTIVITY_KIND_MEMSET", "fill", false, batches);
    graphs_ += take_rest(file, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUDA graph", false, batches);
    for (const NsysBatch& batch : batches.batches) take_calls(batch, batches.calls);
  }

  void finish() {
    if (std::all_of(processes_.begin(), processes_.end(),
                    [](const Process& one) { return one.kernels.empty(); }))
      throw Error(*path_ +
                  ": there are no kernels of a device; profile with nsys --trace=cuda,nvtx");
    if (records_.memberships.empty()) assume_ranks();
    for (const Called& called : called_)
      if (!records_.comm_of.contains(called.comm))
        throw Error(processes_[*called.callers.begin()].file + ": communicator " + called.comm +
                    " was made before the capture began, others after; profile from the start of "
                    "the process");
    const std::vector<WorldRank> ranks =
        name_ranks(records_.comms, records_.memberships, *path_, trace_);
    std::map<std::uint32_t, WorldRank> rank_of;  // by the process's number
    for (std::size_t m = 0; m < ranks.size(); ++m) {
      const NcclMembership& one = records_.memberships[m];
      const auto [known, fresh] = rank_of.emplace(one.process, ranks[m]);
      if (!fresh && known->second != ranks[m])
        throw Error(one.file + ": a process is ranks " + to_string(known->second) + " and " +
                    to_string(ranks[m]) + " of the job; profile one process a GPU");
    }
    for (Process& process : processes_) {
      if (process.kernels.empty()) continue;
      const auto rank = rank_of.find(process.number);
      if (rank == rank_of.end())
        throw Error(process.file +
                    ": a process uses a device but joins no communicator of NCCL; which rank is it?"
                    " export the others without it");
      add_rank(process, rank->second);
    }
    std::ranges::sort(trace_.given, {}, &TraceRank::rank);
    take_notes();
  }

 private:
  [[noreturn]] void fail(const NsysRange& range, const std::string& what) const {
    throw Error(*path_ + ": NVTX_EVENTS row " + std::to_string(range.row) + ": " + what);
  }

  void leave_out(const char* reason, std::uint64_t number) {
    if (number > 0) trace_.left_out[reason] += number;
  }

  // `pid`: without the lowest 24 bits of a globalPid or globalTid.
  std::size_t process_at(std::uint64_t pid) {
    const auto [known, fresh] = by_pid_.try_emplace(pid, processes_.size());
    if (fresh)
      processes_.push_back({*path_, records_.process(*path_, static_cast<std::int64_t>(pid))});
    return known->second;
  }

  // Takes steps and memberships out of the ranges.
  void take_others(NsysRanges& ranges) {
    leave_out("ranges and marks of NVTX that are no calls of NCCL", ranges.others);
    trace_.used += ranges.steps.size();
    for (const NsysStep& step : ranges.steps)
      processes_[process_at(step.process)].steps.push_back(step);
    trace_.used += std::erase_if(ranges.nccl, [&](const NsysRange& range) {
      if (range.kind != NsysRange::Kind::membership) return false;
      join(range);
      return true;
    });
  }

  void join(const NsysRange& range) {
    const std::uint64_t rank = *range.payload[NcclField::rank];
    const std::uint64_t ranks = *range.payload[NcclField::ranks];
    if (ranks < 1 || ranks > std::uint64_t{kMaxReplayRanks} || rank >= ranks)
      fail(range, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " ranks");
    records_.join({comm_id(range), "", static_cast<int>(ranks)}, static_cast<std::int32_t>(rank),
                  processes_[process_at(range.thread >> 24)].number, *path_,
                  [&](const std::string& what) { fail(range, what); });
  }

  // Columns that all tables of device work have, in the order of their indices.
  enum { kStart, kEnd, kDevice, kStream, kPid, kCorrelation, kName };
  static std::vector<std::string> columns() {
    return {"start", "end", "deviceId", "streamId", "globalPid", "correlationId"};
  }

  // The row as a computation without a name.
  DeviceKernel kernel_in(const SqliteRows& rows, Process& process) const {
    DeviceKernel kernel;
    const std::int64_t start = rows.integer(kStart, 0, kMostNsysNanos);
    kernel.start = start * kPicosPerNano;
    kernel.end = rows.integer(kEnd, start, kMostNsysNanos) * kPicosPerNano;
    const std::int64_t device = rows.integer(kDevice, 0, 1 << 20);
    if (!process.device) process.device = device;
    kernel.stream = rows.integer(kStream, 0, kMostNsysId);
    if (device != *process.device) kernel.stream = stream_of_device(device, kernel.stream);
    kernel.event.kind = TraceEvent::Kind::compute;
    kernel.event.duration = kernel.end - kernel.start;
    return kernel;
  }

  static NsysBatch* batch_of(const SqliteRows& rows, NsysBatches& batches) {
    if (rows.is_null(kCorrelation)) return nullptr;
    return batches.launched(rows.bits(kPid) >> 24, rows.integer(kCorrelation, 0, kMostNsysId));
  }

  static std::int64_t launched_at(const SqliteRows& rows, const NsysBatches& batches) {
    if (rows.is_null(kCorrelation)) return -1;
    return batches.launched_at(rows.bits(kPid) >> 24, rows.integer(kCorrelation, 0, kMostNsysId));
  }

  static void keep(Process& process, DeviceKernel kernel, std::int64_t launched) {
    if (process.kernels.size() == kMostKernels)
      throw Error(process.file + ": more than " + std::to_string(kMostKernels) +
                  " kernels of a process; export a part of the report");
    process.kernels.push_back(std::move(kernel));
    process.launched.push_back(launched);
  }

  void take_kernels(SqliteFile& file, const NsysStrings& strings, NsysBatches& batches) {
    if (!file.has("CUPTI_ACTIVITY_KIND_KERNEL")) return;
    auto with_name = columns();
    with_name.emplace_back("shortName");
    SqliteRows rows(file, "CUPTI_ACTIVITY_KIND_KERNEL", with_name, with_name.size());
    std::unordered_map<std::int64_t, std::uint32_t> names;  // number of a string, by id
    while (rows.next()) {
      Process& process = processes_[process_at(rows.bits(kPid) >> 24)];
      DeviceKernel kernel = kernel_in(rows, process);
      const std::int64_t name = rows.integer(kName, -kAnyString, kAnyString);
      const auto string = strings.find(name);
      const bool nccl = string != strings.end() && string->second.starts_with("nccl");
      if (NsysBatch* batch = nccl ? batch_of(rows, batches) : nullptr) {
        batch->extend(kernel.start, kernel.end, kernel.stream);
        batch->kernels = true;
        continue;
      }
      unexplained_ += nccl;
      kernel.event.name = names.emplace(name, names.size()).first->second;
      keep(process, std::move(kernel), launched_at(rows, batches));
    }
    trace_.used += rows.row();
    const std::vector<std::uint32_t> labels = labels_of(file, names);
    for (const auto& [pid, at] : by_pid_)
      for (DeviceKernel& kernel : processes_[at].kernels)
        kernel.event.name = labels[kernel.event.name];
  }

  // The indices in trace_.names, by number of the string.
  std::vector<std::uint32_t> labels_of(
      SqliteFile& file, const std::unordered_map<std::int64_t, std::uint32_t>& names) {
    std::vector<std::uint32_t> out(names.size(), trace_.name("kernel"));
    SqliteRows rows(file, "StringIds", {"id", "value"}, 2);
    while (rows.next()) {
      const auto at = names.find(rows.integer(0, -kAnyString, kAnyString));
      if (at != names.end()) out[at->second] = trace_.name(rows.text(1));
    }
    return out;
  }

  // Reads a table without names; `calls`: its rows may be work of NCCL's calls. Returns the number
  // of rows.
  std::uint64_t take_rest(SqliteFile& file, const char* table, const char* name, bool calls,
                          NsysBatches& batches) {
    if (!file.has(table)) return 0;
    SqliteRows rows(file, table, columns(), kCorrelation);
    const std::uint32_t label = trace_.name(name);
    while (rows.next()) {
      Process& process = processes_[process_at(rows.bits(kPid) >> 24)];
      DeviceKernel kernel = kernel_in(rows, process);
      NsysBatch* batch = calls ? batch_of(rows, batches) : nullptr;
      if (batch && !batch->kernels) {
        batch->extend(kernel.start, kernel.end, kernel.stream);
        continue;
      }
      kernel.event.name = label;
      keep(process, std::move(kernel), launched_at(rows, batches));
    }
    trace_.used += rows.row();
    return rows.row();
  }

  void take_calls(const NsysBatch& batch, const std::vector<NsysRange>& calls) {
    if (batch.calls == 0) return;
    if (batch.first < 0)
      return leave_out("calls of NCCL that launched nothing on a device", batch.calls);
    const std::size_t process = process_at(batch.thread >> 24);
    DeviceKernel kernel;
    kernel.call = true;
    kernel.start = batch.first;
    kernel.end = batch.last;
    kernel.stream = batch.stream;
    kernel.event = event_of(calls[batch.first_call], process);
    for (std::size_t i = 1; i < batch.calls; ++i)
      kernel.also.push_back(event_of(calls[batch.first_call + i], process));
    trace_.used += batch.calls;
    keep(processes_[process], std::move(kernel), batch.start);
  }

  // The event of a call; its group is an index into called_, its peer a position in that group.
  TraceEvent event_of(const NsysRange& range, std::size_t process) {
    const std::string comm = comm_id(range);
    const auto [known, fresh] =
        called_at_.try_emplace(comm, static_cast<std::uint32_t>(called_.size()));
    if (fresh) called_.push_back({comm, {}});
    called_[known->second].callers.insert(process);
    TraceEvent event;
    event.group = known->second;
    event.position = range.row;
    event.stated = *range.payload[NcclField::bytes];
    if (event.stated > kMostTraceBytes) fail(range, "a call of more than 2^44 bytes");
    const auto place = [&](NcclField field) {
      const auto& at = range.payload[field];
      if (!at || *at >= std::uint64_t{kMaxReplayRanks})
        fail(range, "the payload does not say which rank is root or peer");
      return static_cast<std::int32_t>(*at);
    };
    if (range.call >= kNcclSend) {
      const bool sends = range.call == kNcclSend;
      event.kind = sends ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
      event.name = trace_.name(sends ? "Send" : "Recv");
      event.peer = place(NcclField::peer);
      return event;
    }
    const NcclCall& call = kNcclCalls[range.call];
    event.kind = TraceEvent::Kind::collective;
    event.func = call.func;
    event.blocks = call.blocks;
    event.name = trace_.name(call.name);
    if (call.func == Func::broadcast || call.func == Func::reduce || call.func == Func::gather ||
        call.func == Func::scatter)
      event.peer = place(NcclField::root);
    return event;
  }

  // For communicators made before the capture began: ranks are the numbers in the files' names,
  // else their order, and the members of a communicator are the processes that call it.
  void assume_ranks() {
    std::vector<std::size_t> acting;
    for (std::size_t p = 0; p < processes_.size(); ++p)
      if (!processes_[p].kernels.empty()) acting.push_back(p);
    const int ranks = std::max(static_cast<int>(acting.size()), ranks_);
    std::map<std::size_t, int> rank_of;  // by process
    std::set<int> distinct;
    for (const std::size_t p : acting) {
      const auto rank = rank_at_end(processes_[p].file);
      if (rank && *rank < ranks && distinct.insert(*rank).second) rank_of[p] = *rank;
    }
    const bool by_name = rank_of.size() == acting.size();
    for (std::size_t i = 0; !by_name && i < acting.size(); ++i)
      rank_of[acting[i]] = static_cast<int>(i);
    const auto add = [&](const std::string& id, int size, int position, std::size_t p) {
      records_.join({id, "", size}, position, processes_[p].number, processes_[p].file,
                    [](const std::string& what) { throw Error(what); });
    };
    for (const auto& [p, rank] : rank_of) add("world", ranks, rank, p);
    for (const Called& called : called_) {
      // The only communicator of a job that is known to be larger is the job.
      const bool whole = called_.size() == 1 && ranks > static_cast<int>(called.callers.size());
      if (called.callers.size() == 1 && !whole)
        throw Error(processes_[*called.callers.begin()].file + ": communicator " + called.comm +
                    " was made before the capture began and only one of its ranks is here; give "
                    "the exports of all ranks, or profile from the start of the process");
      std::map<int, std::size_t> members;
      for (const std::size_t p : called.callers) members.emplace(rank_of.at(p), p);
      int position = 0;
      for (const auto& [rank, p] : members)
        add(called.comm, whole ? ranks : static_cast<int>(members.size()),
            whole ? rank : position++, p);
    }
    trace_.notes.emplace_back(
        std::string("NCCL's communicators were made before the capture began: ranks are ") +
        (by_name ? "those at the end of the files' names" : "numbered in the order of the files") +
        ", and the members of a communicator are the ranks that call it (of an only one, all)");
  }

  void add_rank(Process& process, WorldRank number) {
    TraceRank& rank = trace_.given.emplace_back();
    rank.rank = number;
    rank.file = process.file;
    rank.tracks = {"compute"};
    for (DeviceKernel& kernel : process.kernels) {
      if (!kernel.call) continue;
      std::vector<TraceEvent> calls{kernel.event};
      calls.insert(calls.end(), kernel.also.begin(), kernel.also.end());
      const std::size_t all = calls.size();
      std::erase_if(calls, [&](TraceEvent& call) { return !place(call, rank); });
      leave_out("messages of a rank to itself", all - calls.size());
      trace_.used -= all - calls.size();
      if (calls.empty()) {  // a copy on the device
        kernel.call = false;
        kernel.event.kind = TraceEvent::Kind::compute;
        kernel.event.duration = kernel.end - kernel.start;
        kernel.also.clear();
        continue;
      }
      kernel.event = calls.front();
      kernel.also.assign(calls.begin() + 1, calls.end());
    }
    put_into_steps(process);
    add_kernels(process.kernels, trace_, rank);
    process.kernels = {};
  }

  void put_into_steps(Process& process) {
    std::sort(process.steps.begin(), process.steps.end());
    std::vector<std::int64_t> begins;
    std::int64_t until = 0;  // end of the last step
    for (const NsysStep& step : process.steps) {
      if (step.start < until) continue;
      begins.push_back(step.start);
      steps_.push_back(step.end - step.start);
      until = step.end;
    }
    if (begins.empty()) return;
    trace_.steps = std::max(trace_.steps,
                            ghostrank::put_into_steps(process.kernels, process.launched, begins));
  }

  // Gives a call its communicator and peer in the job; false: a message to itself.
  bool place(TraceEvent& call, const TraceRank& rank) const {
    call.group = records_.comm_of.at(called_[call.group].comm);
    if (call.kind == TraceEvent::Kind::collective) return true;
    const auto& members = trace_.groups[call.group].members;
    const int size = size_of(trace_, call.group, trace_.ranks);
    if (call.peer >= size)
      throw Error(position_text(trace_, rank, call) + ": peer " + std::to_string(call.peer) +
                  " of a communicator of " + std::to_string(size));
    if (!members.empty()) call.peer = members[call.peer].value();
    return call.peer != rank.rank.value();
  }

  void take_notes() {
    trace_.notes.emplace_back(
        "what ties streams together is rebuilt from the kernels' times; idle time of a stream is "
        "kept");
    if (unexplained_ > 0)
      trace_.notes.push_back(note_of_silent_kernels(
          unexplained_,
          "have no call with a communicator and a size (NVTX's payloads, exported with "
          "--include-blobs=true)"));
    if (graphs_ > 0)
      trace_.notes.push_back(
          std::to_string(graphs_) +
          " CUDA graphs were recorded whole, and so are played; calls of NCCL in them are not "
          "seen (nsys profile --cuda-graph-trace=node)");
    if (!steps_.empty()) trace_.notes.push_back(note_of_steps(trace_.steps, steps_));
  }

  Trace& trace_;
  const int ranks_;
  const std::string* path_ = nullptr;  // of the file being read, or of the last one
  std::vector<Process> processes_;
  std::map<std::uint64_t, std::size_t> by_pid_;  // of the file: index into processes_
  NcclRecords records_;                          // only memberships of communicators
  std::vector<Called> called_;
  std::map<std::string, std::uint32_t> called_at_;
  std::vector<std::int64_t> steps_;  // nanoseconds
  std::uint64_t unexplained_ = 0, graphs_ = 0;
};

}  // namespace

Trace import_nsys(const std::vector<std::string>& files, int ranks) {
  Trace trace;
  trace.format = "nsys";
  trace.unit = "nanoseconds, of each session's clock";
  trace.position_unit = "NVTX_EVENTS row";
  Importer importer(trace, ranks);
  for (const std::string& file : files) importer.read(file);
  importer.finish();
  return trace;
}

}  // namespace ghostrank
