#include "profiles/capture/nccl/recorder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include "profiles/capture/nccl/interface.h"

namespace ghostrank::nccl_profiler {
namespace {

std::int64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * std::int64_t{1'000'000} + now.tv_nsec / 1000;
}

// "key": value, with a comma before all but the first of an object.
class Line {
 public:
  Line& open(std::string_view key) {
    name(key);
    text_ += '{';
    return *this;
  }
  Line& open_list(std::string_view key) {
    name(key);
    text_ += '[';
    return *this;
  }
  Line& element() {
    comma();
    text_ += '{';
    return *this;
  }
  Line& close(char end = '}') {
    text_ += end;
    return *this;
  }
  template <typename Integer>
  Line& number(std::string_view key, Integer value) {
    name(key);
    text_ += std::to_string(value);
    return *this;
  }
  // Control characters and what JSON escapes become '?': names are identifiers.
  Line& text(std::string_view key, std::string_view value) {
    name(key);
    text_ += '"';
    for (const char c : value)
      text_ += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    text_ += '"';
    return *this;
  }
  Line& flag(std::string_view key, bool value) {
    name(key);
    text_ += value ? "true" : "false";
    return *this;
  }
  Line& raw(const std::string& members) {
    comma();
    text_ += members;
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  void comma() {
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[') text_ += ", ";
  }
  void name(std::string_view key) {
    comma();
    text_ += '"';
    text_ += key;
    text_ += "\": ";
  }
  std::string text_ = "{";
};

}  // namespace

Recorder& Recorder::of_process() {
  const char* folder = std::getenv("GHOSTRANK_PROFILER_DIR");
  static Recorder& recorder = *new Recorder(folder && *folder ? folder : ".");
  struct Closer {
    ~Closer() { recorder.close(); }
  };
  static const Closer closer;
  return recorder;
}

Recorder::Recorder(const std::string& folder) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  host_ = host;
  std::error_code ignored;  // fopen says what is wrong
  std::filesystem::create_directories(folder, ignored);
  path_ = folder + "/nccl-" + host_ + "-" + std::to_string(getpid()) + ".jsonl";
  file_ = std::fopen(path_.c_str(), "w");
  if (!file_)
    std::fprintf(
        stderr, "ghostrank-profiler: %s cannot be written: %s; GHOSTRANK_PROFILER_DIR says where\n",
        path_.c_str(), std::strerror(errno));
}

Recorder::~Recorder() { close(); }

void Recorder::close() {
  const std::lock_guard lock(mutex_);
  while (!comms_.empty()) end_comm(comms_.begin());
  if (file_) std::fclose(file_);
  file_ = nullptr;
}

Handle Recorder::add_comm(CommFacts facts) {
  const std::lock_guard lock(mutex_);
  comms_[next_].facts = std::move(facts);
  return next_++;
}

void Recorder::learn(Handle comm, std::uint64_t id, const char* name, int rank) {
  const std::lock_guard lock(mutex_);
  const auto found = comms_.find(comm);
  if (found == comms_.end()) return;
  CommFacts& facts = found->second.facts;
  if (id != 0) facts.id = id;
  if (name) facts.name = name;
  if (rank >= 0) facts.rank = rank;
}

void Recorder::remove_comm(Handle comm) {
  const std::lock_guard lock(mutex_);
  if (const auto found = comms_.find(comm); found != comms_.end()) end_comm(found);
}

void Recorder::end_comm(Events<Comm>::iterator comm) {
  const std::deque<Handle> calls = comm->second.calls;
  for (const Handle call : calls) forget(call);
  // Operations that the proxy thread has not ended yet.
  std::vector<Handle> open;
  for (const auto& [handle, proxy] : proxies_)
    if (proxy.comm == comm->first) open.push_back(handle);
  std::sort(open.begin(), open.end());
  for (const Handle handle : open) {
    write_proxy(proxies_[handle]);
    proxies_.erase(handle);
  }
  comms_.erase(comm);
  if (file_) std::fflush(file_);
}

Handle Recorder::start_call(Handle comm, const CallFacts& facts) {
  const std::lock_guard lock(mutex_);
  const auto found = comms_.find(comm);
  if (found == comms_.end()) return 0;
  Comm& owner = found->second;
  if (owner.calls.size() >= kMostCalls) {
    const Handle oldest = owner.calls.front();
    forget(oldest);
  }
  const Handle handle = next_++;
  Call& call = calls_[handle];
  call.comm = comm;
  call.func = facts.func;
  call.algorithm = facts.algorithm;
  call.protocol = facts.protocol;
  call.facts = facts;
  call.facts.func = call.facts.algorithm = call.facts.protocol = {};  // NCCL's memory
  if (facts.p2p) call.facts.number = owner.messages[call.func]++;
  // Kernels of a group start together: only these times tell in which order its calls were made.
  call.start_us = last_call_us_ = std::max(now_us(), last_call_us_ + 1);
  owner.calls.push_back(handle);
  return handle;
}

Handle Recorder::start_kernel(Handle call, int channel, std::uint64_t timer_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return 0;
  ++found->second.open;
  const Handle handle = next_++;
  Kernel& kernel = kernels_[handle];
  kernel.call = call;
  kernel.channel = channel;
  kernel.start_ns = timer_ns;
  kernel.started_us = now_us();
  return handle;
}

Handle Recorder::start_proxy(Handle comm, Handle call, const ProxyFacts& facts) {
  const std::lock_guard lock(mutex_);
  const Handle handle = next_++;
  Proxy& proxy = proxies_[handle];
  proxy.comm = comm;
  proxy.facts = facts;
  proxy.start_us = now_us();
  // With PXN the call is of another process, and its handle means something else here.
  if (const auto found = calls_.find(call); facts.pid == getpid() && found != calls_.end()) {
    proxy.call = call;
    ++found->second.open;
  }
  return handle;
}

Handle Recorder::start_step(Handle proxy, int step) {
  const std::lock_guard lock(mutex_);
  const auto found = proxies_.find(proxy);
  if (found == proxies_.end()) return 0;
  ++found->second.open;
  const Handle handle = next_++;
  steps_[handle] = {proxy, step, 0, now_us(), 0, 0};
  return handle;
}

void Recorder::stop_kernel(Handle handle, std::uint64_t timer_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(handle);
  if (found == kernels_.end()) return;
  Kernel& kernel = found->second;
  kernel.stopped = true;
  kernel.stop_ns = timer_ns;
  kernel.stopped_us = now_us();
  for (const auto& [timer, seen] : {std::pair{kernel.start_ns, kernel.started_us},
                                    std::pair{kernel.stop_ns, kernel.stopped_us}}) {
    if (timer == 0) continue;
    const std::int64_t lag = seen - static_cast<std::int64_t>(timer / 1000);
    timer_lag_us_ = timer_known_ ? std::min(timer_lag_us_, lag) : lag;
    timer_known_ = true;
  }
}

void Recorder::move_step(Handle step, int state, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  found->second.bytes = std::max(found->second.bytes, bytes);
  if (state == kSendWait || state == kRecvWait) found->second.network_us = now_us();
}

void Recorder::count_bytes(Handle proxy, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto found = proxies_.find(proxy); found != proxies_.end())
    found->second.bytes = std::max(found->second.bytes, bytes);
}

void Recorder::stop(Handle event) {
  const std::lock_guard lock(mutex_);
  if (const auto step = steps_.find(event); step != steps_.end()) {
    step->second.stop_us = now_us();
    if (const auto proxy = proxies_.find(step->second.proxy); proxy != proxies_.end()) {
      --proxy->second.open;
      proxy->second.steps.push_back(step->second);
    }
    steps_.erase(step);
    return;
  }
  if (const auto kernel = kernels_.find(event); kernel != kernels_.end()) {
    const Handle call = kernel->second.call;
    if (const auto owner = calls_.find(call); owner != calls_.end() && kernel->second.stopped)
      owner->second.kernels.push_back(kernel->second);
    kernels_.erase(kernel);
    end_child(call);
    return;
  }
  if (const auto proxy = proxies_.find(event); proxy != proxies_.end()) {
    const Handle call = proxy->second.call;
    write_proxy(proxy->second);
    proxies_.erase(proxy);
    if (call != 0) end_child(call);
    return;
  }
  if (const auto call = calls_.find(event); call != calls_.end()) {
    call->second.stopped = true;
    call->second.stop_us = now_us();
    write_if_complete(event, call->second);
  }
}

void Recorder::end_child(Handle call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  --found->second.open;
  write_if_complete(call, found->second);
}

void Recorder::write_if_complete(Handle handle, Call& call) {
  if (!call.stopped || call.written) return;
  if (!comms_[call.comm].facts.kernels || call.facts.copy_engine) {
    write_call(call);  // kept for the sake of its proxy operations
    return;
  }
  if (call.open == 0 && call.facts.channels > 0 && std::ssize(call.kernels) >= call.facts.channels)
    forget(handle);
}

// Writes the call unless it is written, then drops it: later uses of its handle are ignored.
void Recorder::forget(Handle call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  if (!found->second.written) write_call(found->second);
  std::deque<Handle>& calls = comms_[found->second.comm].calls;
  calls.erase(std::find(calls.begin(), calls.end(), call));
  calls_.erase(found);
}

std::int64_t Recorder::from_timer(std::uint64_t timer_ns, std::int64_t seen_us) const {
  return timer_ns == 0 ? seen_us : static_cast<std::int64_t>(timer_ns / 1000) + timer_lag_us_;
}

std::string Recorder::header(const Comm& comm) const {
  char id[32];
  std::snprintf(id, sizeof id, "0x%llx", static_cast<unsigned long long>(comm.facts.id));
  Line line;
  line.open("header").text("id", id).number("rank", comm.facts.rank);
  line.number("n_ranks", comm.facts.ranks).number("nnodes", comm.facts.nodes);
  if (!comm.facts.name.empty()) line.text("comm_name", comm.facts.name);
  line.close().open("metadata").text("inspector_output_format_version", "v4.2");
  line.text("git_rev", "").text("rec_mechanism", "ghostrank_profiler");
  line.number("dump_timestamp_us", now_us())
      .text("hostname", host_)
      .number("pid", getpid())
      .close();
  return line.take().substr(1);
}

void Recorder::write_call(Call& call) {
  call.written = true;
  const CallFacts& facts = call.facts;
  const std::string prefix = facts.p2p ? "p2p" : "coll";
  const auto key = [&](const char* rest) { return prefix + rest; };
  std::int64_t first = 0, last = 0;
  for (const Kernel& kernel : call.kernels) {
    const std::int64_t start = from_timer(kernel.start_ns, kernel.started_us);
    first = first == 0 ? start : std::min(first, start);
    last = std::max(last, from_timer(kernel.stop_ns, kernel.stopped_us));
  }
  Line line;
  line.raw(header(comms_[call.comm])).open(key("_perf")).text(prefix, call.func);
  line.number(key("_sn"), facts.number);
  if (facts.p2p) line.number("p2p_peer", facts.peer);
  line.number(key("_msg_size_bytes"), facts.bytes);
  if (!facts.p2p) line.number("coll_root", facts.root);
  if (!call.algorithm.empty())
    line.text("coll_algo", call.algorithm).text("coll_proto", call.protocol);
  if (facts.channels > 0) line.number("channels", facts.channels);
  line.number(key("_exec_time_us"), last - first);
  line.text(key("_timing_source"), call.kernels.empty()               ? "none"
                                   : call.kernels.front().stop_ns > 0 ? "kernel_gpu"
                                                                      : "kernel_cpu");
  line.open("event_trace_ts").number(key("_start_ts"), call.start_us);
  line.number(key("_stop_ts"), call.stop_us);
  if (!call.kernels.empty()) {
    line.open_list("kernel_events");
    for (const Kernel& kernel : call.kernels)
      line.element()
          .number("channel_id", kernel.channel)
          .number("kernel_start_ts", from_timer(kernel.start_ns, kernel.started_us))
          .number("kernel_stop_ts", from_timer(kernel.stop_ns, kernel.stopped_us))
          .number("kernel_record_ts", kernel.stopped_us)
          .close();
    line.close(']');
  }
  line.close().close().close();
  write(line.take());
}

void Recorder::write_proxy(const Proxy& proxy) {
  const auto comm = comms_.find(proxy.comm);
  if (comm == comms_.end()) return;
  Line line;
  line.raw(header(comm->second)).open("proxy_trace");
  if (const auto call = calls_.find(proxy.call); call != calls_.end())
    line.text("of", call->second.func).number("sn", call->second.facts.number);
  else
    line.number("pid", proxy.facts.pid);  // of the call's process
  std::uint64_t bytes = proxy.bytes;
  for (const Step& step : proxy.steps) bytes += step.bytes;
  line.flag("send", proxy.facts.send).number("peer", proxy.facts.peer);
  line.number("channel", proxy.facts.channel).number("steps", proxy.facts.steps);
  line.number("chunk_bytes", proxy.facts.chunk_bytes).number("bytes", bytes);
  line.number("start_ts", proxy.start_us).number("stop_ts", now_us());
  if (!proxy.steps.empty()) {
    line.open_list("messages");
    for (const Step& step : proxy.steps)
      line.element()
          .number("step", step.step)
          .number("bytes", step.bytes)
          .number("start_ts", step.start_us)
          .number("network_ts", step.network_us)
          .number("stop_ts", step.stop_us)
          .close();
    line.close(']');
  }
  line.close().close();
  write(line.take());
}

void Recorder::write(const std::string& line) {
  if (!file_) return;
  if (std::fprintf(file_, "%s\n", line.c_str()) >= 0) return;
  std::fprintf(stderr, "ghostrank-profiler: %s: %s; nothing more is recorded\n", path_.c_str(),
               std::strerror(errno));
  std::fclose(file_);
  file_ = nullptr;
}

}  // namespace ghostrank::nccl_profiler
