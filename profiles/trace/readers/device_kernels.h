// What one rank's device did (kernels, copies, fills), as the events of a TraceRank. Profilers of
// devices record times but no dependencies; the rules here rebuild them.
// Units: picoseconds, bytes. Threading: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiles/trace/trace.h"

namespace ghostrank {

struct DeviceKernel {
  Picoseconds start = 0, end = 0;
  std::int64_t stream = 0;
  bool call = false;                     // a collective, send or receive
  std::optional<std::int64_t> external;  // the host's event that launched it
  TraceEvent event;
  std::vector<TraceEvent> also;  // further calls that the kernel does at the same time
};

// Appends the kernels to `rank`, in the order of their starts. Kernels of a stream run one after
// the other. What ties streams together:
//
//   a collective, send or receive comes after the last kernel of every other stream that had ended
//   a computation comes after a call that ended while the computation's stream was idle
//   other idle time of a stream before a computation becomes a computation of that length
//
// A step begins when all kernels of earlier steps have ended; idle time before that is not its own.
//
// Consumes `kernels`.
void add_kernels(std::vector<DeviceKernel>& kernels, Trace& trace, TraceRank& rank);

// The number, for DeviceKernel::stream, of a stream of another device than the first that the
// process used, whose streams keep their numbers.
std::int64_t stream_of_device(std::int64_t device, std::int64_t stream);

// Puts every kernel into the last step that had begun when the host launched it. `begins`: of the
// steps, in order, not empty; `launched`: by kernel, in the clock of `begins`; < 0: unknown, then
// it is of the step of the kernel before, on its stream if there is one. Returns the number of
// steps up to the last that has a kernel.
std::uint32_t put_into_steps(std::vector<DeviceKernel>& kernels,
                             const std::vector<std::int64_t>& launched,
                             const std::vector<std::int64_t>& begins);

// A note for people. `nanos`: durations of the host's ranges that mark steps; not empty.
std::string note_of_steps(std::uint32_t steps, const std::vector<std::int64_t>& nanos);

}  // namespace ghostrank
