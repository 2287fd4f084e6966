// A SWX pipeline of DPDK, interpreted: configured from a Spec through the public calls, fed by
// ports of our own. The only place, with ports and main, that includes <rte_...>.
//
// Threading: the thread that made it; DPDK's environment must have been started (main.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "switch/dpdk/ports.h"
#include "switch/dpdk/spec.h"

struct rte_swx_pipeline;
struct rte_swx_ctl_pipeline;

namespace ghostrank::dpdk {

// One entry of one table, as DPDK writes it: "match 0x1 ... action NAME field value ...".
struct TableEntry {
  std::string table, text;
};

inline constexpr std::uint32_t kMirrorSlots = 8, kMirrorSessions = 64;
inline constexpr std::uint32_t kNowhere = kMirrorSessions - 1;  // the session that drops

class Pipeline {
 public:
  // Ports 0 .. ports-1 read and write; other ports drop. Mirroring
  // session p copies to port p. Throws std::runtime_error where DPDK refuses, naming what.
  Pipeline(const Spec& spec, PortSet& ports);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Adds all entries at once. Throws std::runtime_error naming the first that is refused.
  void add(const std::vector<TableEntry>& entries);

  // Runs so many instructions, and hands over what waits at the ports that leave.
  void run(std::uint32_t instructions);

 private:
  void configure_ports(PortSet& ports);
  void configure(const Spec& spec);
  void mirror(int ports);

  struct Ends;
  std::unique_ptr<Ends> ends_;  // what the ports of the pipeline point to
  rte_swx_pipeline* pipeline_ = nullptr;
  rte_swx_ctl_pipeline* control_ = nullptr;
};

}  // namespace ghostrank::dpdk
