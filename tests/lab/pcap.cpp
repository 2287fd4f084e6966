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
  std::uint32_t first = 0, end = 0;  // first payload byte; one past the last seen
};

}  // namespace

std::map<Flow, std::uint64_t> tcp_payload(const std::string& pcap_file) {
  std::ifstream in(pcap_file, std::ios::binary);
  const std::vector<char> raw{std::istreambuf_iterator<char>(in), {}};
  const auto* bytes = reinterpret_cast<const unsigned char*>(raw.data());
  std::map<Flow, Sequence> flows;
  for (std::size_t at = kFileHeader; at + kRecordHeader <= raw.size();) {
    const std::uint32_t captured = little32(bytes + at + 8), length = little32(bytes + at + 12);
    const unsigned char* packet = bytes + at + kRecordHeader;
    at += kRecordHeader + captured;
    if (at > raw.size()) break;
    if (captured < kEthernet + 40 || big(packet + 12, 2) != 0x0800) continue;
    const unsigned char* ip = packet + kEthernet;
    const std::size_t ip_header = (ip[0] & 0x0fu) * 4u;
    if (ip[9] != 6 || captured < kEthernet + ip_header + 20) continue;
    const unsigned char* tcp = ip + ip_header;
    const std::size_t tcp_header = (tcp[12] >> 4) * 4u;
    // A segment that the NIC is to cut may be longer than its own length field can say: trust the
    // frame.
    const auto payload = static_cast<std::uint32_t>(
        std::max<std::size_t>(length, kEthernet + ip_header + tcp_header) - kEthernet - ip_header -
        tcp_header);
    const std::uint32_t in_header = big(ip + 2, 2);
    const std::uint32_t sequence = big(tcp + 4, 4);
    const Flow flow{dotted(ip + 12), dotted(ip + 16), static_cast<std::uint16_t>(big(tcp, 2)),
                    static_cast<std::uint16_t>(big(tcp + 2, 2))};
    if (tcp[13] & kSyn) {
      flows[flow] = {sequence + 1, sequence + 1};
      continue;
    }
    const auto known = flows.find(flow);
    if (known == flows.end() || (tcp[13] & kFin && payload == 0)) continue;
    // Short frames are padded: then the header is right.
    const std::uint32_t real =
        length <= 60 ? in_header - static_cast<std::uint32_t>(ip_header + tcp_header) : payload;
    const std::uint32_t end = sequence + real;
    if (static_cast<std::int32_t>(end - known->second.end) > 0) known->second.end = end;
  }
  std::map<Flow, std::uint64_t> payload;
  for (const auto& [flow, s] : flows) payload[flow] = s.end - s.first;
  return payload;
}

}  // namespace ghostrank::testing
