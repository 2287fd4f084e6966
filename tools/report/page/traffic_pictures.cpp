// Who sends how much to whom, and how evenly NICs are loaded.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "tools/report/page/pictures.h"
#include "tools/report/page/svg_parts.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// The node of "n12.nic3".
std::optional<int> node_of(const std::string& nic) {
  int node = 0;
  const std::size_t dot = nic.find(".nic");
  if (nic.empty() || nic[0] != 'n' || dot == std::string::npos) return std::nullopt;
  const auto read = std::from_chars(nic.data() + 1, nic.data() + dot, node);
  if (read.ec != std::errc() || read.ptr != nic.data() + dot || node < 0) return std::nullopt;
  return node;
}

struct Cell {
  double bytes = 0, messages = 0;
};
using Cells = std::map<std::pair<std::size_t, std::size_t>, Cell>;

struct Between {
  int from = 0, to = 0;
  Cell cell;
};

// With so many nodes to a cell; `places` are the nodes that send or receive, in order.
Cells cells_of(const std::vector<Between>& pairs, const std::map<int, std::size_t>& places,
               std::size_t nodes_per_cell) {
  Cells cells;
  for (const Between& pair : pairs) {
    Cell& cell =
        cells[{places.at(pair.from) / nodes_per_cell, places.at(pair.to) / nodes_per_cell}];
    cell.bytes += pair.cell.bytes;
    cell.messages += pair.cell.messages;
  }
  return cells;
}

std::string name_of(const std::vector<int>& nodes, std::size_t cell, std::size_t per_cell) {
  const std::size_t first = cell * per_cell, last = std::min(nodes.size(), first + per_cell) - 1;
  const std::string name = "n" + std::to_string(nodes[first]);
  return first == last ? name : name + "-n" + std::to_string(nodes[last]);
}

std::string scale_of(double x, double y, double most) {
  constexpr double kStep = 22;
  std::string body;
  for (int i = 0; i <= 4; ++i) {
    const double share = 1 - i / 4.0;
    body += page::box(x, y + kStep * i, 16, kStep, "heat", "", share) +
            page::text(x + 24, y + kStep * i + 15, "start", humane_bytes(most * share));
  }
  return body + "<rect x=\"" + page::pixels(x) + "\" y=\"" + page::pixels(y) +
         "\" width=\"16\" height=\"" + page::pixels(5 * kStep) + "\" class=\"frame\"/>\n";
}

}  // namespace

PairMap pair_map(const NicPairs& pairs) {
  constexpr std::size_t kMostAcross = 64, kMostCells = 1500;
  std::set<int> seen;
  std::map<std::pair<int, int>, Cell> by_node;
  for (const auto& [names, traffic] : pairs) {
    const std::optional<int> from = node_of(names.first), to = node_of(names.second);
    if (!from || !to || !(traffic.first > 0)) continue;
    seen.insert({*from, *to});
    Cell& cell = by_node[{*from, *to}];
    cell.bytes += traffic.first;
    cell.messages += traffic.second;
  }
  PairMap map;
  if (seen.empty()) return map;
  std::vector<Between> between;
  for (const auto& [ends, cell] : by_node) between.push_back({ends.first, ends.second, cell});
  const std::vector<int> nodes(seen.begin(), seen.end());
  std::map<int, std::size_t> places;
  for (std::size_t i = 0; i < nodes.size(); ++i) places[nodes[i]] = i;
  map.nodes = nodes.size();
  map.nodes_per_cell = (nodes.size() + kMostAcross - 1) / kMostAcross;
  Cells cells = cells_of(between, places, map.nodes_per_cell);
  while (cells.size() > kMostCells) cells = cells_of(between, places, map.nodes_per_cell *= 2);

  const std::size_t across = (nodes.size() + map.nodes_per_cell - 1) / map.nodes_per_cell;
  const double size = std::clamp(static_cast<double>(across) * 34, 120.0, 420.0),
               cell_size = size / static_cast<double>(across);
  double most = 0, labels = 0;
  for (const auto& [place, cell] : cells) most = std::max(most, cell.bytes);
  for (std::size_t i = 0; i < across; ++i)
    labels = std::max(labels, page::width_of(name_of(nodes, i, map.nodes_per_cell)));
  const double left = labels + 14, top = 24;
  std::string body;
  // A label every so many rows, and on the columns as many as there is room for.
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(15 / cell_size)));
  const auto apart = static_cast<std::size_t>(std::max(1.0, std::ceil((labels + 8) / cell_size)));
  for (std::size_t i = 0; i < across; ++i) {
    const double middle = cell_size * (static_cast<double>(i) + 0.5);
    const std::string name = name_of(nodes, i, map.nodes_per_cell);
    if (i % every == 0) body += page::text(left - 6, top + middle + 4, "end", name, "faint");
    if (i % apart == 0) body += page::text(left + middle, top - 8, "middle", name, "faint");
  }
  for (const auto& [place, cell] : cells) {
    constexpr double kPalest = 0.06;  // what is little can still be seen
    body += page::box(
        left + cell_size * static_cast<double>(place.second),
        top + cell_size * static_cast<double>(place.first), cell_size, cell_size, "heat",
        name_of(nodes, place.first, map.nodes_per_cell) + " to " +
            name_of(nodes, place.second, map.nodes_per_cell) + ": " + humane_bytes(cell.bytes) +
            " in " + humane_mean_count(cell.messages, "message"),
        kPalest + (1 - kPalest) * cell.bytes / most);
  }
  body += "<rect x=\"" + page::pixels(left) + "\" y=\"" + page::pixels(top) + "\" width=\"" +
          page::pixels(size) + "\" height=\"" + page::pixels(size) + "\" class=\"frame\"/>\n" +
          scale_of(left + size + 22, top, most);
  map.svg =
      page::svg(left + size + 130, top + std::max(size, 115.0) + 8, "bytes between nodes", body);
  return map;
}

std::string nic_bars(std::vector<NicBar> nics) {
  constexpr double kWidth = 380, kHeight = 130, kLeft = 80, kTop = 10;
  double most = 0;
  for (const NicBar& nic : nics) most = std::max({most, nic.sent, nic.received});
  if (!(most > 0) || nics.size() < 2) return "";
  std::stable_sort(nics.begin(), nics.end(),
                   [](const NicBar& a, const NicBar& b) { return a.sent > b.sent; });
  std::string body;
  double unit = 1;  // round in what bytes are shown in
  while (most >= 1024 * unit && std::isfinite(most)) unit *= 1024;
  for (const double count : page::ticks(0, most / unit, 3)) {
    const double tick = count * unit;
    const double y = kTop + kHeight * (1 - tick / most);
    body += page::line(kLeft, y, kLeft + kWidth, y, "grid") +
            page::text(kLeft - 8, y + 4, "end", humane_bytes(tick));
  }
  // Of more NICs than columns, the busiest of each group.
  constexpr std::size_t kMostColumns = 190, kFewColumns = 64;
  const std::size_t group = (nics.size() + kMostColumns - 1) / kMostColumns,
                    columns = (nics.size() + group - 1) / group;
  const double wide = kWidth / static_cast<double>(columns),
               gap = columns <= kFewColumns ? 0.15 * wide : 0;
  for (std::size_t c = 0; c < columns; ++c) {
    NicBar bar = nics[c * group];
    for (std::size_t i = c * group; i < std::min(nics.size(), (c + 1) * group); ++i)
      bar.received = std::max(bar.received, nics[i].received);
    const double x = kLeft + wide * static_cast<double>(c);
    const auto add = [&](const char* kind, const char* what, double bytes, double from, double to) {
      const double high = kHeight * bytes / most;
      body += page::box(x + from, kTop + kHeight - high, to - from, high, kind,
                        bar.name + " " + what + " " + humane_bytes(bytes));
    };
    const double half = (wide - 2 * gap) / 2;
    if (columns <= kFewColumns) {
      add("sent", "sends", bar.sent, gap, gap + half);
      add("received", "receives", bar.received, gap + half, wide - gap);
    } else {
      add("sent", "sends", bar.sent, 0, wide);
      const double y = kTop + kHeight * (1 - bar.received / most);
      body += page::line(x, y, x + wide, y, "received-line");
    }
  }
  body += page::line(kLeft, kTop + kHeight, kLeft + kWidth, kTop + kHeight, "axis");
  const double y = kTop + kHeight + 22;
  body += page::box(kLeft, y - 10, 12, 12, "sent", "") +
          page::text(kLeft + 17, y, "start", "sent") +
          page::box(kLeft + 70, y - 10, 12, 12, "received", "") +
          page::text(kLeft + 87, y, "start", "received");
  return page::svg(kLeft + kWidth + 10, y + 10, "bytes of each NIC", body);
}

}  // namespace ghostrank
