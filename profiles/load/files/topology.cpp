#include "profiles/load/files/topology.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/input/csv.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"
#include "profiles/load/files/nic_names.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostRows = 1 << 21;
constexpr std::int64_t kMostNics = 1 << 23;

struct Row {
  std::string from, to, rate;
  Mark mark;
};

std::vector<Row> rows_of_csv(std::string_view text, const std::string& path) {
  const CsvTable table = parse_csv(text, path, "from,to,rate");
  const CsvRow& head = table.head;
  for (const std::string& name : head.fields) {
    if (name != "from" && name != "to" && name != "rate")
      fail(head.mark, "unknown column " + quote(name) + "; known here: from, to, rate");
    if (std::count(head.fields.begin(), head.fields.end(), name) > 1)
      fail(head.mark, "the column " + quote(name) + " is there twice; remove one");
  }
  if (!head.fields.empty() && (!table.column("from") || !table.column("to")))
    fail(head.mark, "a link needs both ends: the columns from and to");
  std::vector<Row> rows;
  for (const CsvRow& row : table.rows) {
    const auto field = [&](std::string_view name) {
      const std::optional<std::size_t> at = table.column(name);
      return at && *at < row.fields.size() ? row.fields[*at] : std::string();
    };
    rows.push_back({field("from"), field("to"), field("rate"), row.mark});
    if (row.fields.back().find(',') != std::string::npos)
      fail(row.mark, "a link has from, to and, between switches, a rate; " +
                         quote(row.fields.back()) + " is more than one field");
    if (rows.size() > kMostRows)
      fail(row.mark, "more than " + std::to_string(kMostRows) + " links; take ranges of nodes");
  }
  return rows;
}

std::vector<Row> rows_of_yaml(std::string_view text, const std::string& path) {
  const YamlValue root = parse_yaml(text, std::make_shared<const Source>(Source{path, path, true}));
  const YamlValue* links = root.is_map() ? root.find("links") : nullptr;
  if (!links || !links->is_list())
    fail(root.mark, "a file of links is a mapping with a list  links: [{from: n0, to: tor0}]");
  for (const YamlValue& child : root.children)
    if (child.key != "links")
      fail(child.key_mark, "unknown key " + quote(child.key) + "; known here: links");
  std::vector<Row> rows;
  for (const YamlValue& link : links->children) {
    Row row;
    row.mark = link.mark;
    if (!link.is_map()) fail(link.mark, "a link is a mapping such as {from: n0, to: tor0}");
    for (const YamlValue& field : link.children) {
      std::string* known = field.key == "from"   ? &row.from
                           : field.key == "to"   ? &row.to
                           : field.key == "rate" ? &row.rate
                                                 : nullptr;
      if (!known)
        fail(field.key_mark, "unknown key " + quote(field.key) + "; known here: from, to, rate");
      *known = field.text;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> rows_of(std::string_view text, const std::string& path) {
  const bool has_ending = is_topology_file(path);  // else the text itself was given
  const bool csv = has_ending ? path.ends_with(".csv") : text.find("links") == text.npos;
  return csv ? rows_of_csv(text, path) : rows_of_yaml(text, path);
}

class Builder {
 public:
  explicit Builder(const ClusterSpec& cluster) : cluster_(cluster) {
    graph_.leaf_of.resize(cluster.all_nodes() * cluster.nics_per_node);
    known_.resize(graph_.leaf_of.size());
  }

  SwitchGraph build(const std::vector<Row>& rows, const std::string& path) {
    for (const Row& row : rows)  // switches with NICs come first
      if (const auto ports = nics_named(row.from)) connect(row, *ports);
    graph_.leaves = static_cast<std::uint32_t>(graph_.switches.size());
    for (const Row& row : rows)
      if (!nics_named(row.from)) join(row);
    for (const Nic nic : graph_.leaf_of.keys())
      if (!known_[nic] && has_nic(cluster_, nic))
        throw Error(path + ": no link connects n" +
                    std::to_string(nic.value() / cluster_.nics_per_node) + ".nic" +
                    std::to_string(nic.value() % cluster_.nics_per_node) +
                    " to a switch; add one, as in  n" +
                    std::to_string(nic.value() / cluster_.nics_per_node) + ",tor0");
    std::stable_sort(graph_.cables.begin(), graph_.cables.end(), [](const auto& a, const auto& b) {
      return std::pair(a.a, a.b) < std::pair(b.a, b.b);
    });
    graph_.tiers = {
        {"links up", "links down", 0, static_cast<std::uint32_t>(graph_.cables.size())}};
    graph_.places = cluster_.all_nodes();
    graph_.summary = path + ": " + std::to_string(graph_.switches.size()) + " switches, " +
                     std::to_string(graph_.cables.size()) + " cables between them";
    return std::move(graph_);
  }

 private:
  std::uint32_t switch_named(const std::string& name, const Mark& mark) {
    if (name.empty()) fail(mark, "a link needs both ends: from and to");
    const auto [at, fresh] =
        numbers_.try_emplace(name, static_cast<std::uint32_t>(graph_.switches.size()));
    if (fresh) graph_.switches.push_back({name});
    return at->second;
  }

  void connect(const Row& row, const NamedNics& ports) {
    if (!row.rate.empty())
      fail(row.mark, "the rate of a NIC is cluster.nic.rate; leave it out here");
    if (nics_named(row.to))
      fail(row.mark,
           quote(row.from) + " and " + quote(row.to) + " are both NICs; connect each to a switch");
    if (ports.last_node >= cluster_.all_nodes() || ports.first_node > ports.last_node)
      fail(row.mark, quote(row.from) + ": the job has nodes n0 to n" +
                         std::to_string(cluster_.all_nodes() - 1));
    if (ports.nic.value_or(0) >= cluster_.nics_per_node)
      fail(row.mark, quote(row.from) + ": a node has NICs nic0 to nic" +
                         std::to_string(cluster_.nics_per_node - 1));
    const std::uint32_t leaf = switch_named(row.to, row.mark);
    for (int node = ports.first_node; node <= ports.last_node; ++node)
      for (int i = ports.nic.value_or(0); i <= ports.nic.value_or(cluster_.nics_per_node - 1);
           ++i) {
        const Nic nic(node * cluster_.nics_per_node + i);
        if (known_[nic])
          fail(row.mark, "n" + std::to_string(node) + ".nic" + std::to_string(i) +
                             " is connected twice; a NIC has one port");
        known_[nic] = true;
        graph_.leaf_of[nic] = leaf;
        if (!has_nic(cluster_, nic)) continue;
        if (graph_.switches[leaf].nics++ == 0) graph_.switches[leaf].near = Node(node);
      }
  }

  void join(const Row& row) {
    if (nics_named(row.to)) fail(row.mark, "write the NIC first: " + row.to + "," + row.from);
    const std::optional<double> bps = parse_rate(row.rate);
    if (row.rate.empty() || !bps)
      fail(row.mark,
           "a link between switches needs a rate, as in  " + row.from + "," + row.to + ",400Gbps");
    std::uint32_t a = switch_named(row.from, row.mark), b = switch_named(row.to, row.mark);
    if (a == b) fail(row.mark, quote(row.from) + " is connected to itself");
    if (joined_.contains({b, a})) std::swap(a, b);  // a cable parallel to that one
    joined_.emplace(a, b);
    graph_.cables.push_back({a, b, *bps});
  }

  const ClusterSpec& cluster_;
  SwitchGraph graph_;
  VectorBy<Nic, bool> known_;
  std::map<std::string, std::uint32_t> numbers_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> joined_;
};

}  // namespace

bool is_topology_file(std::string_view kind) {
  return is_text(kind) || kind.ends_with(".csv") || kind.ends_with(".json") ||
         kind.ends_with(".yaml");
}

SwitchGraph read_topology_file(const Setting& kind, const std::string& near,
                               const ClusterSpec& cluster) {
  if (const std::optional<NamedText> links = named_text(kind.text, kind.key->path, near))
    return parse_topology(links->text, links->name, cluster);
  fail(kind.mark, "there is no file of links " + quote(kind.text) + "; check the path");
}

ClusterSpec cluster_named_in(std::string_view text, const std::string& path) {
  ClusterSpec cluster;
  cluster.nics_per_node = 1;
  cluster.topology.kind = TopologySpec::Kind::file;
  for (const Row& row : rows_of(text, path)) {
    const std::optional<NamedNics> ports = nics_named(row.from);
    if (!ports) continue;
    cluster.nodes = std::max(cluster.nodes, ports->last_node + 1);
    cluster.nics_per_node = std::max(cluster.nics_per_node, ports->nic.value_or(0) + 1);
    if (std::int64_t{cluster.nodes} * cluster.nics_per_node > kMostNics)
      fail(row.mark, "more than " + std::to_string(kMostNics) + " NICs; number them from 0");
  }
  return cluster;
}

SwitchGraph parse_topology(std::string_view text, const std::string& path,
                           const ClusterSpec& cluster) {
  return Builder(cluster).build(rows_of(text, path), path);
}

}  // namespace ghostrank
