#include "tools/compare/wire_capture.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "profiles/error.h"
#include "profiles/input/files_read.h"
#include "switch/ports/pcap_file.h"

namespace ghostrank {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kEthernet = 14, kVlan = 4, kIpv4 = 20, kIpv6 = 40, kTcp = 20, kUdp = 8;
constexpr std::size_t kBth = 12, kIcrc = 4;
constexpr std::uint32_t kTypeIpv4 = 0x0800, kTypeIpv6 = 0x86dd, kTypeVlan = 0x8100,
                        kTypeStacked = 0x88a8;
constexpr std::uint32_t kProtocolTcp = 6, kProtocolUdp = 17;
constexpr std::uint32_t kRocePort = 4791;
constexpr std::uint32_t kSyn = 0x02, kFin = 0x01, kRst = 0x04;

std::uint32_t big(Bytes bytes, std::size_t at, std::size_t width) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

NetAddress ipv4_address(Bytes bytes, std::size_t at) {
  NetAddress address;
  address.bytes[10] = address.bytes[11] = 0xff;
  for (std::size_t i = 0; i < 4; ++i)
    address.bytes[12 + i] = std::to_integer<std::uint8_t>(bytes[at + i]);
  return address;
}

NetAddress ipv6_address(Bytes bytes, std::size_t at) {
  NetAddress address;
  for (std::size_t i = 0; i < 16; ++i)
    address.bytes[i] = std::to_integer<std::uint8_t>(bytes[at + i]);
  return address;
}

bool is_mapped(const NetAddress& address) {
  constexpr std::array<std::uint8_t, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), address.bytes.begin());
}

// Headers of IPv6 that stand before TCP or UDP: hop-by-hop options, which packets of more than
// 64 KiB have, routing, a fragment, options for the destination. They state their length in units
// of 8 bytes, the first not counted.
constexpr std::uint32_t kFragment = 44;
constexpr std::size_t kExtension = 8;
bool is_extension(std::uint32_t protocol) {
  return protocol == 0 || protocol == 43 || protocol == kFragment || protocol == 60;
}

// Bytes of the extended headers between BTH and payload; nothing where no payload follows. Opcodes
// of the transports RC (0x00), UC (0x20) and XRC (0xa0) number their operations alike.
std::optional<std::size_t> roce_extension(std::uint32_t opcode) {
  constexpr std::size_t kReth = 16, kImmediate = 4, kAeth = 4, kInvalidate = 4, kXrceth = 4;
  const std::uint32_t transport = opcode & 0xe0;
  if (transport != 0x00 && transport != 0x20 && transport != 0xa0) return std::nullopt;
  const std::size_t xrc = transport == 0xa0 ? kXrceth : 0;
  switch (opcode & 0x1f) {
    case 0x00:  // send: first, middle, last, only
    case 0x01:
    case 0x02:
    case 0x04:
      return xrc;
    case 0x03:  // with immediate
    case 0x05:
      return xrc + kImmediate;
    case 0x06:  // write: first, only
    case 0x0a:
      return xrc + kReth;
    case 0x07:  // middle, last
    case 0x08:
      return xrc;
    case 0x09:
      return xrc + kImmediate;
    case 0x0b:
      return xrc + kReth + kImmediate;
    case 0x0d:  // response to a read: first, last, only; middle (is_read_response())
    case 0x0f:
    case 0x10:
      return kAeth;
    case 0x0e:
      return 0;
    case 0x16:  // send with invalidate: last, only
    case 0x17:
      return xrc + kInvalidate;
    default:
      return std::nullopt;  // requests to read, acknowledgements, atomics
  }
}

bool is_read_response(std::uint32_t opcode) {
  return (opcode & 0x1f) >= 0x0d && (opcode & 0x1f) <= 0x10;
}

// When the first frame of a capture passed; 0 of an empty one.
std::uint64_t begin_of(const std::string& file) {
  try {
    PcapFrame frame;
    return PcapReader(file).next(frame) ? frame.time_ns : 0;
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
}

}  // namespace

std::string to_string(const NetAddress& address) {
  char text[INET6_ADDRSTRLEN];
  if (is_mapped(address))
    inet_ntop(AF_INET, address.bytes.data() + 12, text, sizeof text);
  else
    inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  return text;
}

NetAddress parse_address(const std::string& text) {
  NetAddress address;
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  address.bytes[10] = address.bytes[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data() + 12) == 1) return address;
  throw Error("'" + text + "' is no IPv4 or IPv6 address");
}

std::uint64_t WireCapture::begun_before() const {
  return static_cast<std::uint64_t>(
      std::count_if(flows_.begin(), flows_.end(),
                    [](const auto& flow) { return fullest(flow.second).begun_before; }));
}

double WireCapture::seconds() const { return static_cast<double>(last_ns_ - first_ns_) * 1e-9; }

void WireCapture::add(const std::vector<std::string>& files) {
  std::vector<std::pair<std::uint64_t, std::string>> by_begin;
  for (const std::string& file : files) by_begin.emplace_back(begin_of(file), file);
  std::ranges::stable_sort(by_begin, {}, &std::pair<std::uint64_t, std::string>::first);
  for (const auto& [begin_ns, file] : by_begin) read(file, begin_ns);
}

void WireCapture::read(const std::string& file, std::uint64_t begin_ns) {
  files_.push_back({begin_ns, begin_ns});
  try {
    PcapReader reader(file);
    note_read(file);
    for (PcapFrame frame; reader.next(frame);) {
      if (frames_++ == 0) first_ns_ = last_ns_ = frame.time_ns;
      first_ns_ = std::min(first_ns_, frame.time_ns);
      last_ns_ = std::max(last_ns_, frame.time_ns);
      files_.back().end_ns = std::max(files_.back().end_ns, frame.time_ns);
      take(frame);
    }
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
}

// The flow as the file being read goes on with it: where the last file that ended before this one
// began left it. It need not be of the same place, for several may change files at about one time.
// A SYN of number `first` that was seen is the same connection, by a clock that differs.
WireCapture::Seen& WireCapture::seen_of(const Flow& flow, std::optional<std::uint32_t> first) {
  constexpr std::uint64_t kDisorder = 100'000;  // ns by which frames of several queues are swapped
  const std::size_t now = files_.size() - 1;
  std::vector<Seen>& places = flows_[flow];
  Seen* before = nullptr;
  for (Seen& one : places) {
    if (one.file == now) return one;
    const File& its = files_[one.file];
    if (its.begin_ns < files_[now].begin_ns && its.end_ns <= files_[now].begin_ns + kDisorder &&
        first != one.first && (!before || files_[before->file].end_ns < its.end_ns))
      before = &one;
  }
  if (!before) before = &places.emplace_back();
  before->file = now;
  return *before;
}

const WireCapture::Seen& WireCapture::fullest(const std::vector<Seen>& places) {
  return *std::ranges::max_element(places, {}, [](const Seen& one) { return one.traffic.payload; });
}

std::map<std::pair<NetAddress, NetAddress>, WireTraffic> WireCapture::pairs() const {
  std::map<std::pair<NetAddress, NetAddress>, WireTraffic> pairs;
  for (const auto& [flow, places] : flows_) {
    const Seen& seen = fullest(places);
    if (seen.traffic.packets == 0) continue;
    WireTraffic& sum = pairs[{flow.source, flow.target}];
    sum.payload += seen.traffic.payload;
    sum.again += seen.traffic.again;
    sum.packets += seen.traffic.packets;
    for (const auto& [interval, bytes] : seen.traffic.over_time) sum.over_time[interval] += bytes;
  }
  return pairs;
}

void WireCapture::take(const PcapFrame& frame) {
  const Bytes bytes = frame.bytes;
  std::size_t at = kEthernet;
  if (bytes.size() < at) return void(++left_out_["cut within the headers"]);
  std::uint32_t type = big(bytes, at - 2, 2);
  while ((type == kTypeVlan || type == kTypeStacked) && bytes.size() >= at + kVlan) {
    at += kVlan;
    type = big(bytes, at - 2, 2);
  }
  Datagram packet;
  packet.time_ns = frame.time_ns;
  std::uint32_t protocol = 0;
  std::size_t header = 0, in_header = 0;  // length of the IP header; the length that it states
  if (type == kTypeIpv4) {
    if (bytes.size() < at + kIpv4) return void(++left_out_["cut within the headers"]);
    if (big(bytes, at + 6, 2) & 0x1fff) return void(++left_out_["later fragments of IP packets"]);
    header = (big(bytes, at, 1) & 0x0f) * 4;
    in_header = big(bytes, at + 2, 2);
    protocol = big(bytes, at + 9, 1);
    packet.flow.source = ipv4_address(bytes, at + 12);
    packet.flow.target = ipv4_address(bytes, at + 16);
    if (header < kIpv4) return void(++left_out_["headers that contradict themselves"]);
  } else if (type == kTypeIpv6) {
    if (bytes.size() < at + kIpv6) return void(++left_out_["cut within the headers"]);
    header = kIpv6;
    in_header = big(bytes, at + 4, 2) == 0 ? 0 : kIpv6 + big(bytes, at + 4, 2);
    protocol = big(bytes, at + 6, 1);
    packet.flow.source = ipv6_address(bytes, at + 8);
    packet.flow.target = ipv6_address(bytes, at + 24);
    while (is_extension(protocol)) {
      if (bytes.size() < at + header + kExtension)
        return void(++left_out_["cut within the headers"]);
      const bool fragment = protocol == kFragment;
      if (fragment && big(bytes, at + header + 2, 2) & 0xfff8)
        return void(++left_out_["later fragments of IP packets"]);
      protocol = big(bytes, at + header, 1);
      header += fragment ? kExtension : kExtension * (big(bytes, at + header + 1, 1) + 1);
    }
  } else {
    return void(++left_out_["neither IPv4 nor IPv6"]);
  }
  // A sender's capture sees segments before the NIC cuts them; their lengths may not fit into the
  // header, which has 0 then.
  if (in_header == 0) in_header = std::max<std::size_t>(frame.length, at) - at;
  if (in_header < header) return void(++left_out_["headers that contradict themselves"]);
  if (bytes.size() < at + header) return void(++left_out_["cut within the headers"]);
  packet.length = in_header - header;
  packet.bytes = bytes.subspan(at + header);
  if (protocol == kProtocolTcp) return take_tcp(packet);
  if (protocol == kProtocolUdp) return take_udp(packet);
  ++left_out_["neither TCP nor UDP"];
}

bool WireCapture::excepted(const Flow& flow) const {
  return except_.contains(flow.source_port) || except_.contains(flow.target_port);
}

// Sequence numbers wrap around, so only their differences are compared.
WireCapture::Extent WireCapture::extend(Seen& seen, Range packet) {
  constexpr std::size_t kMostMissing = 1024;
  const auto [from, to] = packet;
  const std::uint32_t length = to - from;
  const auto skipped = static_cast<std::int32_t>(from - seen.next);
  Extent out;
  if (static_cast<std::int32_t>(to - seen.next) > 0) {
    out.ahead = to - seen.next;
    out.fresh = std::min(length, out.ahead);
    if (skipped > 0) {
      if (seen.missing.size() == kMostMissing) seen.missing.erase(seen.missing.begin());
      seen.missing.emplace_back(seen.next, from);
    }
    seen.next = to;
  }
  if (skipped >= 0 || seen.missing.empty()) return out;
  std::vector<Range> left;
  for (const Range& gap : seen.missing) {
    const std::int64_t begin = static_cast<std::int32_t>(gap.first - from),
                       end = static_cast<std::int32_t>(gap.second - from);
    const auto first = std::max<std::int64_t>(begin, 0), last = std::min<std::int64_t>(end, length);
    if (first >= last) {
      left.push_back(gap);
      continue;
    }
    out.fresh += static_cast<std::uint32_t>(last - first);
    if (begin < first) left.emplace_back(gap.first, from);
    if (last < end) left.emplace_back(to, gap.second);
  }
  seen.missing = std::move(left);
  return out;
}

void WireCapture::count(Seen& seen, std::uint64_t time_ns, std::size_t payload, std::size_t counted,
                        std::size_t fresh) {
  if (payload == 0 && counted == 0) return;
  ++seen.traffic.packets;
  seen.traffic.payload += counted;
  seen.traffic.again += payload - std::min(payload, fresh);
  if (counted > 0) seen.traffic.over_time[time_ns / interval_ns_] += counted;
}

void WireCapture::take_tcp(Datagram& packet) {
  if (packet.bytes.size() < kTcp) return void(++left_out_["cut within the headers"]);
  packet.flow.source_port = static_cast<std::uint16_t>(big(packet.bytes, 0, 2));
  packet.flow.target_port = static_cast<std::uint16_t>(big(packet.bytes, 2, 2));
  if (excepted(packet.flow)) return void(++left_out_["ports that are excepted"]);
  const std::size_t header = (big(packet.bytes, 12, 1) >> 4) * 4;
  if (header < kTcp || header > packet.length)
    return void(++left_out_["headers that contradict themselves"]);
  const std::uint32_t flags = big(packet.bytes, 13, 1);
  if (flags & kRst) return;  // no data, and its number may be 0
  const std::size_t payload = packet.length - header;
  std::uint32_t sequence = big(packet.bytes, 4, 4);
  std::optional<std::uint32_t> first;
  if (flags & kSyn) first = ++sequence;  // it takes a sequence number
  Seen& seen = seen_of(packet.flow, first);
  if (first) {  // the flow's ports may be those of an older one
    seen.begun = true;
    seen.first = seen.next = sequence;
    seen.missing.clear();
  } else if (!seen.begun) {
    if (payload == 0) return;
    seen.begun = seen.begun_before = true;
    seen.next = sequence;
  }
  const std::uint32_t end = sequence + static_cast<std::uint32_t>(payload);
  const Extent extent = extend(seen, {sequence, end});
  count(seen, packet.time_ns, payload, extent.ahead, extent.fresh);
  // A FIN takes one, too: acknowledgements that follow it have the next.
  if (flags & kFin && end == seen.next) ++seen.next;
}

void WireCapture::take_udp(Datagram& packet) {
  if (packet.bytes.size() < kUdp) return void(++left_out_["cut within the headers"]);
  packet.flow.source_port = static_cast<std::uint16_t>(big(packet.bytes, 0, 2));
  packet.flow.target_port = static_cast<std::uint16_t>(big(packet.bytes, 2, 2));
  if (packet.flow.target_port != kRocePort) return void(++left_out_["UDP that is not RoCE"]);
  if (excepted(packet.flow)) return void(++left_out_["ports that are excepted"]);
  if (packet.bytes.size() < kUdp + kBth) return void(++left_out_["cut within the headers"]);
  const std::uint32_t opcode = big(packet.bytes, kUdp, 1);
  const std::optional<std::size_t> extension = roce_extension(opcode);
  if (!extension) return;  // it carries no payload
  const std::size_t padding = big(packet.bytes, kUdp + 1, 1) >> 4 & 3;
  const std::size_t around = kUdp + kBth + *extension + padding + kIcrc;
  if (packet.length < around) return void(++left_out_["headers that contradict themselves"]);
  packet.flow.queue_pair = big(packet.bytes, kUdp + 5, 3);
  packet.flow.read_response = is_read_response(opcode);
  // The source port follows from the queue pair, so it does not distinguish flows.
  packet.flow.source_port = 0;
  const std::uint32_t number = big(packet.bytes, kUdp + 9, 3) << 8;
  Seen& seen = seen_of(packet.flow);
  if (!seen.begun) seen.next = number;
  seen.begun = true;
  const bool fresh = extend(seen, {number, number + (1 << 8)}).fresh > 0;
  const std::size_t payload = packet.length - around;
  count(seen, packet.time_ns, payload, fresh ? payload : 0, fresh ? payload : 0);
}

}  // namespace ghostrank
