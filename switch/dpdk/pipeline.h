// A SWX pipeline of DPDK, interpreted: configured from a Spec through the public calls, fed by
// ports of our own. The only place, with ports and main, that includes <rte_...>.
//
// Threading: one thread at a time; DPDK's environment must have been started (main.cpp).
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
  bool remove = false;  // else: to add
};

inline constexpr std::uint32_t kMirrorSlots = 8, kMirrorSessions = 64;
inline constexpr std::uint32_t kNowhere = kMirrorSessions - 1;  // the session that drops

class Pipeline {
 public:
  // Of n ports, 0 .. n-1 read and write. What is sent to port n+p leaves at every port but p, as
  // flooded frames do: replication is a switch's, not its pipeline's. Other ports drop. Mirroring
  // session p copies to port p.
  // DPDK has 16 packets in hand, and one that needs fewer passes overtakes; `in_order`: a packet
  // gets in when all copies of the one before have left. Throws std::runtime_error where DPDK
  // refuses, naming what. `number`: of the process's pipelines, each has its own.
  Pipeline(const Spec& spec, PortSet& ports, bool in_order, int number);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // All of them or, where one is refused, none: throws std::runtime_error naming it.
  void change(const std::vector<TableEntry>& entries);
  // Throw std::runtime_error where there is no such register array or cell.
  void write_register(const std::string& name, std::uint32_t index, std::uint64_t value);
  std::uint64_t read_register(const std::string& name, std::uint32_t index);

  // Until nothing is inside any more: lets nothing in meanwhile.
  void drain();

  // Runs so many instructions, and hands over what waits at the ports that leave.
  void run(std::uint32_t instructions);

 private:
  void configure_ports(PortSet& ports, bool in_order, const std::string& pool);
  void configure(const Spec& spec);
  void mirror(int ports);

  struct Ends;
  std::unique_ptr<Ends> ends_;  // what the ports of the pipeline point to
  rte_swx_pipeline* pipeline_ = nullptr;
  rte_swx_ctl_pipeline* control_ = nullptr;
};

}  // namespace ghostrank::dpdk
