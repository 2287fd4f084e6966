// What the host recorded of its calls (record_param_comms) in Kineto's traces of PyTorch up to 2.0,
// which do not number them as execution traces do: both have them in the order in which they began.
// A kernel's call is the one within which the host launched it. Times are nanoseconds of the file's
// clock. Threading: a value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiles/trace/readers/device_kernels.h"
#include "profiles/trace/readers/execution_trace.h"
#include "profiles/trace/readers/kineto_launches.h"

namespace ghostrank {

struct KinetoRecord {
  std::int64_t begin = 0, end = 0, thread = 0, external = 0;  // "External id"
};

struct KinetoCall {
  std::int64_t thread = 0, begin = 0, external = 0;
  TraceEvent event;     // without an execution trace
  std::string refusal;  // why it cannot be played; an error only if NCCL played it
};

class KinetoRecords {
 public:
  void clear() { all_.clear(); }
  void add(const KinetoRecord& record) { all_.push_back(record); }

  // Returns the number of each record in the execution trace, by External id, and gives the kernels
  // of NCCL the External id of their record; `correlations` are by kernel. Throws Error(usage)
  // about `path` if the execution trace has more or fewer records.
  std::map<std::int64_t, std::int64_t> number(const ExecutionCalls& calls, const std::string& path,
                                              const KinetoLaunches& launches,
                                              std::vector<DeviceKernel>& kernels,
                                              const std::vector<std::int64_t>& correlations);

 private:
  const KinetoRecord* around(const KinetoLaunch& launch) const;

  std::vector<KinetoRecord> all_;
};

}  // namespace ghostrank
