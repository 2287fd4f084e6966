#include "tools/nccl/check.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "collectives/nccl/environment.h"
#include "collectives/nccl/found.h"
#include "collectives/nccl/group.h"
#include "collectives/nccl/nccl.h"
#include "collectives/nccl/schedules/p2p_split.h"
#include "collectives/nccl/settings/versions.h"
#include "profiles/error.h"
#include "tools/text/humane.h"

namespace ghostrank {
namespace {

// A data type of NCCL; kTypes is in the order of NCCL's numbers.
struct LoggedType {
  std::string_view name;
  std::uint32_t bytes;
  Numbers numbers;
};
constexpr std::array<LoggedType, 12> kTypes{{{"int8", 1, Numbers::integers},
                                             {"uint8", 1, Numbers::integers},
                                             {"int32", 4, Numbers::integers},
                                             {"uint32", 4, Numbers::integers},
                                             {"int64", 8, Numbers::integers},
                                             {"uint64", 8, Numbers::integers},
                                             {"half", 2, Numbers::floats},
                                             {"float", 4, Numbers::floats},
                                             {"double", 8, Numbers::floats},
                                             {"bfloat16", 2, Numbers::floats},
                                             {"f8e4m3", 1, Numbers::floats},
                                             {"f8e5m2", 1, Numbers::floats}}};
constexpr std::array kOps{Reduction::sum, Reduction::prod, Reduction::max, Reduction::min,
                          Reduction::avg};
Reduction reduction_of(int op) {
  return op < static_cast<int>(kOps.size()) ? kOps[op]
                                            : Reduction::pre_mul_sum;  // one that the user made
}

constexpr int kRing = 4, kNvls = 5, kFirstTree = 1, kLastTree = 3;  // NCCL's patterns
constexpr int kNvlsChannels = 16;                                   // of Hopper

// `library` is one of NCCL's.
NcclVersion version_of(const std::string& library) { return nccl_library(library)->version; }

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string rate(double GBps) { return significant(GBps); }

// The nodes and GPUs of a communicator's ranks; empty: why they are unknown.
std::string place(const NcclLogComm& comm, Communicator& out) {
  const bool all = std::ssize(comm.members) == comm.ranks;
  const bool regular = comm.nodes * comm.ranks_per_node == comm.ranks;
  if (!all && !regular)
    return "the log does not say on which nodes its ranks are; log INIT of all ranks";
  std::map<std::string, std::int32_t> node_of;  // by host, numbered as ranks first name them
  for (const auto& [rank, member] : comm.members)
    node_of.try_emplace(member.host, static_cast<std::int32_t>(node_of.size()));
  // NCCL_HOSTID may make several nodes of one host.
  const bool by_host = all && (!regular || std::ssize(node_of) == comm.nodes);
  for (int r = 0; r < comm.ranks; ++r)
    out.node_of.push_back(by_host ? node_of.at(comm.members.at(r).host) : r / comm.ranks_per_node);
  const auto known = [](const auto& member) { return member.second.gpu >= 0; };
  if (all && std::all_of(comm.members.begin(), comm.members.end(), known)) {
    for (const auto& [rank, member] : comm.members) out.gpu_of.push_back(member.gpu);
  } else if (comm.ranks_per_node == 1 && !comm.members.empty() && known(*comm.members.begin())) {
    out.gpu_of.assign(comm.ranks, comm.members.begin()->second.gpu);
  }
  return {};
}

class CommCheck {
 public:
  CommCheck(const NcclLogComm& comm, const std::string& library, Communicator node)
      : comm_(comm), library_(library), at_(std::move(node)) {
    at_.channels = 0;
    out_.name = comm.name;
    out_.where = humane_count(comm.ranks, "rank");
    if (comm.nodes > 0) out_.where += " on " + humane_count(comm.nodes, "node");
    why_not_ = comm.ranks < 2 ? "it has one rank" : place(comm, at_);
    if (!why_not_.empty()) return;
    try {
      plan_ = nccl_plan(version_of(library), NcclAlgorithm::ring,
                        {Func::all_reduce, comm.ranks, 1 << 20}, at_);
    } catch (const std::invalid_argument& error) {
      why_not_ = error.what();
    }
  }

  NcclCommFindings take(const std::map<NcclLogGroup, std::uint64_t>& groups, std::size_t index) {
    if (why_not_.empty()) {
      graphs();
      channels();
      rings();
      trees();
    } else {
      out_.communicator.push_back({"graph", "", "", false, why_not_});
    }
    for (const auto& [one, times] : groups)
      if (one.calls.front().comm == index) group(one, times);
    return std::move(out_);
  }

 private:
  void found(std::string what, std::string log, std::string here) {
    const bool same = log == here;
    out_.communicator.push_back({std::move(what), std::move(log), std::move(here), same});
  }

  static std::string shown(int channels, double inside, double between) {
    return humane_count(channels, "channel") + ", " + rate(inside) + "/" + rate(between) + " GB/s";
  }

  void graph(const char* what, int pattern, const NcclLinks& here) {
    const auto log = comm_.graphs.find(pattern);
    if (log == comm_.graphs.end()) return;
    const NcclLogComm::Graph& g = log->second;
    // Inside a single node no rate between nodes is searched for.
    const bool one_node = plan_->nodes.nodes() == 1;
    found(what, shown(g.channels, g.inside_GBps, one_node ? g.inside_GBps : g.between_GBps),
          shown(here.channels, here.inside_GBps, one_node ? here.inside_GBps : here.between_GBps));
  }

  void graphs() {
    graph("ring graph", kRing, plan_->graphs->ring.links);
    for (int pattern = kFirstTree; pattern <= kLastTree; ++pattern)
      graph("tree graph", pattern, plan_->graphs->tree.links);
    if (plan_->graphs->nvls.channels > 0) graph("NVLS graph", kNvls, plan_->graphs->nvls);
  }

  void channels() {
    const auto compare = [&](const char* what, int log, int here) {
      if (log >= 0) found(what, std::to_string(log), std::to_string(here));
    };
    compare("channels", comm_.channels, plan_->channels);
    const bool nvls = plan_->settings.nvls && plan_->graphs->nvls.channels > 1;
    compare("NVLS channels", comm_.nvls_channels, nvls ? kNvlsChannels : 0);
    const NcclP2pChannels p2p = nccl_p2p_channels(version_of(library_), *plan_->node, plan_->nodes,
                                                  plan_->channels, plan_->settings);
    compare("channels for sends", comm_.p2p_channels, p2p.channels);
    compare("channels per peer", comm_.per_peer, p2p.max_per_peer);
  }

  // Compares one fact per channel and rank; shows the first that differs.
  template <typename Fact>
  void places(
      const char* what, const std::map<NcclLogComm::ChannelRank, Fact>& facts,
      const std::function<std::pair<std::string, std::string>(int, int, const Fact&)>& texts) {
    if (facts.empty()) return;
    std::set<int> channels;
    std::uint64_t differ = 0;
    std::string log, here;
    for (const auto& [at, fact] : facts) {
      const auto [channel, rank] = at;
      channels.insert(channel);
      const auto [theirs, ours] = channel < plan_->channels
                                      ? texts(channel, rank, fact)
                                      : std::pair<std::string, std::string>("one", "none");
      if (theirs == ours) continue;
      if (differ++ > 0) continue;
      const std::string where = "channel " + std::to_string(channel) + ": ";
      log = where + theirs, here = where + ours;
    }
    const std::string all = humane_count(static_cast<double>(facts.size()), "place") + " of " +
                            humane_count(static_cast<double>(channels.size()), "channel");
    if (differ == 0) return found(what, all, all);
    found(what, log,
          here + " (" + humane_count(static_cast<double>(differ)) + " of " + all + " differ)");
  }

  void rings() {
    places<NcclLogComm::Edges>(
        "rings", comm_.rings, [&](int channel, int rank, const NcclLogComm::Edges& edges) {
          const NcclRing ring(plan_->nodes, *plan_->node, channel);
          const int at = ring.position_of(rank);
          const auto neighbour = [&](int step) {
            return ring.rank_at((at + step + comm_.ranks) % comm_.ranks);
          };
          // NCCL may have said one of the two only.
          const auto text = [&](int prev, int next) {
            return (edges.prev < 0 ? "" : std::to_string(prev) + " -> ") + std::to_string(rank) +
                   (edges.next < 0 ? "" : " -> " + std::to_string(next));
          };
          return std::pair(text(edges.prev, edges.next), text(neighbour(-1), neighbour(1)));
        });
  }

  void trees() {
    places<NcclLogComm::Tree>(
        "trees", comm_.trees, [&](int channel, int rank, const NcclLogComm::Tree& tree) {
          const NcclTreeLinks links = nccl_tree_links(plan_->nodes, *plan_->node, channel, rank);
          std::vector<int> down(links.down.begin(), links.down.end());
          std::sort(down.begin(), down.end());
          const auto text = [&](const std::vector<int>& children, int up) {
            std::string out;
            for (const int child : children)
              out += (out.empty() ? "" : "/") + std::to_string(child);
            return out + "->" + std::to_string(rank) + "->" + std::to_string(up);
          };
          return std::pair(text(tree.down, tree.up),
                           text(down, links.up == kNoRank ? -1 : links.up));
        });
  }

  // "allreduce of 4,194,304 float sum"
  static std::string name(const NcclLogCall& one) {
    std::string text = std::string(name_of(one.func)) + " of " +
                       humane_count(static_cast<double>(one.count)) + " " +
                       std::string(kTypes[one.type].name);
    if (reduces(one.func)) text += " " + std::string(name_of(reduction_of(one.op)));
    return text;
  }

  Collective collective(const NcclLogCall& one) const {
    const LoggedType& type = kTypes[one.type];
    Collective c{one.func, comm_.ranks, one.count, type.bytes, one.root};
    if (reduces(one.func)) c.reduction = reduction_of(one.op);
    c.numbers = type.numbers;
    return c;
  }

  void group(const NcclLogGroup& one, std::uint64_t times) {
    NcclFinding finding;
    const std::size_t calls = one.calls.size();
    finding.what = name(one.calls.front());
    if (calls > 1)
      finding.what =
          "group of " + humane_count(static_cast<double>(calls)) + ", first " + finding.what;
    finding.times = times;
    finding.note = !why_not_.empty() ? why_not_ : incomplete(one);
    std::vector<std::string> log, here;
    for (const NcclLogChoice& choice : one.choices) log.push_back(text(choice, calls > 1));
    if (finding.compared()) {
      try {
        here = planned(one);
      } catch (const std::invalid_argument& error) {
        finding.note = error.what();
      }
    }
    const auto alike = [](const std::string& a, const std::string& b) {
      return lower(a) == lower(b);
    };
    const auto differ = std::mismatch(log.begin(), log.end(), here.begin(), here.end(), alike);
    finding.same = differ.first == log.end();
    if (calls == 1 || !finding.compared()) {
      finding.log = calls == 1 ? log.front() : plans(log);
      if (!here.empty()) finding.here = here.front();
    } else if (finding.same) {
      finding.log = finding.here = plans(log);
    } else {
      const std::string place = "plan " + std::to_string(differ.first - log.begin() + 1) + ": ";
      finding.log = place + *differ.first;
      finding.here = place + *differ.second;
    }
    out_.calls.push_back(std::move(finding));
  }

  // Why a group cannot be compared; empty: it can.
  static std::string incomplete(const NcclLogGroup& one) {
    for (const NcclLogCall& call : one.calls)
      if (call.comm != one.calls.front().comm)
        return "planned with calls of other communicators, which choices do not name";
    return one.choices.size() == one.calls.size() ? ""
                                                  : "the log has no choice for some of its calls";
  }

  static std::string plans(const std::vector<std::string>& list) {
    return humane_count(static_cast<double>(list.size()), "plan");
  }

  // Function and bytes identify a call within its group.
  static std::string of_group(Func func, std::uint64_t bytes) {
    return std::string(name_of(func)) + " of " + humane_count(static_cast<double>(bytes)) + " B, ";
  }
  static std::string text(const NcclLogChoice& choice, bool grouped) {
    return (grouped ? of_group(choice.func, choice.bytes) : "") + lower(choice.algorithm) + "/" +
           choice.protocol + " " + range(choice.first_channel, choice.last_channel);
  }

  static std::string range(int first, int last) {
    return "channels " + std::to_string(first) + ".." + std::to_string(last);
  }

  // The plans of a group's calls, in the order in which NCCL plans them.
  std::vector<std::string> planned(const NcclLogGroup& group) const {
    std::vector<Collective> calls;
    for (const NcclLogCall& one : group.calls) calls.push_back(collective(one));
    const NcclGroupPlan plan = nccl_group_plan(version_of(library_), calls, at_);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < plan.plans.size(); ++i) {
      const NcclPlan& one = plan.plans[i];
      const Collective& call = calls[plan.order[i]];
      const std::string name = one.algorithm == NcclAlgorithm::nvls_tree
                                   ? "nvls_tree"
                                   : std::string(name_of(one.algorithm));
      out.push_back((calls.size() > 1 ? of_group(call.func, call.count * call.element_bytes) : "") +
                    name + "/" + std::string(name_of(one.task.protocol)) + " " +
                    range(one.split.first, one.split.first + one.split.channels - 1));
    }
    return out;
  }

  const NcclLogComm& comm_;
  const std::string& library_;
  Communicator at_;
  std::string why_not_;
  std::optional<NcclPlan> plan_;
  NcclCommFindings out_;
};

// The channel's order of local ranks, and its NICs: "0 7 6 5 4 3 2 1, NICs 0 1".
std::string order_of(const NcclGraphChannel& channel) {
  std::string text;
  for (const int local : channel.order) text += (text.empty() ? "" : " ") + std::to_string(local);
  if (channel.first_nic >= 0)
    text += ", NICs " + std::to_string(channel.first_nic) + " " + std::to_string(channel.last_nic);
  return text;
}

void compare(const char* what, const NcclGraph& dump, const NcclGraph& here,
             std::vector<NcclFinding>& out) {
  const auto links = [](const NcclLinks& l) {
    return humane_count(l.channels, "channel") + ", " + rate(l.inside_GBps) + "/" +
           rate(l.between_GBps) + " GB/s";
  };
  const std::string name = what, theirs = links(dump.links), ours = links(here.links);
  out.push_back({name + " graph", theirs, ours, theirs == ours});
  const std::size_t channels = std::max(dump.channels.size(), here.channels.size());
  for (std::size_t c = 0; c < channels; ++c) {
    const auto order = [&](const NcclGraph& graph) {
      return c < graph.channels.size() ? order_of(graph.channels[c]) : "none";
    };
    const std::string a = order(dump), b = order(here);
    out.push_back({name + ", channel " + std::to_string(c), a, b, a == b});
  }
}

}  // namespace

void count_nccl_findings(NcclFindings& findings) {
  for (const NcclCommFindings& comm : findings.comms)
    for (const auto* list : {&comm.communicator, &comm.calls})
      for (const NcclFinding& one : *list)
        ++(!one.compared() ? findings.not_compared : one.same ? findings.same : findings.differ);
}

std::string nccl_library_of(const std::string& version) {
  // The planning of 2.29.7 is that of 2.30.7, as far as it is modelled.
  constexpr std::pair<std::string_view, const char*> kPlayed[] = {
      {"2.28.", "nccl-2.28"}, {"2.29.", "nccl-2.30"}, {"2.30.", "nccl-2.30"}};
  for (const auto& [release, library] : kPlayed)
    if (version.starts_with(release)) return library;
  throw Error("NCCL " + version +
              " is not played here; give --library nccl-2.28 or nccl-2.30 to compare with that");
}

NcclFindings check_nccl_log(const NcclLog& log, const std::string& library,
                            const Communicator& node) {
  NcclFindings findings{library, {}};
  for (std::size_t i = 0; i < log.comms.size(); ++i)
    findings.comms.push_back(CommCheck(log.comms[i], library, node).take(log.groups, i));
  count_nccl_findings(findings);
  return findings;
}

NcclFindings check_nccl_graphs(const NcclGraphs& dump, const std::string& library,
                               const Communicator& node) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const bool between = dump.ring.channels[at(0)].first_nic >= 0;
  const int gpus = dump.node.gpus, nodes = between ? 2 : 1;
  std::vector<std::int32_t> node_of;
  for (int r = 0; r < gpus * nodes; ++r) node_of.push_back(r / gpus);
  NcclFindings findings{library, {{"the dump", humane_count(gpus, "GPU") + " of a node", {}, {}}}};
  std::shared_ptr<const NcclGraphs> here;
  try {
    here = nccl_graphs_of(
        node, NcclNodes(gpus * nodes, node_of),
        nccl_search_options(nccl_settings(node.environment), version_of(library), between));
  } catch (const std::invalid_argument& error) {
    throw Error(error.what());
  }
  std::vector<NcclFinding>& out = findings.comms.front().communicator;
  compare("ring", dump.ring, here->ring, out);
  compare("tree", dump.tree, here->tree, out);
  const auto heads = [](const NcclGraphs& g) { return humane_count(g.nvls.channels, "head"); };
  out.push_back({"NVLS", heads(dump), heads(*here), heads(dump) == heads(*here)});
  count_nccl_findings(findings);
  return findings;
}

}  // namespace ghostrank
