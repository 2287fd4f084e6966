// NCCL's own log, and its comparison with our schedules: both fail with an Error or not at all.
// Each group of calls in the log has one finding: what we play, or why it is not compared.
#include <string>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"
#include "tools/nccl/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  try {
    NcclLog log;
    read_nccl_log(fuzz::text_of(data, size), "nccl.log", log);
    Communicator node;
    node.node = "hgx-h100-400g";
    const NcclFindings findings = check_nccl_log(log, "nccl-2.28", node);
    fuzz::require(findings.comms.size() == log.comms.size());
    std::uint64_t calls = 0;
    for (const NcclCommFindings& comm : findings.comms)
      for (const NcclFinding& one : comm.calls) {
        fuzz::require(one.times > 0 && (!one.compared() || !one.here.empty()));
        ++calls;
      }
    fuzz::require(calls == log.groups.size());
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
