#include "tests/lab/pcap.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

namespace ghostrank::testing {
namespace {

constexpr std::size_t kFileHeader = 24, kRecordHeader = 16, kEthernet = 14;
constexpr unsigned kSyn = 0x02, kFin = 0x01;

std::uint32_t big(const unsigned char* p, int bytes) {
  std::uint32_t v = 0;
  for (int i = 0; i < bytes; ++i) v = v << 8 | p[i];
  return v;
}

std::uint32_t little32(const unsigned char* p) {
  return static_cast<std::uint32_t>(p[0]) | static_cast<std::uint32_t>(p[1]) << 8 |
         static_cast<std::uint32_t>(p[2]) << 16 | static_cast<std::uint32_t>(p[3]) << 24;
}

std::string dotted(const unsigned char* p) {
  std::string text = std::to_string(p[0]);
  for (int i = 1; i < 4; ++i) text += "." + std::to_string(p[i]);
  return text;
}

struct Sequence {
  std::uint32_t first = 0, end = 0;  // first payload byte; one past the last byte seen
  bool closed = false;               // by a FIN: acknowledgements that follow have its number
};

// One TCP segment in the capture.
struct Seen {
  double seconds = 0;
  Flow flow;
  std::uint32_t sequence = 0, payload = 0;
  unsigned flags = 0;
};

// Short frames are padded, so the length in the header counts. A segment that the NIC will cut may
// be too long for the header's length field, so the frame's length counts.
std::uint32_t payload_of(std::uint32_t frame, std::size_t headers, std::uint32_t in_header) {
  if (frame <= 60) return in_header - static_cast<std::uint32_t>(headers);
  return static_cast<std::uint32_t>(std::max<std::size_t>(frame, kEthernet + headers) - kEthernet -
                                    headers);
}

template <typename Visit>
void for_each_segment(const std::string& pcap_file, Visit visit) {
  std::ifstream in(pcap_file, std::ios::binary);
  const std::vector<char> raw{std::istreambuf_iterator<char>(in), {}};
  const auto* bytes = reinterpret_cast<const unsigned char*>(raw.data());
  for (std::size_t at = kFileHeader; at + kRecordHeader <= raw.size();) {
    const unsigned char* record = bytes + at;
    const std::uint32_t captured = little32(record + 8), length = little32(record + 12);
    const unsigned char* packet = record + kRecordHeader;
    at += kRecordHeader + captured;
    if (at > raw.size()) break;
    if (captured < kEthernet + 40 || big(packet + 12, 2) != 0x0800) continue;
    const unsigned char* ip = packet + kEthernet;
    const std::size_t ip_header = (ip[0] & 0x0fu) * 4u;
    if (ip[9] != 6 || captured < kEthernet + ip_header + 20) continue;
    const unsigned char* tcp = ip + ip_header;
    const std::size_t tcp_header = (tcp[12] >> 4) * 4u;
    visit(Seen{little32(record) + 1e-6 * little32(record + 4),
               {dotted(ip + 12), dotted(ip + 16), static_cast<std::uint16_t>(big(tcp, 2)),
                static_cast<std::uint16_t>(big(tcp + 2, 2))},
               big(tcp + 4, 4),
               payload_of(length, ip_header + tcp_header, big(ip + 2, 2)),
               tcp[13]});
  }
}

}  // namespace

std::map<Flow, std::uint64_t> tcp_payload(const std::string& pcap_file) {
  std::map<Flow, Sequence> flows;
  for_each_segment(pcap_file, [&](const Seen& seen) {
    if (seen.flags & kSyn) {
      flows[seen.flow] = {seen.sequence + 1, seen.sequence + 1};
      return;
    }
    const auto known = flows.find(seen.flow);
    if (known == flows.end() || known->second.closed) return;
    const std::uint32_t end = seen.sequence + seen.payload;
    if (static_cast<std::int32_t>(end - known->second.end) > 0) known->second.end = end;
    known->second.closed = seen.flags & kFin;
  });
  std::map<Flow, std::uint64_t> payload;
  for (const auto& [flow, s] : flows) payload[flow] = s.end - s.first;
  return payload;
}

std::vector<TcpSegment> tcp_segments(const std::string& pcap_file) {
  std::vector<TcpSegment> segments;
  for_each_segment(pcap_file, [&](const Seen& seen) {
    if (seen.payload > 0) segments.push_back({seen.seconds, seen.flow, seen.payload});
  });
  return segments;
}

}  // namespace ghostrank::testing
