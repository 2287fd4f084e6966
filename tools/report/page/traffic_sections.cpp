// The sections about traffic: between nodes, of each NIC, on modelled links, at servers.
#include <algorithm>

#include "tools/diagnosis/setting.h"
#include "tools/report/page/html.h"
#include "tools/report/page/sections.h"
#include "tools/report/run_facts.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostRows = 8;

std::string pairs_figure(const StoredRun& run) {
  const PairMap map = pair_map(run.stored.pairs);
  if (map.svg.empty()) {
    if (run.result.pairs_file.empty()) return "";
    return element("p", "Pairs of NICs: in " + run.result.pairs_file + ", which is not here.",
                   "faint");
  }
  std::string caption = "bytes per step from a node (row) to another (column)";
  if (map.nodes_per_cell > 1)
    caption += "; " + humane_count(static_cast<double>(map.nodes_per_cell), "node") + " to a cell";
  if (!run.result.pairs_file.empty()) caption += "; pairs of NICs are in " + run.result.pairs_file;
  return figure(caption, map.svg);
}

// The busiest NICs, by the direction in which they carry more.
std::string busiest_nics(const StoredRun& run) {
  const Result& result = run.result;
  std::vector<NicTraffic> nics = result.nics;
  const auto more = [](const NicTraffic& nic) { return std::max(nic.tx_bytes, nic.rx_bytes); };
  std::stable_sort(nics.begin(), nics.end(),
                   [&](const NicTraffic& a, const NicTraffic& b) { return more(a) > more(b); });
  Table table{{{nics.size() > kMostRows ? "busiest NICs" : "NIC"},
               {"sends", Align::right},
               {"in messages", Align::right},
               {"receives", Align::right},
               {"in messages", Align::right}},
              {}};
  for (std::size_t i = 0; i < std::min(nics.size(), kMostRows); ++i)
    table.rows.push_back({nic_name(nics[i].nic, result.nics_per_node),
                          humane_bytes(nics[i].tx_bytes), humane_count(nics[i].tx_messages),
                          humane_bytes(nics[i].rx_bytes), humane_count(nics[i].rx_messages)});
  return html_table(table);
}

std::string nics_figure(const StoredRun& run) {
  std::vector<NicBar> bars;
  for (const NicTraffic& nic : run.result.nics)
    bars.push_back({nic_name(nic.nic, run.result.nics_per_node), nic.tx_bytes, nic.rx_bytes});
  return figure("bytes of each NIC per step, the busiest sender first", nic_bars(std::move(bars)));
}

std::string wait_cell(const std::optional<double>& seconds) {
  return seconds ? humane_seconds(*seconds) : "-";
}

Table tiers_of(const NetworkReport& network) {
  Table table{{{"tier"},
               {"links", Align::right},
               {"bytes/step", Align::right},
               {"busy on average", Align::right},
               {"busy at most", Align::right},
               {"waits on average", Align::right},
               {"at most", Align::right}},
              {}};
  for (const LinkTier& t : network.tiers)
    table.rows.push_back({t.name, humane_count(t.links), humane_bytes(t.bytes),
                          humane_percent(t.utilisation_mean), humane_percent(t.utilisation_max),
                          wait_cell(t.mean_wait_s), wait_cell(t.longest_wait_s)});
  return table;
}

Table queues_of(const NetworkReport& network) {
  Table table{{{"queues of"},
               {"packets", Align::right},
               {"sent again", Align::right},
               {"drops", Align::right},
               {"marks", Align::right},
               {"pauses", Align::right},
               {"paused for", Align::right},
               {"longest queue", Align::right}},
              {}};
  const auto count = [](std::uint64_t n) { return humane_count(static_cast<double>(n)); };
  for (const LinkTier& t : network.tiers)
    if (const std::optional<QueueCount>& q = t.queue)
      table.rows.push_back({t.name, count(q->packets), count(q->again), count(q->drops),
                            count(q->marks), count(q->pauses), humane_seconds(seconds(q->paused)),
                            humane_bytes(static_cast<double>(q->longest))});
  return table;
}

Table hottest_of(const NetworkReport& network) {
  Table table{{{"hottest links"},
               {"busy", Align::right},
               {"bytes/step", Align::right},
               {"messages/step", Align::right},
               {"waits on average", Align::right},
               {"at most", Align::right}},
              {}};
  for (std::size_t i = 0; i < std::min(network.hottest.size(), 2 * kMostRows); ++i) {
    const LinkLoad& l = network.hottest[i];
    table.rows.push_back({l.link, humane_percent(l.utilisation), humane_bytes(l.bytes),
                          humane_count(l.messages), wait_cell(l.mean_wait_s),
                          wait_cell(l.longest_wait_s)});
  }
  return table;
}

}  // namespace

std::string traffic_section(const StoredRun& run) {
  if (run.result.iterations.empty()) return "";
  const std::string pictures = pairs_figure(run) + nics_figure(run);
  Result result = run.result;
  result.network.reset();  // which network_section() has
  return section("Traffic",
                 html_facts(traffic_facts(result)) +
                     (pictures.empty() ? "" : "<div class=\"beside\">\n" + pictures + "</div>\n") +
                     busiest_nics(run));
}

std::string network_section(const StoredRun& run) {
  const std::optional<NetworkReport>& network = run.result.network;
  if (!network || (network->tiers.empty() && network->hottest.empty())) return "";
  const std::string how = network->model == "loggp" ? "" : ", played by " + network->model;
  return section("Links of the fabric",
                 element("p", network->topology + ", " + network->routing + how) + "\n" +
                     html_table(tiers_of(*network)) + html_table(queues_of(*network)) +
                     html_table(hottest_of(*network)));
}

std::string servers_section(const StoredRun& run) {
  std::vector<ServerReport> servers = run.result.servers;
  std::stable_sort(servers.begin(), servers.end(),
                   [](const auto& a, const auto& b) { return a.busy > b.busy; });
  Table table{{{servers.size() > 2 * kMostRows ? "busiest servers" : "server"},
               {"receives/step", Align::right},
               {"sends/step", Align::right},
               {"cores busy", Align::right},
               {"memory held", Align::right}},
              {}};
  for (std::size_t i = 0; i < std::min(servers.size(), 2 * kMostRows); ++i)
    table.rows.push_back({servers[i].name, humane_bytes(servers[i].rx_bytes),
                          humane_bytes(servers[i].tx_bytes), humane_percent(servers[i].busy),
                          humane_bytes(static_cast<double>(servers[i].memory_bytes))});
  return section("Servers", html_table(table));
}

}  // namespace ghostrank
