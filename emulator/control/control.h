// The control plane of a job of several processes: rendezvous, exchange of small blobs, stop and
// failure. A small TCP star around process 0, apart from the data path. With one process it opens
// no socket.
//
// The listener binds only to MASTER_ADDR and admits only peers with the job id and token. Limits
// hold for the rendezvous, a peer's silence, a frame (kMaxFrameBytes), bytes that a peer has not
// read yet (kMaxUnsentBytes) and those that process 0 has not fetched yet (kMaxPublishedBytes). A
// peer whose connection closes before its goodbye is lost: all others learn it within a second. A
// token keeps strays and mistakes out, not an attacker on the path.
//
// Threading: one owner thread calls everything but request_stop(), fail() and stop_reason(), which
// are safe from any thread (request_stop also from a signal handler). The control thread is
// internal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/common/number.h"

namespace ghostrank {

class Fd;

// Which process this is and where it meets the others (world.cpp). The first of these that is set
// counts:
//   RANK, WORLD_SIZE                               torchrun's form, or by hand
//   a PMIx server                                  mpirun of Open MPI, srun --mpi=pmix
//   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE     mpirun without PMIx
//   SLURM_PROCID, SLURM_NTASKS, SLURM_NODELIST     srun
//   PMI_RANK, PMI_SIZE                             mpiexec of MPICH
// If none is set, this is a process alone. PMIx tells the others where process 0 is, and srun knows
// its host; otherwise MASTER_ADDR and MASTER_PORT (GHOSTRANK_PORT where that port is taken) say so.
struct World {
  int rank = 0;  // of this process, as launchers call it
  int size = 1;
  Host host() const { return Host(rank); }
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::string job_id = "ghostrank";
  std::string token;
  std::chrono::seconds timeout{30};           // for the rendezvous to complete
  std::chrono::milliseconds silence{20'000};  // a peer that sends nothing for so long is lost
  std::string build;    // of the program, equal on all processes; empty: this library's version
  std::string boot_id;  // of the kernel; empty: this kernel's. Equal ids share a clock
  // Called about once a second while process 0 waits: the missing ranks, and how long it waited.
  std::function<void(const std::string& waits_for, double seconds)> on_wait;
  std::shared_ptr<Fd> listener;  // process 0: already listens, because the kernel chose the port
};
// Throws Error(usage) on incomplete or malformed variables. Under PMIx this is a barrier of all
// processes, and it throws Error(environment) when the server fails.
World world_from_environment();

enum class Stop : int {
  none = 0,
  interrupted,  // SIGINT or SIGTERM, here or on another host
  peer_lost,    // a process died
  failed,       // a process reported it: verification, stall, fabric
  machine,      // a process lacks something of its machine: memory, threads
};

// The reason of a run that ended for lack of memory.
inline constexpr char kOutOfMemory[] =
    "out of memory: give this host fewer ranks or more memory, or send longer messages "
    "(collectives.slice)";

class Control {
 public:
  // Process 0 listens, the others connect; returns when all have met. Otherwise throws
  // Error(environment) within world.timeout that says who is missing, where process 0 listened and
  // what to check.
  static std::unique_ptr<Control> meet(const World& world);
  virtual ~Control() = default;

  virtual const World& world() const = 0;

  // Every process gives a blob and gets everybody's, by rank. Also a barrier. Returns an empty
  // vector if the run was stopped meanwhile (see stop()); throws nothing.
  virtual std::vector<std::string> all_gather(std::string_view blob) = 0;

  // Local CLOCK_MONOTONIC minus that of process 0, estimated at meet(); 0 on the same kernel (equal
  // boot ids).
  virtual std::int64_t clock_offset_ns() const = 0;

  // Sends process 0 a blob at any time, so that results stream; process 0 fetches what has arrived,
  // its own blobs included. If more than kMaxPublishedBytes wait there, the run fails and names
  // process 0.
  virtual void publish(std::string_view blob) = 0;
  virtual std::vector<std::pair<int, std::string>> take_published() = 0;

  // Process 0 sends everybody a number; told() returns the latest one, on process 0 too.
  virtual void tell(std::uint32_t word) = 0;
  virtual std::uint32_t told() const noexcept = 0;

  // Stops the run everywhere: each process sees stop() != none within a second. Async-signal-safe.
  virtual void request_stop(Stop why) noexcept = 0;
  // request_stop with a reason.
  virtual void fail(std::string reason, Stop why = Stop::failed) = 0;
  virtual Stop stop() const noexcept = 0;
  virtual std::string stop_reason() const = 0;  // "host 2 (node7) was lost"
  // `wake` is called once, from the control thread, when the run stops (or if it has stopped
  // already), to wake a thread that blocks. Another call replaces it. After on_stop({}) has
  // returned, no `wake` is running and none will be called.
  virtual void on_stop(std::function<void()> wake) = 0;

  // Connections and greetings that the rendezvous turned away (process 0).
  virtual std::uint64_t strays() const { return 0; }

  // Says goodbye: a connection that closes later is no loss. If a Control is destroyed without
  // close(), the others take its process for lost.
  virtual void close() = 0;
};

// As control.all_gather(), for what precedes the start: throws Error(environment) if the run was
// stopped.
std::vector<std::string> all_gather_or_throw(Control& control, std::string_view blob);
[[noreturn]] void throw_stopped(const Control& control);  // with the reason

inline constexpr std::size_t kMaxFrameBytes = 64u << 20;

// Bytes that may wait for one peer to read them, each frame counted with 64 more; beside them at
// most one round of all_gather. If more wait for a peer, the run fails and names it.
inline constexpr std::size_t kMaxUnsentBytes = 4 * kMaxFrameBytes;
// Published bytes that may wait for process 0 to fetch them, each blob counted with 64 more.
inline constexpr std::size_t kMaxPublishedBytes = 4 * kMaxFrameBytes;

}  // namespace ghostrank
