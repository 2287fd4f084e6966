#include "tools/switching/show.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "switch/ports/pcap_file.h"
#include "switch/wire/roce.h"
#include "switch/wire/sparse.h"
#include "switch/wire/switchml.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

using switchml::Kind;
using switchml::Packet;

struct Seen {
  std::uint64_t time_ns = 0;
  bool out = false;
  std::vector<int> ports;
  std::vector<std::byte> bytes;
};

void read(const std::string& path, int port, bool out, std::vector<Seen>& all) {
  if (path.empty()) return;
  PcapReader reader(path);
  while (const auto frame = reader.next())
    all.push_back({frame->time_ns, out, {port}, {frame->bytes.begin(), frame->bytes.end()}});
}

Kind kind_of(const Seen& seen, Packet& packet) {
  return seen.out && parse_result(seen.bytes, packet) == Kind::switchml
             ? Kind::switchml
             : switchml::parse(seen.bytes, packet);
}
Kind sparse_kind_of(const Seen& seen, Packet& packet) {
  return seen.out ? parse_sparse_result(seen.bytes, packet) : parse_sparse(seen.bytes, packet);
}

bool is_result(const Seen& seen) {
  Packet unused;
  return seen.out && (kind_of(seen, unused) == Kind::switchml ||
                      sparse_kind_of(seen, unused) == Kind::switchml);
}

// What the copies of one result have in common: all but Ethernet, IPv4 and UDP, which differ by
// receiver.
std::string_view common_part(const Seen& result) {
  constexpr std::size_t kByReceiver = 42;
  return {reinterpret_cast<const char*>(result.bytes.data()) + kByReceiver,
          result.bytes.size() - kByReceiver};
}

// All packets in the order of time. The copies of a result, one for each of several ports at one
// time, are one.
std::vector<Seen> timeline(const std::vector<switchml::PortName>& ports) {
  std::vector<Seen> all;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    read(ports[p].in, static_cast<int>(p), false, all);
    read(ports[p].out, static_cast<int>(p), true, all);
  }
  std::stable_sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) {
    return std::tie(a.time_ns, a.out) < std::tie(b.time_ns, b.out);
  });
  std::vector<Seen> merged;
  // Places in `merged`, of the results of one time. Several results may end at that time, and one
  // may be sent twice to a port.
  std::map<std::string_view, std::vector<std::size_t>> results;
  for (Seen& seen : all) {
    if (!merged.empty() && merged.back().time_ns != seen.time_ns) results.clear();
    if (is_result(seen)) {
      std::vector<std::size_t>& alike = results[common_part(seen)];
      const auto of_others = std::ranges::find_if(
          alike, [&](std::size_t at) { return merged[at].ports.back() != seen.ports[0]; });
      if (of_others != alike.end()) {
        merged[*of_others].ports.push_back(seen.ports[0]);
        continue;
      }
      alike.push_back(merged.size());
    }
    merged.push_back(std::move(seen));
  }
  return merged;
}

std::string list(const std::vector<int>& ports) {
  std::string text;
  for (const int p : ports) text += (text.empty() ? "" : " ") + std::to_string(p);
  return text;
}

std::string elements_of(const std::byte* values, int elements) {
  constexpr int kFirst = 3;
  std::string text;
  const auto element = [&](int i) {
    return std::to_string(static_cast<std::int32_t>(switchml::load32(values + 4 * i)));
  };
  for (int i = 0; i < kFirst; ++i) text += element(i) + " ";
  return text + ".. " + element(elements - 1);
}

// An RDMA write. Only the first packet of a message to the switch names its slot and set; packets
// to a worker name none.
std::vector<std::string> row_of(const switchml::RocePacket& packet, bool out) {
  const bool first = begins(packet.opcode), last = ends(packet.opcode);
  std::vector<std::string> row{std::string(out ? "sum" : "chunk") + (first && last ? ""
                                                                     : first       ? ", first"
                                                                     : last        ? ", last"
                                                                                   : ", middle"),
                               switchml::text_of_ip(packet.source.ip)};
  const switchml::RoceSlot at = switchml::slot_of(packet.remote_key);
  const bool placed = first && !out, exponents = has_immediate(packet.opcode);
  row.push_back(placed ? std::to_string(at.slot) : "");
  row.push_back(placed ? std::to_string(at.set) : "");
  row.push_back(std::to_string(packet.sequence));
  row.push_back(exponents ? std::to_string(packet.e0) : "");
  row.push_back(exponents ? std::to_string(packet.e1) : "");
  row.push_back(elements_of(packet.values, switchml::kRoceElements));
  return row;
}

using Identity = std::tuple<std::uint32_t, int, int, std::uint32_t>;  // source, slot, set, packet
Identity identity_of(const Packet& packet) {
  return {packet.source.ip, packet.slot, packet.set, packet.id};
}

// A packet of OmniReduce: a block, or only the number of the next one.
std::vector<std::string> row_of(const Packet& packet, const Seen& seen,
                                std::set<Identity>& chunks) {
  const bool again = !seen.out && !chunks.insert(identity_of(packet)).second;
  const std::string what = seen.out ? (seen.ports.size() > 1 ? "sum to all" : "sum to one")
                           : packet.elements > 0 ? "block"
                                                 : "no block";
  const std::string next = "next " + std::to_string(packet.next);
  return {what + (again ? " again" : ""),
          switchml::text_of_ip(packet.source.ip),
          std::to_string(packet.slot),
          std::to_string(packet.set),
          std::to_string(packet.id),
          "",
          "",
          packet.elements > 0 ? elements_of(packet.values, packet.elements) + "; " + next : next};
}

std::vector<std::string> row_of(const Seen& seen, std::uint64_t began_ns,
                                std::set<Identity>& chunks) {
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", static_cast<double>(seen.time_ns - began_ns) / 1e6);
  std::vector<std::string> row{time, seen.out ? "out" : "in", list(seen.ports)};
  Packet packet;
  switchml::RocePacket write;
  const auto with = [&](const std::vector<std::string>& more) {
    row.insert(row.end(), more.begin(), more.end());
    return row;
  };
  const Kind kind = kind_of(seen, packet);
  if (kind == Kind::other && parse_roce(seen.bytes, write) == Kind::switchml)
    return with(row_of(write, seen.out));
  if (kind == Kind::other && sparse_kind_of(seen, packet) == Kind::switchml)
    return with(row_of(packet, seen, chunks));
  if (kind != Kind::switchml) {
    row.push_back(kind == Kind::malformed ? "malformed" : "ordinary frame");
    row.push_back(std::to_string(seen.bytes.size()) + " bytes");
    return row;
  }
  const bool again = !seen.out && !chunks.insert(identity_of(packet)).second;
  row.push_back(seen.out ? (seen.ports.size() > 1 ? "sum to all" : "sum to one")
                : again  ? "chunk again"
                         : "chunk");
  if (packet.elements == 0) row.back() += ", a credit";
  row.push_back(switchml::text_of_ip(packet.source.ip));
  for (const std::int64_t n :
       {std::int64_t{packet.slot}, std::int64_t{packet.set}, std::int64_t{packet.id},
        std::int64_t{packet.e0}, std::int64_t{packet.e1}})
    row.push_back(std::to_string(n));
  row.push_back(packet.elements == 0 ? "" : elements_of(packet.values, packet.elements));
  return row;
}

}  // namespace

std::string switch_show(const std::vector<switchml::PortName>& ports, std::size_t most) {
  const std::vector<Seen> all = timeline(ports);
  Table table{{{"ms", Align::right},
               {"way"},
               {"ports"},
               {"what"},
               {"from"},
               {"slot", Align::right},
               {"set", Align::right},
               {"packet", Align::right},
               {"e0", Align::right},
               {"e1", Align::right},
               {"elements"}},
              {}};
  std::set<Identity> chunks;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
    table.rows.push_back(row_of(all[i], all[0].time_ns, chunks));
  std::string text = render(table);
  if (all.size() > most)
    text += "and " + std::to_string(all.size() - most) + " more; --most N shows more\n";
  return text;
}

}  // namespace ghostrank
