// Packet captures of a real run (classic pcap, Ethernet; headers suffice) as payload bytes by pair
// of addresses, over time. TCP is counted by sequence numbers: a byte that is sent again counts
// once, and what the capture missed in mid-flow counts, too. RoCEv2 (UDP port 4791) is counted
// packet by packet, because the operation says where the payload begins; a packet whose sequence
// number has been seen does not count. Packets may come in another order than they were sent. The
// layouts are those of RFC 9293, RFC 8200 and the InfiniBand Architecture Specification, volume 1,
// chapter 9 and annex A17.
//
// Errors are Error(usage) with the file and the offset. Threading: one owner per object.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ghostrank {

struct PcapFrame;

// An IPv6 address, or an IPv4 address mapped into one, in network order.
struct NetAddress {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const NetAddress&) const = default;
};
std::string to_string(const NetAddress& address);   // "10.0.0.1", "fe80::1"
NetAddress parse_address(const std::string& text);  // throws Error(usage)

struct WireTraffic {
  std::uint64_t payload = 0;                         // bytes, each once
  std::uint64_t again = 0;                           // payload bytes of repeated packets
  std::uint64_t packets = 0;                         // with payload, repeated ones too
  std::map<std::uint64_t, std::uint64_t> over_time;  // number of the interval -> payload bytes
};

// Connections of one or more captures.
class WireCapture {
 public:
  // Packets to or from one of `except` ports count as left out. `interval_ns` is that of over_time.
  WireCapture(std::set<std::uint16_t> except, std::uint64_t interval_ns)
      : except_(std::move(except)), interval_ns_(interval_ns) {}

  // Files that follow each other in time, as tcpdump -C and -G write them, are one capture, in
  // whatever order they come. Captures taken in several places of one network may be given
  // together: a connection counts where most of it was seen.
  void add(const std::vector<std::string>& files);

  // By source and target. Both directions of a connection are pairs of their own.
  std::map<std::pair<NetAddress, NetAddress>, WireTraffic> pairs() const;
  const std::map<std::string_view, std::uint64_t>& left_out() const { return left_out_; }
  std::uint64_t frames() const { return frames_; }
  std::uint64_t begun_before() const;  // TCP flows without their SYN
  double seconds() const;              // from the first frame to the last

 private:
  struct Flow {
    NetAddress source, target;
    std::uint16_t source_port = 0, target_port = 0;
    std::uint32_t queue_pair = 0;  // of RoCE; TCP: 0
    bool read_response = false;    // of RoCE; numbered as the requests of the other end
    auto operator<=>(const Flow&) const = default;
  };
  // Of TCP a sequence number is a byte's; RoCE's has 24 bits, so here a packet of it has 256.
  using Range = std::pair<std::uint32_t, std::uint32_t>;  // from, to
  struct Seen {
    WireTraffic traffic;
    std::uint32_t next = 0;      // sequence number after all that was seen
    std::vector<Range> missing;  // before `next`, in no packet so far; the oldest first
    std::uint32_t first = 0;     // of TCP: the number after that of its SYN
    std::size_t file = 0;        // the last that has the flow
    bool begun = false, begun_before = false;
  };
  struct Extent {
    std::uint32_t ahead = 0;  // sequence numbers behind all that was seen, those skipped included
    std::uint32_t fresh = 0;  // of the packet's own, those that no other packet had
  };
  struct File {
    std::uint64_t begin_ns = 0, end_ns = 0;
  };
  // The packet after its IP header.
  struct Datagram {
    Flow flow;
    std::span<const std::byte> bytes;  // as captured
    std::size_t length = 0;            // on the wire
    std::uint64_t time_ns = 0;
  };

  void read(const std::string& file, std::uint64_t begin_ns);
  void take(const PcapFrame& frame);
  void take_tcp(Datagram& packet);
  void take_udp(Datagram& packet);
  Seen& seen_of(const Flow& flow, std::optional<std::uint32_t> first = std::nullopt);
  static const Seen& fullest(const std::vector<Seen>& places);
  static Extent extend(Seen& seen, Range packet);
  // `counted`: bytes to count now; `fresh`: of the packet's payload, what is not sent again.
  void count(Seen& seen, std::uint64_t time_ns, std::size_t payload, std::size_t counted,
             std::size_t fresh);
  bool excepted(const Flow& flow) const;

  std::set<std::uint16_t> except_;
  std::uint64_t interval_ns_;
  std::map<Flow, std::vector<Seen>> flows_;  // by place of capture
  std::vector<File> files_;                  // the last one is being read
  std::map<std::string_view, std::uint64_t> left_out_;
  std::uint64_t frames_ = 0, first_ns_ = 0, last_ns_ = 0;
};

}  // namespace ghostrank
