// The switch that plays the helpers of schemes.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/units.h"

namespace ghostrank {

enum class SwitchTarget : std::uint8_t {
  model,     // none: helpers are modelled, or played on a server
  compiled,  // started by the run, on this machine
  dpdk,      // likewise
  bmv2,      // likewise
  external   // runs already
};
inline constexpr std::pair<SwitchTarget, std::string_view> kSwitchTargets[] = {
    {SwitchTarget::model, "model"},
    {SwitchTarget::compiled, "compiled"},
    {SwitchTarget::dpdk, "dpdk"},
    {SwitchTarget::bmv2, "bmv2"},
    {SwitchTarget::external, "external"}};
std::string_view name_of(SwitchTarget target);

// Which switch plays the helpers of schemes, and forwards everything else, on a real network.
struct SwitchSpec {
  SwitchTarget target = SwitchTarget::model;
  std::string address;  // IPv4, of the switch
  std::string mac;      // empty: the switch answers ARP
  int nics = 1;         // NICs of every node that lead to it; its ports are in their order
  // A run starts so many leaf switches, each for neighbouring nodes, and a spine above them; 1: one
  // switch.
  int leaves = 1;
  std::string ports;  // of a started one: its interface to each NIC, with {node} and {nic}
  std::string network_namespace;  // of these interfaces; empty: that of the process
  std::string socket;             // external: the run describes the job here; empty: it knows
  std::string program, entries;   // of P4 targets: another program and its entries
  std::uint16_t worker_port = 4000;
  double loss = 0;  // share of packets that a started one loses at every port, each way
  std::uint64_t loss_seed = 1;
  // When a modelled switch fails in the measured iterations, ascending, and how long it then stays
  // away. A switch that returns has lost all its state.
  std::vector<Picoseconds> fails_at;
  Picoseconds away = 0;
  bool outside() const { return target != SwitchTarget::model; }
  bool started() const { return outside() && target != SwitchTarget::external; }
  bool on_p4() const { return target == SwitchTarget::dpdk || target == SwitchTarget::bmv2; }
};

}  // namespace ghostrank
