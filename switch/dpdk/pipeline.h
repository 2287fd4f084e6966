// An interpreted SWX pipeline of DPDK: configured from a Spec through DPDK's public calls, fed by
// our own ports. Only pipeline.cpp, xdp_ports.cpp and main.cpp include <rte_...>.
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

// One entry of one table, in DPDK's text: "match 0x1 ... action NAME field value ...".
struct TableEntry {
  std::string table, text;
  bool remove = false;  // else add it
};

// Mirroring sessions: kWholeSessions that copy whole packets, the last of them to nowhere; then as
// many that copy only the bytes that a credit has.
inline constexpr std::uint32_t kMirrorSlots = 8, kWholeSessions = 64,
                               kMirrorSessions = 2 * kWholeSessions;

class Pipeline {
 public:
  // Of n ports, 0 .. n-1 read and write. A packet sent to port n+p leaves at every port but p, as
  // flooded frames do, because a pipeline has no replication. Packets to any other port are
  // dropped. Mirroring session p copies to port p, session kWholeSessions + p a credit's bytes.
  // DPDK handles 16 packets at once, and a packet with fewer passes overtakes others. `in_order`: a
  // packet enters only after all copies of the one before have left. `number`: distinct among the
  // process's pipelines. Throws std::runtime_error naming what DPDK refuses.
  Pipeline(const Spec& spec, PortSet& ports, bool in_order, int number);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Applies all entries, or none if DPDK refuses one: then throws std::runtime_error naming it.
  void change(const std::vector<TableEntry>& entries);
  // Both throw std::runtime_error if there is no such register array or cell.
  void write_register(const std::string& name, std::uint32_t index, std::uint64_t value);
  std::uint64_t read_register(const std::string& name, std::uint32_t index);

  // Runs until no packet is inside; no packet enters meanwhile.
  void drain();

  // Runs `instructions` instructions, and sends the packets that wait at the outgoing ports.
  void run(std::uint32_t instructions);

 private:
  void configure_ports(PortSet& ports, bool in_order, const std::string& pool);
  void configure(const Spec& spec);
  void mirror(int ports);

  struct Ends;
  std::unique_ptr<Ends> ends_;  // the pipeline's ports point into it
  rte_swx_pipeline* pipeline_ = nullptr;
  rte_swx_ctl_pipeline* control_ = nullptr;
};

}  // namespace ghostrank::dpdk
