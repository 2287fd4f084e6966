// TCP traffic in a packet capture (headers suffice): payload bytes per flow, counted by sequence
// numbers, so that a retransmission counts once and a packet that the capture missed in mid-flow
// counts, too.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace ghostrank::testing {

struct Flow {
  std::string source, target;  // dotted IPv4
  std::uint16_t source_port = 0, target_port = 0;
  auto operator<=>(const Flow&) const = default;
};

// Payload bytes of every TCP flow whose SYN is in the file. Flows must have less than 2 GiB.
std::map<Flow, std::uint64_t> tcp_payload(const std::string& pcap_file);

// Segments with payload in the order of the capture, including retransmissions.
struct TcpSegment {
  double seconds = 0;  // since 1970
  Flow flow;
  std::uint32_t bytes = 0;  // payload
};
std::vector<TcpSegment> tcp_segments(const std::string& pcap_file);

}  // namespace ghostrank::testing
