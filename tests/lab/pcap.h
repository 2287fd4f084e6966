// What a packet capture (headers are enough) says of TCP: payload bytes per flow, counted by
// sequence numbers, so that retransmissions count once and a packet that the capture missed in
// mid-flow counts all the same.
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

// Payload bytes of every TCP flow whose SYN is in the file. Flows of 2 GiB and more are beyond it.
std::map<Flow, std::uint64_t> tcp_payload(const std::string& pcap_file);

// Segments with payload, in the order of the capture; retransmissions are in it.
struct TcpSegment {
  double seconds = 0;  // since 1970
  Flow flow;
  std::uint32_t bytes = 0;  // of payload
};
std::vector<TcpSegment> tcp_segments(const std::string& pcap_file);

}  // namespace ghostrank::testing
