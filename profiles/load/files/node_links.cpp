#include "profiles/load/files/node_links.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "profiles/input/csv.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/load/config.h"

namespace ghostrank {
namespace {

constexpr double kLeastLinkBps = 1e6;
constexpr const char* kPcie = "96Gbps";  // 16 lanes of PCIe 3.0, as NCCL counts them

std::string most_gpus() { return std::to_string(kMostLinkedGpus); }

}  // namespace

bool is_node_links_file(const std::string& value) {
  const auto named = named_node_links();
  return value != "none" && std::find(named.begin(), named.end(), value) == named.end();
}

NodeLinks parse_node_links(std::string_view text, const std::string& path) {
  const CsvTable table = parse_csv(text, path, "a,b,rate");
  const auto column = [&](const char* name) {
    const std::optional<std::size_t> at = table.column(name);
    if (!at) fail(table.head.mark, "a file of links has the columns a,b,rate");
    return *at;
  };
  const std::size_t a = column("a"), b = column("b"), rate = column("rate");
  struct Row {
    int a, b;
    double bps;
  };
  std::vector<Row> rows;
  int gpus = 0;
  for (const CsvRow& row : table.rows) {
    if (row.fields.size() != table.head.fields.size())
      fail(row.mark, "a link is two GPUs and a rate, as 0,1,200Gbps");
    const auto gpu = [&](std::size_t at) {
      const auto number = parse_number_list(row.fields[at], kMostLinkedGpus - 1);
      if (!number || number->size() != 1)
        fail(row.mark, quote(row.fields[at]) +
                           " is no GPU; they are numbered from 0 on, and a "
                           "node with links has at most " +
                           most_gpus());
      gpus = std::max(gpus, number->front() + 1);
      return number->front();
    };
    const int from = gpu(a), to = gpu(b);
    if (from == to)
      fail(row.mark, "a link from GPU " + std::to_string(from) + " to itself; leave it out");
    const double bps = parse_rate(row.fields[rate]).value_or(0);
    if (!(bps >= kLeastLinkBps))
      fail(row.mark, quote(row.fields[rate]) + " is no rate from 1Mbps; write one such as 200Gbps");
    rows.push_back({from, to, bps});
  }
  if (rows.empty()) fail(table.head.mark, "there is no link; write A,B,RATE, as 0,1,200Gbps");
  NodeLinks links = unlinked(path, gpus);
  for (const Row& row : rows) links.connect(row.a, row.b, links.between(row.a, row.b) + row.bps);
  return links;
}

std::optional<NodeLinks> find_node_links(const std::string& value, const std::string& near) {
  if (!is_node_links_file(value)) return node_links(value);
  const std::optional<NamedText> file = named_text(value, "cluster.intra_node.links", near);
  if (!file) return std::nullopt;
  return parse_node_links(file->text, file->name);
}

void complete_node_links(YamlValue& root) {
  const YamlValue* cluster = root.find("cluster");
  const YamlValue* node = cluster && cluster->is_map() ? cluster->find("intra_node") : nullptr;
  const YamlValue* links = node && node->is_map() ? node->find("links") : nullptr;
  if (!links || !links->is_scalar() || links->text == "none") return;
  const YamlValue* gpus = node->find("gpus");
  const std::size_t named = gpus && gpus->is_list() ? gpus->children.size() : 0;
  const bool lacks_number = named > 0 && !cluster->find("gpus_per_node"),
             lacks_rate = !node->find("rate");
  YamlValue value;
  value.kind = YamlValue::Kind::scalar;
  value.mark = links->mark;
  value.text = kPcie;
  if (lacks_rate) set_path(root, "cluster.intra_node.rate", value);
  value.text = std::to_string(named);
  if (lacks_number) set_path(root, "cluster.gpus_per_node", value);
}

std::shared_ptr<const NodeLinks> read_node_links(const Settings& in, const std::string& near) {
  const Setting& links = in.at("cluster.intra_node.links");
  const Setting& gpus = in.at("cluster.intra_node.gpus");
  if (links.text == "none") return nullptr;
  const std::optional<NodeLinks> all = find_node_links(links.text, near);
  if (!all)
    fail(links.mark,
         "cluster.intra_node.links is " + quote(links.text) +
             "; write none, dgx-1p, dgx-1v or the path of a CSV file a,b,rate (there is "
             "no such file)");
  std::vector<int> chosen;
  for (const std::int64_t gpu : in.integers("cluster.intra_node.gpus")) {
    if (gpu < 0 || gpu >= all->gpus)
      fail(gpus.mark, "cluster.intra_node.gpus: the node has GPUs 0 to " +
                          std::to_string(all->gpus - 1) + ", no " + std::to_string(gpu));
    if (std::find(chosen.begin(), chosen.end(), gpu) != chosen.end())
      fail(gpus.mark, "cluster.intra_node.gpus names GPU " + std::to_string(gpu) + " twice");
    chosen.push_back(static_cast<int>(gpu));
  }
  const Setting& per_node = in.at("cluster.gpus_per_node");
  const int wanted = in.small("cluster.gpus_per_node");
  if (chosen.empty() && wanted <= all->gpus)
    for (int gpu = 0; gpu < wanted; ++gpu) chosen.push_back(gpu);
  if (static_cast<int>(chosen.size()) != wanted)
    fail(per_node.given ? per_node.mark : links.mark,
         "cluster.gpus_per_node is " + std::to_string(wanted) + ", but " +
             (chosen.empty() ? "cluster.intra_node.links describes " + std::to_string(all->gpus)
                             : "cluster.intra_node.gpus names " + std::to_string(chosen.size())) +
             " GPUs; make them agree");
  return std::make_shared<const NodeLinks>(links_among(*all, chosen));
}

}  // namespace ghostrank
