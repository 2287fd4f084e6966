#include "tools/compare/wire_diff.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "profiles/error.h"
#include "tools/arguments.h"
#include "tools/report/json/json.h"
#include "tools/text/csv.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"

namespace ghostrank {
namespace {

constexpr int kMostNodes = 1 << 20;

// "n3.nic0" -> 3
int node_of(const std::string& nic) {
  int node = -1;
  if (std::sscanf(nic.c_str(), "n%d.", &node) != 1 || node < 0)
    throw Error("the ledger has a pair of '" + nic + "', which is no NIC of a node");
  return node;
}

std::set<int> nodes_of(const StoredResult& result) {
  std::set<int> nodes;
  for (const auto& [pair, traffic] : result.pairs) {
    nodes.insert(node_of(pair.first));
    nodes.insert(node_of(pair.second));
  }
  return nodes;
}

std::string addresses_text(const std::set<NetAddress>& addresses) {
  constexpr std::size_t kShown = 16;
  std::string text;
  std::size_t shown = 0;
  for (const NetAddress& address : addresses) {
    if (shown++ == kShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + to_string(address);
  }
  return text;
}

// Of a capture without payload: what is in it instead.
std::string left_out_text(const WireCapture& capture) {
  std::string text;
  for (const auto& [reason, count] : capture.left_out())
    text += (text.empty() ? " (left out: " : ", ") +
            humane_count(static_cast<double>(count), "frame") + " " + std::string(reason);
  return (text.empty() ? "" : text + ")") +
         "; capture TCP or RoCE between the hosts, 128 bytes of each frame (tcpdump -s 128)";
}

std::vector<WireHost> guessed_hosts(const StoredResult& result, const WireCapture& capture) {
  std::set<NetAddress> addresses;
  for (const auto& [pair, traffic] : capture.pairs()) {
    addresses.insert(pair.first);
    addresses.insert(pair.second);
  }
  const std::set<int> nodes = nodes_of(result);
  if (addresses.size() != nodes.size())
    throw Error("the ledger's pairs are of " +
                humane_count(static_cast<double>(nodes.size()), "node") + ", the capture's of " +
                humane_count(static_cast<double>(addresses.size()), "address", "addresses") +
                (addresses.empty() ? left_out_text(capture)
                                   : " (" + addresses_text(addresses) +
                                         "); say which is which with --host ADDRESS=NODES"));
  std::vector<WireHost> hosts;
  auto node = nodes.begin();
  for (const NetAddress& address : addresses) {
    hosts.push_back({"n" + std::to_string(*node), {address}, {*node}});
    ++node;
  }
  return hosts;
}

// Number of the host by node and by address. Throws where two hosts share a node or an address.
struct HostsBy {
  std::map<int, std::size_t> node;
  std::map<NetAddress, std::size_t> address;
};
HostsBy indexed(const std::vector<WireHost>& hosts) {
  HostsBy by;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    for (const int node : hosts[h].nodes)
      if (!by.node.try_emplace(node, h).second)
        throw Error("node " + std::to_string(node) + " is of two hosts");
    for (const NetAddress& address : hosts[h].addresses)
      if (!by.address.try_emplace(address, h).second)
        throw Error(to_string(address) + " is of two hosts");
  }
  return by;
}

std::string percent(double share) {
  if (!std::isfinite(share)) return "not in the ledger";
  char text[32];
  std::snprintf(text, sizeof text, "%+.2f %%", 100 * share);
  return text;
}

Json or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

WireHost parse_wire_host(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error("--host '" + text + "' is not ADDRESS[,ADDRESS...]=NODES, like 10.0.0.1=0-3");
  WireHost host;
  host.name = "n" + text.substr(equals + 1);
  for (const WorldRank node : parse_ranks(text.substr(equals + 1), kMostNodes))
    host.nodes.insert(node.value());
  for (std::size_t begin = 0; begin < equals;) {
    const std::size_t end = std::min(text.find(',', begin), equals);
    host.addresses.push_back(parse_address(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return host;
}

double WireDiff::difference(const WireDiffRow& row) const {
  const auto captured = static_cast<double>(row.captured.payload);
  return captured == 0 && row.ledger == 0 ? 0 : captured / (row.ledger * iterations) - 1;
}

WireDiffRow WireDiff::total() const {
  WireDiffRow sum;
  for (const WireDiffRow& row : rows) {
    sum.ledger += row.ledger;
    sum.captured.payload += row.captured.payload;
    sum.captured.again += row.captured.again;
    sum.captured.packets += row.captured.packets;
  }
  return sum;
}

WireDiff diff_wire(const StoredResult& result, const WireCapture& capture,
                   std::vector<WireHost> hosts, std::optional<double> iterations) {
  if (!result.pairs_known || result.pairs.empty())
    throw Error(result.file + ": its ledger has no pairs of NICs" +
                (result.pairs_known ? "; nothing crosses its network"
                                    : "; the file that traffic.pairs_file names is missing"));
  WireDiff diff;
  diff.hosts_guessed = hosts.empty();
  diff.hosts = hosts.empty() ? guessed_hosts(result, capture) : std::move(hosts);
  const HostsBy by = indexed(diff.hosts);

  std::map<std::pair<std::size_t, std::size_t>, WireDiffRow> rows;
  for (const auto& [pair, traffic] : result.pairs) {
    const int source = node_of(pair.first), target = node_of(pair.second);
    for (const int node : {source, target})
      if (!by.node.contains(node))
        throw Error("node " + std::to_string(node) +
                    " of the ledger has no host; name it with --host");
    const std::size_t from = by.node.at(source), to = by.node.at(target);
    if (from == to)
      diff.inside += traffic.first;
    else
      rows[{from, to}].ledger += traffic.first;
  }
  for (const auto& [pair, traffic] : capture.pairs()) {
    const auto from = by.address.find(pair.first), to = by.address.find(pair.second);
    if (from == by.address.end() || to == by.address.end()) {
      diff.other_payload += traffic.payload;
      continue;
    }
    if (from->second == to->second) continue;
    WireTraffic& sum = rows[{from->second, to->second}].captured;
    sum.payload += traffic.payload;
    sum.again += traffic.again;
    sum.packets += traffic.packets;
    for (const auto& [interval, bytes] : traffic.over_time) sum.over_time[interval] += bytes;
  }
  for (auto& [pair, row] : rows) {
    row.source = pair.first;
    row.target = pair.second;
    diff.rows.push_back(std::move(row));
  }
  const WireDiffRow total = diff.total();
  if (total.ledger <= 0) throw Error(result.file + ": nothing of its ledger crosses between hosts");
  diff.iterations_guessed = !iterations;
  diff.iterations = iterations.value_or(
      std::max(1., std::round(static_cast<double>(total.captured.payload) / total.ledger)));
  return diff;
}

std::string wire_diff_text(const WireDiff& diff, const WireCapture& capture) {
  Table table{{{"from"},
               {"to"},
               {"ledger", Align::right},
               {"captured", Align::right},
               {"difference", Align::right},
               {"sent again", Align::right},
               {"packets", Align::right}},
              {}};
  const auto add = [&](const std::string& from, const std::string& to, const WireDiffRow& row) {
    table.rows.push_back({from, to, humane_bytes(row.ledger * diff.iterations),
                          humane_bytes(static_cast<double>(row.captured.payload)),
                          percent(diff.difference(row)),
                          humane_bytes(static_cast<double>(row.captured.again)),
                          humane_count(static_cast<double>(row.captured.packets))});
  };
  for (const WireDiffRow& row : diff.rows)
    add(diff.hosts[row.source].name, diff.hosts[row.target].name, row);
  add("all", "", diff.total());

  std::vector<Fact> facts;
  for (const WireHost& host : diff.hosts) {
    std::string text;
    for (const NetAddress& address : host.addresses)
      text += (text.empty() ? "" : ", ") + to_string(address);
    facts.push_back({host.name, text + (diff.hosts_guessed ? " (taken in order)" : "")});
  }
  facts.push_back(
      {"iterations", significant(diff.iterations) +
                         (diff.iterations_guessed ? " (the number that fits best)" : "")});
  facts.push_back({"capture", humane_count(static_cast<double>(capture.frames()), "frame") +
                                  " in " + humane_seconds(capture.seconds())});
  if (diff.inside > 0)
    facts.push_back({"inside hosts", humane_bytes(diff.inside * diff.iterations) +
                                         " of the ledger stay in one host"});
  if (diff.other_payload > 0)
    facts.push_back({"other hosts", humane_bytes(static_cast<double>(diff.other_payload)) +
                                        " from or to addresses of no host"});
  if (capture.begun_before() > 0)
    facts.push_back(
        {"begun before", humane_count(static_cast<double>(capture.begun_before()), "connection") +
                             " older than the capture, counted from its first packet"});
  for (const auto& [reason, count] : capture.left_out())
    facts.push_back({"left out", humane_count(static_cast<double>(count), "frame") + ": " +
                                     std::string(reason)});
  return render(table) + "\n" + render(facts);
}

std::string wire_diff_json(const WireDiff& diff, const WireCapture& capture,
                           const std::string& result) {
  const auto row_json = [&](const WireDiffRow& row) {
    return Json{{"ledger_bytes", row.ledger * diff.iterations},
                {"captured_bytes", row.captured.payload},
                {"difference", or_null(diff.difference(row))},
                {"sent_again_bytes", row.captured.again},
                {"packets", row.captured.packets}};
  };
  Json hosts = Json::array(), pairs = Json::array(), left_out = Json::object();
  for (const WireHost& host : diff.hosts) {
    Json addresses = Json::array();
    for (const NetAddress& address : host.addresses) addresses.push_back(to_string(address));
    hosts.push_back({{"name", host.name}, {"nodes", host.nodes}, {"addresses", addresses}});
  }
  for (const WireDiffRow& row : diff.rows) {
    Json one{{"src", diff.hosts[row.source].name}, {"dst", diff.hosts[row.target].name}};
    one.update(row_json(row));
    pairs.push_back(std::move(one));
  }
  for (const auto& [reason, count] : capture.left_out()) left_out[std::string(reason)] = count;
  return dump({{"schema", "ghostrank/diff/1"},
               {"result", result},
               {"hosts", hosts},
               {"hosts_guessed", diff.hosts_guessed},
               {"iterations", diff.iterations},
               {"iterations_guessed", diff.iterations_guessed},
               {"frames", capture.frames()},
               {"seconds", capture.seconds()},
               {"pairs", pairs},
               {"total", row_json(diff.total())},
               {"inside_hosts_bytes", diff.inside * diff.iterations},
               {"other_hosts_bytes", diff.other_payload},
               {"begun_before", capture.begun_before()},
               {"left_out", left_out}});
}

std::string wire_over_time_csv(const WireDiff& diff, double interval_s) {
  std::string text = "src,dst,start_s,bytes\n";
  std::uint64_t first = ~std::uint64_t{0};
  for (const WireDiffRow& row : diff.rows)
    if (!row.captured.over_time.empty())
      first = std::min(first, row.captured.over_time.begin()->first);
  char number[64];
  for (const WireDiffRow& row : diff.rows)
    for (const auto& [interval, bytes] : row.captured.over_time) {
      std::snprintf(number, sizeof number, ",%.9g,%llu\n",
                    static_cast<double>(interval - first) * interval_s,
                    static_cast<unsigned long long>(bytes));
      text += csv_cell(diff.hosts[row.source].name) + "," + csv_cell(diff.hosts[row.target].name) +
              number;
    }
  return text;
}

}  // namespace ghostrank
