// What carries messages, and what a link carries besides them.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "profiles/job/queue_pairs.h"
#include "profiles/job/queues.h"

namespace ghostrank {

// Bytes that a link carries besides the messages; they count wherever a rate is modelled.
struct Framing {
  std::uint32_t packet_payload = 0;  // message bytes per packet; 0: one packet per message
  std::uint32_t per_packet = 0;      // bytes
  std::uint32_t per_message = 0;

  bool none() const { return per_packet == 0 && per_message == 0; }
  std::uint64_t on_wire(std::uint64_t bytes) const {
    const std::uint64_t packets =
        packet_payload == 0 || bytes == 0 ? 1 : (bytes + packet_payload - 1) / packet_payload;
    return bytes + packets * per_packet + per_message;
  }
};

// Faults injected into the schemes' packets between nodes, as shares of all packets.
struct PacketSpec {
  double loss = 0, duplicates = 0, reordering = 0;
  std::uint32_t mtu = 9000;  // bytes of the largest IP packet
};

enum class FabricKind : std::uint8_t { memory, ofi, packets, virtual_time };
inline constexpr std::pair<FabricKind, std::string_view> kFabricKinds[] = {
    {FabricKind::memory, "memory"},
    {FabricKind::ofi, "ofi"},
    {FabricKind::packets, "packets"},
    {FabricKind::virtual_time, "virtual"}};
std::string_view name_of(FabricKind kind);
// Whether messages may leave the process over a real network; emulator/fabric/open.h opens it.
constexpr bool is_network(FabricKind kind) {
  return kind != FabricKind::memory && kind != FabricKind::virtual_time;
}
enum class Colocated : std::uint8_t { memory, model, wire };
enum class FlowKind : std::uint8_t { process, nic, connection };
enum class InsideNode : std::uint8_t { model, messages };
enum class PayloadMode : std::uint8_t { untouched, copied };

// How the modelled network of virtual time shares its NICs and links: message by message, as flows
// with max-min fair rates, or packet by packet.
enum class NetworkModel : std::uint8_t { loggp, flow, packet };

struct FabricSpec {
  FabricKind kind = FabricKind::memory;
  NetworkModel network = NetworkModel::loggp;
  std::string provider = "auto";
  std::string bind;  // local address of the data path; empty: chosen automatically
  FlowKind flows = FlowKind::process;
  Colocated colocated = Colocated::memory;
  std::uint64_t frame_bytes = 0;  // size of the frames that small messages of a flow share; 0: off
  // Network namespaces of emulated nodes: a name with {node}; empty: the process's own.
  std::string namespaces;
  InsideNode inside_node = InsideNode::model;  // for groups wholly inside a node
  PayloadMode payload =
      PayloadMode::untouched;  // memory: copy every payload byte or only its descriptor
  Framing framing;
  PacketSpec packets;
  QueueSpec queues;        // of NetworkModel::packet
  QueuePairs queue_pairs;  // of every connection, on modelled networks
  int dscp = -1;           // kind packets: of all that is sent; -1: the kernel's
};

}  // namespace ghostrank
