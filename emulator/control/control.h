// The control plane of a job of several processes: rendezvous, exchange of small blobs, stop and
// failure. A small TCP star around process 0, apart from the data path. With one process it opens
// no socket.
//
// The listener binds only to MASTER_ADDR, admits only peers that present the job id and token,
// bounds every frame (kMaxFrameBytes), what waits until a peer reads it (kMaxUnsentBytes) or
// process 0 fetches it (kMaxPublishedBytes), and every wait. A peer whose connection closes before
// it said goodbye is lost: everybody else learns it within a second. A token keeps strays and
// mistakes out, not an attacker on the path.
//
// Threading: one owner thread calls everything but request_stop() and stop_reason(), which are safe
// from any thread (request_stop also from a signal handler). The control thread is internal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

class Fd;

// Which process this is and where it meets the others (world.cpp). Read from the first that speaks:
//   RANK, WORLD_SIZE                               torchrun's form, or by hand
//   a PMIx server                                  mpirun of Open MPI, srun --mpi=pmix
//   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE     mpirun without PMIx
//   SLURM_PROCID, SLURM_NTASKS, SLURM_NODELIST     srun
//   PMI_RANK, PMI_SIZE                             mpiexec of MPICH
// else one process alone. PMIx tells the others where process 0 is; srun knows its host; otherwise
// MASTER_ADDR and MASTER_PORT (GHOSTRANK_PORT where that one is taken) say so.
struct World {
  int rank = 0;
  int size = 1;
  std::string master_address = "127.0.0.1";
  int master_port = 0;
  std::string job_id = "ghostrank";
  std::string token;
  std::chrono::seconds timeout{30};           // for the rendezvous to complete
  std::chrono::milliseconds silence{20'000};  // a peer not heard of for so long is lost
  std::string build;    // of which program; empty: this library's version. Must be alike everywhere
  std::string boot_id;  // of the kernel; empty: this one's. Equal ids share a clock
  // Told about once a second while process 0 waits for others: which, and for how long.
  std::function<void(const std::string& waits_for, double seconds)> on_wait;
  std::shared_ptr<Fd> listener;  // process 0, where the kernel chose the port: listens already
};
// Throws Error(usage) on half-set or malformed variables. Under PMIx a barrier of all processes,
// and Error(environment) when the server fails.
World world_from_environment();

enum class Stop : int {
  none = 0,
  interrupted,  // SIGINT or SIGTERM, here or on another host
  peer_lost,    // a process died
  failed,       // a process said so: verification, stall, fabric
  machine,      // a process did not get what it needs of its machine: memory, threads
};

// The reason of a run that ended because a process got no more memory.
inline constexpr char kOutOfMemory[] =
    "out of memory: give this host fewer ranks or more memory, or send longer messages "
    "(collectives.slice)";

class Control {
 public:
  // Process 0 listens, the others connect; returns when all have met. Throws Error(environment)
  // within world.timeout: who is missing, where it listened, what to check.
  static std::unique_ptr<Control> meet(const World& world);
  virtual ~Control() = default;

  virtual const World& world() const = 0;

  // Every process gives a blob and gets everybody's, by rank. A barrier too. Returns an empty
  // vector when the run was stopped meanwhile (see stop()); throws nothing.
  virtual std::vector<std::string> all_gather(std::string_view blob) = 0;

  // Local CLOCK_MONOTONIC minus that of process 0, estimated at meet(); 0 on the same kernel (boot
  // id).
  virtual std::int64_t clock_offset_ns() const = 0;

  // Gives process 0 a blob at any time (results stream); process 0 fetches what has come, its own
  // included. Beyond kMaxPublishedBytes that it did not fetch, the run fails and names process 0.
  virtual void publish(std::string_view blob) = 0;
  virtual std::vector<std::pair<int, std::string>> take_published() = 0;

  // Process 0 tells all a number, the last of which told() gives everywhere, process 0 included.
  virtual void tell(std::uint32_t word) = 0;
  virtual std::uint32_t told() const noexcept = 0;

  // Stops the run everywhere: each process sees stop() != none within a second. Async-signal-safe.
  virtual void request_stop(Stop why) noexcept = 0;
  // request_stop with words.
  virtual void fail(std::string reason, Stop why = Stop::failed) = 0;
  virtual Stop stop() const noexcept = 0;
  virtual std::string stop_reason() const = 0;  // "host 2 (node7) was lost"
  // Called once from the control thread when the run stops (or has stopped): wakes what blocks.
  // Another call replaces it; when on_stop({}) returns, it is not and will not be called.
  virtual void on_stop(std::function<void()> wake) = 0;

  // Connections and greetings that the meeting turned away (process 0).
  virtual std::uint64_t strays() const { return 0; }

  // Says goodbye: from here on a closed connection is no loss. A Control destroyed without it is
  // lost to the others.
  virtual void close() = 0;
};

inline constexpr std::size_t kMaxFrameBytes = 64u << 20;

// What waits for one peer to read it, in bytes, and 64 more for each frame; beside it at most one
// round of all_gather. Where a peer lets more wait, the run fails and names it.
inline constexpr std::size_t kMaxUnsentBytes = 4 * kMaxFrameBytes;
// What is published and waits for process 0 to fetch it, in bytes, and 64 more for each blob.
inline constexpr std::size_t kMaxPublishedBytes = 4 * kMaxFrameBytes;

}  // namespace ghostrank
