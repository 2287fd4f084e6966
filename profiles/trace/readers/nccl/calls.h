// Calls of NCCL as some format records them (its Inspector, its log), and the events that they
// become. Nsight's reader shares the names of calls and the memberships of communicators.
//
// Calls whose kernels have times are ordered by the start of these, and those that start together
// by when the host enqueued them. Time before a call with no call in flight becomes a computation
// that follows all earlier calls. If the previous call is still in flight, the time between the two
// starts becomes a computation that runs beside it. Calls without times keep their order, and there
// are no delays. Calls that some members lack are left out, and so are sends and receives that the
// other end lacks. Threading: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/schedule.h"
#include "profiles/trace/trace.h"

namespace ghostrank {

struct NcclCall {
  std::string_view name;
  Func func;
  bool blocks;  // the size is one rank's block
};
inline constexpr NcclCall kNcclCalls[] = {{"AllReduce", Func::all_reduce, false},
                                          {"AllGather", Func::all_gather, true},
                                          {"ReduceScatter", Func::reduce_scatter, true},
                                          {"Broadcast", Func::broadcast, false},
                                          {"Reduce", Func::reduce, false},
                                          {"AlltoAll", Func::all_to_all, true},
                                          {"AllToAll", Func::all_to_all, true},
                                          {"All2All", Func::all_to_all, true},
                                          {"AllToAllPivot", Func::all_to_all, true},
                                          {"Gather", Func::gather, true},
                                          {"Scatter", Func::scatter, true}};
inline constexpr std::uint32_t kNcclSend = 100, kNcclRecv = 101;

struct NcclRecord {
  std::uint32_t call = 0;  // index into kNcclCalls, kNcclSend or kNcclRecv
  std::uint32_t comm = 0, membership = 0;
  std::int32_t peer = -1;  // position in the communicator; of a collective its root, -1: unknown
  std::uint64_t number = 0, bytes = 0, line = 0;
  std::int64_t start_us = -1, stop_us = -1;  // of the kernels; -1: unknown
  std::int64_t enqueued_us = -1;             // by the host; -1: unknown
};

struct NcclComm {
  std::string id, name;
  int ranks = 0;  // 0: not told
};

// A communicator as one process sees it.
struct NcclMembership {
  std::uint32_t comm = 0, process = 0;
  std::int32_t rank = 0;
  std::string file;
};

struct NcclRecords {
  std::vector<NcclRecord> records;  // in the order of the files
  std::vector<NcclComm> comms;
  std::vector<NcclMembership> memberships;
  std::map<std::uint32_t, std::uint64_t> dropped;  // by membership: operations that the plugin lost
  std::uint64_t markers = 0, proxy = 0;            // lines of dump_stats, of proxy traces
  std::uint64_t broken_off = 0;                    // lines at the end of a file that lack their end

  std::map<std::string, std::uint32_t> comm_of;                              // by id
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> process_of;  // host and pid
  std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t>
      membership_at;  // communicator, rank

  // The number of a process, known or new.
  std::uint32_t process(const std::string& host, std::int64_t pid);
  // The membership of `rank` in `comm`, known or new. Calls `fail`, which must throw, if the
  // communicator has another size than before or its rank another process.
  std::uint32_t join(const NcclComm& comm, std::int32_t rank, std::uint32_t process,
                     const std::string& file, const std::function<void(const std::string&)>& fail);
  // Gives each communicator of unknown size the least size that its ranks and peers allow; returns
  // the number of such communicators.
  std::uint64_t infer_sizes();
};

// Adds the records' events to `trace`, whose format and unit must be set. `path` is for errors.
void import_records(const NcclRecords& records, const std::string& path, Trace& trace);

}  // namespace ghostrank
