#include "profiles/load/files/nccl_graph.h"

#include <algorithm>
#include <array>
#include <set>
#include <tinyxml2.h>
#include <vector>

#include "profiles/error.h"
#include "profiles/input/input_file.h"
#include "profiles/input/named_text.h"
#include "profiles/input/yaml.h"
#include "profiles/load/files/nccl_xml.h"

namespace ghostrank {
namespace {

using tinyxml2::XMLElement;

constexpr int kMaxChannels = 64, kMaxGpus = 1024;

// From the nearest to the farthest.
constexpr std::array<std::string_view, 9> kPathTypes{"LOC", "NVL", "NVB", "PIX", "PXB",
                                                     "P2C", "PXN", "PHB", "SYS"};

struct GraphReader : NcclXml {
  int path_type(const XMLElement& e, const char* name) const {
    const std::string text = attribute(e, name);
    const auto at = std::find(kPathTypes.begin(), kPathTypes.end(), text);
    if (at == kPathTypes.end())
      fail_at(e.GetLineNum(),
              std::string(name) + " is " + quote(text) + ", which is no type of path");
    return static_cast<int>(at - kPathTypes.begin());
  }
};

// A channel as written; GPUs and NICs have the dump's numbers.
struct RawChannel {
  int line = 0;
  std::vector<std::int64_t> gpus, nics;
};

struct RawGraph {
  const XMLElement* element = nullptr;
  int pattern = 0, cross_nic = 0, type_inside = 0, type_between = 0;
  NcclLinks links;
  std::vector<RawChannel> channels;
};

RawChannel read_channel(const GraphReader& in, const XMLElement& e) {
  RawChannel channel;
  channel.line = e.GetLineNum();
  for (auto* child = e.FirstChildElement(); child; child = child->NextSiblingElement()) {
    const std::string_view name = child->Name();
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    if (name == "net") {
      channel.nics.push_back(in.integer(*child, "dev", 0, kMost, 16));
    } else if (name == "gpu") {
      const bool ranked = child->Attribute("rank") != nullptr;
      channel.gpus.push_back(ranked ? in.integer(*child, "rank", 0, 1 << 24)
                                    : in.integer(*child, "dev", 0, kMost, 16));
    } else {
      in.fail_at(child->GetLineNum(),
                 "a channel has <net> and <gpu>, not <" + std::string(name) + ">");
    }
    if (channel.gpus.size() > kMaxGpus || channel.nics.size() > 2)
      in.fail_at(child->GetLineNum(), "a channel has at most 1024 GPUs and 2 NICs");
  }
  if (channel.nics.size() == 1) in.fail_at(channel.line, "a channel has two NICs or none");
  return channel;
}

RawGraph read_graph(const GraphReader& in, const XMLElement& e) {
  RawGraph graph;
  graph.element = &e;
  graph.pattern = static_cast<int>(in.integer(e, "pattern", 1, 6));
  graph.cross_nic = static_cast<int>(in.integer(e, "crossnic", 0, 2));
  graph.links.inside_GBps = in.real(e, "speedintra");
  graph.links.between_GBps = in.real(e, "speedinter");
  graph.links.latency_us = e.Attribute("latencyinter") ? in.real(e, "latencyinter") : 0;
  graph.type_inside = in.path_type(e, "typeintra");
  graph.type_between = in.path_type(e, "typeinter");
  graph.links.same_channels = in.integer(e, "samechannels", 0, 1) == 1;
  const std::int64_t channels = in.integer(e, "nchannels", 0, kMaxChannels);
  for (auto* child = e.FirstChildElement(); child; child = child->NextSiblingElement()) {
    if (std::string_view(child->Name()) != "channel")
      in.fail_at(child->GetLineNum(),
                 std::string("a graph has <channel>, not <") + child->Name() + ">");
    graph.channels.push_back(read_channel(in, *child));
  }
  if (std::ssize(graph.channels) != channels)
    in.fail_at(e.GetLineNum(), "nchannels is " + std::to_string(channels) + ", but there are " +
                                   std::to_string(graph.channels.size()));
  graph.links.channels = static_cast<int>(channels);
  return graph;
}

// Whether NCCL trusts LL128 over the distance to the NICs; Hopper may be farther from them.
bool trusts_ll128(const RawGraph& graph, bool hopper) {
  const auto at_most = [](int type, std::string_view limit) {
    return type <= std::find(kPathTypes.begin(), kPathTypes.end(), limit) - kPathTypes.begin();
  };
  return at_most(graph.type_between, hopper ? "PXN" : "PXB") && at_most(graph.type_inside, "NVB");
}

// The index of a number in the sorted set.
int index_of(const std::set<std::int64_t>& numbers, std::int64_t number) {
  return static_cast<int>(std::distance(numbers.begin(), numbers.find(number)));
}

NcclGraph make_graph(const GraphReader& in, const RawGraph& raw, const std::set<std::int64_t>& gpus,
                     const std::set<std::int64_t>& nics, bool hopper) {
  NcclGraph graph;
  graph.links = raw.links;
  graph.links.nvlink = kPathTypes[raw.type_inside] == "NVL";
  graph.links.ll128 = trusts_ll128(raw, hopper);
  for (const RawChannel& channel : raw.channels) {
    const std::set<std::int64_t> here(channel.gpus.begin(), channel.gpus.end());
    if (here.size() != channel.gpus.size() || here != gpus)
      in.fail_at(channel.line, "a channel must name every GPU of the node once");
    NcclGraphChannel made;
    for (const std::int64_t gpu : channel.gpus) made.order.push_back(index_of(gpus, gpu));
    if (!channel.nics.empty()) {
      made.first_nic = index_of(nics, channel.nics.front());
      made.last_nic = index_of(nics, channel.nics.back());
    }
    graph.channels.push_back(std::move(made));
  }
  return graph;
}

std::vector<NcclHead> make_heads(const GraphReader& in, const RawGraph& raw,
                                 const std::set<std::int64_t>& gpus,
                                 const std::set<std::int64_t>& nics) {
  std::vector<NcclHead> heads;
  for (const RawChannel& channel : raw.channels) {
    if (channel.gpus.empty() || !gpus.contains(channel.gpus.front()))
      in.fail_at(channel.line, "a channel of NVLS must name a GPU of the node");
    const int local = index_of(gpus, channel.gpus.front());
    const auto same = [&](const NcclHead& head) { return head.local == local; };
    if (std::any_of(heads.begin(), heads.end(), same)) continue;
    const bool known = !channel.nics.empty() && nics.contains(channel.nics.front());
    heads.push_back({local, known ? index_of(nics, channel.nics.front()) : -1});
  }
  return heads;
}

struct RawGraphs {
  RawGraph ring, tree, nvls;
};

RawGraphs read_graphs(const GraphReader& in, const XMLElement& root) {
  RawGraphs graphs;
  std::set<std::int64_t> ids;
  for (auto* e = root.FirstChildElement(); e; e = e->NextSiblingElement()) {
    if (std::string_view(e->Name()) != "graph")
      in.fail_at(e->GetLineNum(), std::string("<graphs> has <graph>, not <") + e->Name() + ">");
    const std::int64_t id = in.integer(*e, "id", 0, 4);
    if (!ids.insert(id).second)
      in.fail_at(e->GetLineNum(), "there are two graphs with id " + std::to_string(id));
    if (id == 0) graphs.ring = read_graph(in, *e);
    if (id == 1) graphs.tree = read_graph(in, *e);
    if (id == 3) graphs.nvls = read_graph(in, *e);
  }
  const auto demand = [&](const RawGraph& graph, const char* what) {
    if (!graph.element) in.fail_at(root.GetLineNum(), std::string("there is no ") + what);
    if (graph.channels.empty())
      in.fail_at(graph.element->GetLineNum(), std::string(what) + " has no channels");
  };
  demand(graphs.ring, "graph of the ring (id 0)");
  demand(graphs.tree, "graph of the tree (id 1)");
  if (graphs.ring.pattern != 4)
    in.fail_at(graphs.ring.element->GetLineNum(), "the pattern of a ring is 4");
  if (graphs.tree.pattern > 3)
    in.fail_at(graphs.tree.element->GetLineNum(), "the pattern of a tree is 1, 2 or 3");
  return graphs;
}

NcclNode::Tree tree_of(int pattern) {
  return pattern == 1   ? NcclNode::Tree::balanced
         : pattern == 2 ? NcclNode::Tree::split
                        : NcclNode::Tree::plain;
}

}  // namespace

std::shared_ptr<const NcclGraphs> parse_nccl_graphs(std::string_view text,
                                                    const std::string& file) {
  const GraphReader in{
      {file, "give the file that NCCL_GRAPH_DUMP_FILE or NCCL_TOPO_DUMP_FILE wrote"}};
  if (text.size() > kMaxGraphBytes) in.fail_at(1, "the file is larger than 1 MiB");
  tinyxml2::XMLDocument document;
  const XMLElement& root = in.parse(document, text, "graphs");
  in.integer(root, "version", 1, 1);
  const RawGraphs raw = read_graphs(in, root);

  std::set<std::int64_t> nics;
  for (const RawGraph* graph : {&raw.ring, &raw.tree})
    for (const RawChannel& channel : graph->channels)
      nics.insert(channel.nics.begin(), channel.nics.end());
  const std::vector<std::int64_t>& first = raw.ring.channels.front().gpus;
  const std::set<std::int64_t> gpus(first.begin(), first.end());
  if (gpus.empty()) in.fail_at(raw.ring.channels.front().line, "a channel has no GPU");

  NcclGraphs graphs;
  const bool hopper = !raw.nvls.channels.empty();
  graphs.ring = make_graph(in, raw.ring, gpus, nics, hopper);
  graphs.tree = make_graph(in, raw.tree, gpus, nics, hopper);
  graphs.nvls = raw.nvls.links;
  graphs.heads = make_heads(in, raw.nvls, gpus, nics);
  graphs.node.gpu = hopper ? NcclGpu::hopper : NcclGpu::ampere;
  graphs.node.nvlinks = hopper ? 18 : 12;
  graphs.node.swap_odd_nodes = raw.ring.cross_nic == 2;
  graphs.node.tree = tree_of(raw.tree.pattern);
  // The dump does not give a NIC's rate; assume that the ring's channels fill the NICs.
  graphs.node.nic_GBps = raw.ring.links.between_GBps * raw.ring.links.channels /
                         static_cast<double>(std::max<std::size_t>(1, nics.size()));
  graphs.node.nics_per_gpu =
      std::max(1, static_cast<int>(nics.size()) / static_cast<int>(gpus.size()));
  return nccl_graphs(std::move(graphs));
}

bool is_nccl_graph_text(std::string_view name) { return name.starts_with('<'); }

bool is_nccl_graph_file(std::string_view name) {
  return !is_nccl_graph_text(name) && name.ends_with(".xml");
}

std::string read_nccl_graph_file(const std::string& name, const std::string& near) {
  if (const std::string path = file_named(name, near); !path.empty()) return read_input(path);
  throw Error("there is no graph dump or topology file " + quote(name) + "; check the path");
}

}  // namespace ghostrank
