#include "profiles/load/sections/hosts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <sstream>

#include "profiles/input/input_file.h"
#include "profiles/input/quantity.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMaxHosts = 65536;
constexpr std::size_t kMaxHostName = 255;
constexpr int kMaxCore = 65535;
constexpr int kMaxNode = 1'000'000;

constexpr std::array kHostKeys{
    Key{"name", KeyType::string, kRequired,
        "its host name, short or full, or an address; two processes of one machine are two entries "
        "of one name"},
    Key{"cores", KeyType::string, "",
        "CPUs of its engine threads: 0-15, or '0-7,16-23' (the kernel's numbers); empty: those "
        "that the process was started on"},
    Key{"nics", KeyType::any, "[]", "network interfaces of its data path; empty: chosen"}};

constexpr std::array kHostNicKeys{
    Key{"device", KeyType::string, kRequired, "network interface, such as eth0"},
    Key{"rail", KeyType::integer, kAbsent,
        "NIC number of emulated nodes that it carries; without it the position in the list", 0,
        1023}};

using NumberOfName = std::map<std::string, std::vector<int>>;

NumberOfName numbers_of(const std::vector<HostEntry>& hosts) {
  NumberOfName numbers;
  for (std::size_t h = 0; h < hosts.size(); ++h)
    numbers[hosts[h].name].push_back(static_cast<int>(h));
  return numbers;
}

std::vector<HostNic> read_nics(const Setting& nics, const std::string& host, int nics_per_node) {
  if (!nics.raw || nics.raw->kind == YamlValue::Kind::null) return {};
  if (!nics.raw->is_list())
    fail(nics.mark, "nics is " + description(*nics.raw) + "; write a list, as in [{device: eth0}]");
  std::vector<HostNic> out(nics.raw->children.size());
  std::vector<bool> taken(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Settings nic(nics.raw->children[i], kHostNicKeys, "NIC");
    const int rail = nic.given("rail") ? nic.small("rail") : static_cast<int>(i);
    const Mark& mark = nic.given("rail") ? nic.at("rail").mark : nics.raw->children[i].mark;
    const std::size_t at = rail;
    if (rail >= nics_per_node)
      fail(mark, "rail " + std::to_string(rail) + " of host " + quote(host) +
                     " carries nothing: a node has cluster.nics_per_node = " +
                     std::to_string(nics_per_node) + " NICs; remove it");
    if (at >= out.size() || taken[at])
      fail(mark, "the rails of host " + quote(host) + " must be 0 to " +
                     std::to_string(out.size() - 1) + ", each once; found " + std::to_string(rail) +
                     (at < out.size() ? " twice" : ""));
    taken[at] = true;
    if (nic.text("device").empty())
      fail(nic.at("device").mark, "a NIC has no device; name a network interface, such as eth0");
    out[at] = {nic.text("device"), rail};
  }
  return out;
}

HostEntry read_host(const YamlValue& value, int nics_per_node) {
  const Settings in(value, kHostKeys, "host");
  HostEntry host;
  host.name = in.text("name");
  if (host.name.empty() || host.name.size() > kMaxHostName ||
      host.name.find_first_of(" \t") != std::string::npos)
    fail(in.at("name").mark, quote(host.name) + " is no name of a host; write its host name");
  host.cores = in.text("cores");
  if (!host.cores.empty() && !parse_number_list(host.cores, kMaxCore))
    fail(in.at("cores").mark, "cores is " + quote(host.cores) +
                                  "; write CPU numbers, each once, as in 0-15 or '0-7,16-23'");
  host.nics = read_nics(in.at("nics"), host.name, nics_per_node);
  return host;
}

Host host_of(const std::string& text, const std::vector<HostEntry>& hosts,
             const NumberOfName& numbers, const Mark& mark) {
  if (const auto named = numbers.find(text); named != numbers.end()) {
    if (named->second.size() == 1) return Host(named->second.front());
    fail(mark, "hosts has " + std::to_string(named->second.size()) + " entries called " +
                   quote(text) + "; write the number of one, from 0");
  }
  const auto number = parse_integer(text);
  const std::int64_t count = hosts.empty() ? kMaxHosts : hosts.size();
  if (number && *number >= 0 && *number < count) return Host(*number);
  std::vector<std::string> names;
  for (const HostEntry& host : hosts) names.push_back(host.name);
  if (const std::string near = nearest(text, names); !near.empty())
    fail(mark, "there is no host " + quote(text) + "; did you mean " + near + "?");
  fail(mark, "there is no host " + quote(text) + "; write " +
                 (hosts.empty() ? "the number of a process, from 0"
                                : "a name of hosts, or a number from 0 to " +
                                      std::to_string(hosts.size() - 1)));
}

constexpr Host kNone(-1);  // of nodes that are not played

struct Line {
  std::string text;
  Mark mark;
};

std::vector<Line> lines_of_file(const Setting& placement, const std::string& near) {
  const std::string& name = placement.text;
  std::string path = name;
  if (std::filesystem::path(name).is_relative() && !std::filesystem::exists(path))
    path = (std::filesystem::path(near) / name).string();
  if (!std::filesystem::exists(path))
    fail(placement.mark, "placement is " + quote(name) +
                             "; write blocked, cyclic, or the path of a file with lines of NODES "
                             "HOST (there is no such file)");
  const auto source = std::make_shared<Source>(Source{path, path, true});
  std::vector<Line> lines;
  std::istringstream text(read_input(path));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    line.resize(std::min(line.size(), line.find('#')));
    lines.push_back({std::move(line), {source, ++number, 1}});
  }
  return lines;
}

std::vector<Line> lines_of_list(const YamlValue& list) {
  std::vector<Line> lines;
  for (const YamlValue& item : list.children) {
    if (!item.is_scalar())
      fail(item.mark, "placement has " + description(item) + "; write lines such as 0-3 s1");
    lines.push_back({item.text, item.mark});
  }
  return lines;
}

VectorBy<Node, Host> hosts_of_nodes(const std::vector<Line>& lines, const Mark& end,
                                    const std::vector<HostEntry>& hosts, int nodes,
                                    const std::vector<Node>& slice) {
  const NumberOfName numbers = numbers_of(hosts);
  VectorBy<Node, Host> host_of_node(nodes, kNone);
  VectorBy<Node, bool> played(nodes, slice.empty());
  for (const Node node : slice) played[node] = true;
  for (const Line& line : lines) {
    const std::vector<std::string> fields = words(line.text);
    if (fields.empty()) continue;
    const auto list = fields.size() == 2 ? parse_number_list(fields[0], kMaxNode) : std::nullopt;
    if (!list) fail(line.mark, quote(line.text) + " is not NODES HOST; write for example 0-3,8 s1");
    const Host host = host_of(fields[1], hosts, numbers, line.mark);
    for (const int node : *list) {
      if (node >= nodes)
        fail(line.mark, "there is no node " + std::to_string(node) + ": cluster.nodes is " +
                            std::to_string(nodes) + ", and numbers begin at 0");
      if (!played[Node(node)])
        fail(line.mark, "node " + std::to_string(node) +
                            " is not in scale.nodes, so no host plays it; leave it out");
      Host& known = host_of_node[Node(node)];
      if (known != kNone)
        fail(line.mark, "node " + std::to_string(node) + " has a host already; name it once");
      known = host;
    }
  }
  for (const Node node : host_of_node.keys())
    if (played[node] && host_of_node[node] == kNone)
      fail(end, "the placement gives node " + to_string(node) + " no host; every node " +
                    (slice.empty() ? "from 0 to " + std::to_string(nodes - 1)
                                   : std::string("of scale.nodes")) +
                    " needs one");
  return host_of_node;
}

}  // namespace

std::span<const Key> host_keys() { return kHostKeys; }
std::span<const Key> host_nic_keys() { return kHostNicKeys; }

std::vector<HostEntry> read_hosts(const Setting& hosts, int nics_per_node) {
  if (!hosts.raw || hosts.raw->kind == YamlValue::Kind::null) return {};
  if (!hosts.raw->is_list())
    fail(hosts.mark,
         "hosts is " + description(*hosts.raw) + "; write a list, as in [{name: s1, cores: 0-15}]");
  if (hosts.raw->children.size() > kMaxHosts)
    fail(hosts.mark, "more than " + std::to_string(kMaxHosts) + " hosts; list fewer");
  std::vector<HostEntry> out;
  for (const YamlValue& one : hosts.raw->children) out.push_back(read_host(one, nics_per_node));
  return out;
}

Placement read_placement(const Setting& placement, const std::vector<HostEntry>& hosts, int nodes,
                         const std::vector<Node>& slice, const std::string& near) {
  Placement out;
  out.cyclic = placement.text == "cyclic";
  if (out.cyclic || placement.text == "blocked") return out;
  if (placement.raw->is_list()) {
    out.host_of_node =
        hosts_of_nodes(lines_of_list(*placement.raw), placement.mark, hosts, nodes, slice);
  } else if (placement.raw->is_scalar()) {
    const std::vector<Line> lines = lines_of_file(placement, near);
    out.host_of_node = hosts_of_nodes(lines, lines.empty() ? placement.mark : lines.back().mark,
                                      hosts, nodes, slice);
  } else {
    fail(placement.mark, "placement is " + description(*placement.raw) +
                             "; write blocked, cyclic, a path or a list of lines such as 0-3 s1");
  }
  return out;
}

YamlValue placement_lines(const Placement& placement, const std::vector<HostEntry>& hosts,
                          const Mark& mark) {
  const NumberOfName numbers = numbers_of(hosts);
  const auto name_of_host = [&](Host host) {
    if (hosts.empty()) return to_string(host);
    const std::string& name = hosts[host.index()].name;
    return numbers.at(name).size() == 1 ? name : to_string(host);
  };
  YamlValue list;
  list.kind = YamlValue::Kind::list;
  list.mark = mark;
  const std::vector<Host>& of = placement.host_of_node.rows();
  for (std::size_t first = 0, last = 0; first < of.size(); first = last + 1) {
    for (last = first; last + 1 < of.size() && of[last + 1] == of[first];) ++last;
    if (of[first] == kNone) continue;
    YamlValue line;
    line.kind = YamlValue::Kind::scalar;
    line.mark = mark;
    line.text = std::to_string(first) + (last > first ? "-" + std::to_string(last) : "") + " " +
                name_of_host(of[first]);
    list.children.push_back(std::move(line));
  }
  return list;
}

}  // namespace ghostrank
