#include "tools/switching/switch_tree.h"

#include "switch/wire/switchml.h"

namespace ghostrank {

SwitchTree::SwitchTree(const SwitchSpec& spec, int nodes)
    : nodes_(nodes), nics_(spec.nics), leaves_(spec.leaves), mac_(spec.mac), ip_(spec.address) {}

std::string SwitchTree::name(int at) const {
  if (!has_spine()) return "the switch";
  return at == leaves_ ? "the spine" : "leaf " + std::to_string(at);
}

int SwitchTree::ports(int at) const {
  if (at == leaves_) return leaves_;
  return end(at) - begin(at) + (has_spine() ? 1 : 0);
}

int SwitchTree::begin(int leaf) const { return (leaf * nodes_ + leaves_ - 1) / leaves_ * nics_; }

int SwitchTree::leaf_of(int port) const { return leaf_of_node(port / nics_, nodes_, leaves_); }

int SwitchTree::towards(int at, int port) const {
  const int leaf = leaf_of(port);
  if (at == leaf) return port - begin(leaf);
  return at == leaves_ ? leaf : ports(at) - 1;
}

std::vector<SwitchPart> SwitchTree::parts_of(const SwitchJob& job) const {
  std::vector<SwitchPart> of_leaf(leaves_);
  for (int w = 0; w < std::ssize(job.workers); ++w) {
    const SwitchJob::Worker& worker = job.workers[w];
    const int leaf = leaf_of(worker.port);
    SwitchPart& part = of_leaf[leaf];
    if (part.members.empty()) part = {leaf, w, job.worker_port, {}, ports(leaf) - 1};
    part.members.push_back({{towards(leaf, worker.port), worker.mac, worker.ip}});
  }
  std::erase_if(of_leaf, [](const SwitchPart& part) { return part.members.empty(); });
  if (of_leaf.size() == 1) {
    of_leaf[0].uplink = -1;
    return of_leaf;
  }
  // Leaves send from the UDP port that the workers have sent to, and take the results there.
  SwitchPart spine{leaves_, 0, switchml::kUdpPort, {}, -1};
  for (const SwitchPart& part : of_leaf)
    spine.members.push_back({{part.at, mac_, ip_}, static_cast<int>(part.members.size())});
  of_leaf.push_back(std::move(spine));
  return of_leaf;
}

// A leaf knows whether a worker is behind it by its number.
std::string SwitchTree::reason_to_refuse(const SwitchJob& job) const {
  if (!job.all_functions) return "";
  for (std::size_t w = 1; w < job.workers.size(); ++w)
    if (leaf_of(job.workers[w].port) < leaf_of(job.workers[w - 1].port))
      return "its ranks are not in the order of their nodes, so that leaves (switch.leaves) would "
             "serve workers without order; put them in order, or use the scheme for all-reduces "
             "alone";
  return "";
}

}  // namespace ghostrank
