// What NCCL tells the plugin in one process, as lines of JSON in the form of NCCL Inspector v4.2,
// which `ghostrank profile import` reads: a line for each collective, send and receive with its
// kernels, and a line ("proxy_trace") for each operation of the proxy thread with its steps, that
// is, the messages on the network.
//
// NCCL starts and stops events from several threads, and children of a call may begin after the
// call was stopped, which only means that it was enqueued. So handles are numbers, not addresses: a
// handle whose event is gone is ignored. A call is written when it was stopped, no child is open,
// and as many kernels have ended as it has channels; or when kMostCalls later ones have begun; or
// with its communicator. Before v3 NCCL reports no kernels: then a call is written when it is
// stopped, without times of kernels, and lines are in the order of the calls.
//
// Times are microseconds since 1970. A GPU's timer is moved by the least difference seen between it
// and this clock, because NCCL reports with a delay.
//
// Errors: if the file cannot be opened, init() fails and NCCL goes on without the plugin; a later
// write error ends the recording with one line on stderr. Threading: one mutex, all functions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ghostrank::nccl_profiler {

using Handle = std::uint64_t;  // 0: no event

struct CommFacts {
  std::uint64_t id = 0;
  std::string name;
  int ranks = 0, nodes = 0;  // 0: not told (before v4)
  int rank = -1;
  bool kernels = true;  // NCCL reports kernels (from v3 on)
};

struct CallFacts {
  bool p2p = false, copy_engine = false;       // copy engines start no kernels
  std::string_view func, algorithm, protocol;  // NCCL's words
  std::uint64_t number = 0;                    // of a collective: among those of its function
  std::uint64_t bytes = 0;
  int peer = -1, root = 0, channels = 0;
};

struct ProxyFacts {
  int pid = 0, channel = 0, peer = -1, steps = 0, chunk_bytes = 0;
  bool send = false;
};

class Recorder {
 public:
  // The process's own; its file is DIR/nccl-HOST-PID.jsonl. It is closed at exit, or when NCCL
  // unloads the plugin, but never destroyed: a thread of NCCL may still report events.
  static Recorder& of_process();

  explicit Recorder(const std::string& folder);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  bool works() const {
    const std::lock_guard lock(mutex_);
    return file_ != nullptr;
  }

  Handle add_comm(CommFacts facts);
  // v1 to v3 describe the communicator with each call, not in init().
  void learn(Handle comm, std::uint64_t id, const char* name, int rank);
  void remove_comm(Handle comm);
  // Removes all communicators and closes the file; ignores what is reported afterwards.
  void close();

  Handle start_call(Handle comm, const CallFacts& facts);
  Handle start_kernel(Handle call, int channel, std::uint64_t timer_ns);
  Handle start_proxy(Handle comm, Handle call, const ProxyFacts& facts);
  Handle start_step(Handle proxy, int step);
  void stop_kernel(Handle kernel, std::uint64_t timer_ns);  // 0: there is no timer
  void move_step(Handle step, int state, std::uint64_t bytes);
  void count_bytes(Handle proxy, std::uint64_t bytes);  // of all its steps so far (v1 to v3)
  void stop(Handle event);

  static constexpr std::size_t kMostCalls = 4096;  // of a communicator, until the oldest is written

 private:
  struct Comm {
    CommFacts facts;
    std::deque<Handle> calls;  // that may still get children, oldest first
    std::map<std::string, std::uint64_t, std::less<>> messages;  // so far, by function
  };
  struct Kernel {
    Handle call = 0;
    int channel = 0;
    std::uint64_t start_ns = 0, stop_ns = 0;  // of the GPU's timer
    std::int64_t started_us = 0, stopped_us = 0;
    bool stopped = false;
  };
  struct Call {
    Handle comm = 0;
    std::string func, algorithm, protocol;
    CallFacts facts;
    std::int64_t start_us = 0, stop_us = 0;
    bool stopped = false, written = false;
    int open = 0;  // kernels and proxy operations that have not ended
    std::vector<Kernel> kernels;
  };
  struct Step {
    Handle proxy = 0;
    int step = 0;
    std::uint64_t bytes = 0;
    std::int64_t start_us = 0, network_us = 0, stop_us = 0;
  };
  struct Proxy {
    Handle comm = 0, call = 0;
    ProxyFacts facts;
    std::uint64_t bytes = 0;
    std::int64_t start_us = 0;
    bool stopped = false;
    int open = 0;
    std::vector<Step> steps;
  };

  template <typename Event>
  using Events = std::unordered_map<Handle, Event>;

  void end_comm(Events<Comm>::iterator comm);
  std::string header(const Comm& comm) const;
  void end_child(Handle call);
  void write_if_complete(Handle handle, Call& call);
  void forget(Handle call);
  void write_call(Call& call);
  void write_proxy(const Proxy& proxy);
  void write(const std::string& line);
  std::int64_t from_timer(std::uint64_t timer_ns, std::int64_t seen_us) const;

  mutable std::mutex mutex_;
  std::FILE* file_ = nullptr;
  std::string path_, host_;
  Handle next_ = 1;
  Events<Comm> comms_;
  Events<Call> calls_;
  Events<Kernel> kernels_;
  Events<Proxy> proxies_;
  Events<Step> steps_;
  std::int64_t last_call_us_ = 0;  // when the latest call began
  std::int64_t timer_lag_us_ = 0;
  bool timer_known_ = false;
};

}  // namespace ghostrank::nccl_profiler
