#include "collectives/schemes/multicast/orca_label.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

namespace ghostrank::multicast {
namespace {

constexpr int kBloom = 32;  // bits

int width(int least, int ports) { return std::max(least, ports); }

std::uint32_t crc(const std::array<std::uint8_t, 2>& bytes, std::uint32_t polynomial,
                  std::uint32_t start) {
  std::uint32_t value = start;
  for (const std::uint8_t byte : bytes) {
    value ^= byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0);
  }
  return value;
}

// Appends bits to bytes that are 0.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* to) : to_(to) {}
  void put(bool bit) {
    if (bit) to_[at_ / 8] = static_cast<std::uint8_t>(to_[at_ / 8] | (0x80U >> (at_ % 8)));
    ++at_;
  }
  void put(const std::vector<bool>& bits) {
    for (const bool bit : bits) put(bit);
  }

 private:
  std::uint8_t* to_;
  std::size_t at_ = 0;
};

}  // namespace

std::uint32_t bloom_of(int leaf) {
  const std::array<std::uint8_t, 2> id{static_cast<std::uint8_t>(leaf >> 8),
                                       static_cast<std::uint8_t>(leaf)};
  const std::uint32_t crc16 = crc(id, 0xa001, 0), crc32 = ~crc(id, 0xedb88320, 0xffffffff);
  return (std::uint32_t{1} << (crc16 % kBloom)) | (std::uint32_t{1} << (crc32 % kBloom));
}

OrcaTree orca_tree(const Clos& clos, int source, const std::vector<int>& to, int way) {
  OrcaTree tree;
  OrcaLabel& label = tree.label;
  label.leaf_us.resize(width(kPorts, clos.spines));
  label.spine_us.resize(width(kPorts, clos.cores));
  label.common_ds.resize(width(kPorts, clos.leaves));
  label.core_ds.resize(width(kPods, clos.pods));
  tree.suppressed.resize(clos.pods);

  // By pod: the links down that are needed.
  std::vector<std::set<int>> needed(clos.pods);
  const int own = clos.pod_of(source);
  for (const int leaf : to) {
    if (leaf == source)
      label.own_rack = true;
    else
      needed[clos.pod_of(leaf)].insert(clos.link_of(leaf));
  }
  std::vector<int> pods;  // whose spines get the packet
  for (int pod = 0; pod < clos.pods; ++pod) {
    if (needed[pod].empty()) continue;
    pods.push_back(pod);
    if (pod != own) label.core_ds[pod] = true;
  }
  if (pods.empty()) return tree;
  label.leaf_us[way % clos.spines] = true;
  if (pods.size() > 1 || pods.front() != own) {
    label.spine_us[way % clos.cores] = true;
    if (needed[own].empty()) pods.insert(pods.begin(), own);  // it passes that spine, too
  }
  // A spine never sends a packet back, so at the root's pod the root's link may be in the label.
  const auto back = [&](int pod, int link) { return pod == own && link == clos.link_of(source); };
  for (int link = 0; link < clos.leaves; ++link) {
    int with = 0;
    bool everywhere = true;
    for (const int pod : pods) {
      with += needed[pod].contains(link);
      everywhere &= needed[pod].contains(link) || back(pod, link);
    }
    label.common_ds[link] = everywhere && with > 0;
  }
  for (const int pod : pods)
    for (const int link : needed[pod])
      if (!label.common_ds[link]) label.bloom |= bloom_of(pod * clos.leaves + link);
  for (const int pod : pods)
    for (int link = 0; link < clos.leaves; ++link) {
      const std::uint32_t bits = bloom_of(pod * clos.leaves + link);
      if (label.common_ds[link] || needed[pod].contains(link) || back(pod, link)) continue;
      if ((bits & label.bloom) == bits) tree.suppressed[pod].push_back(link);
    }
  return tree;
}

std::vector<int> reached(const Clos& clos, int source, const OrcaLabel& label,
                         const SessionState& state) {
  std::vector<int> agents;
  if (label.own_rack) agents.push_back(source);
  const int own = clos.pod_of(source);
  const auto down = [&](int pod) {  // from a spine
    for (int link = 0; link < clos.leaves; ++link) {
      const int leaf = pod * clos.leaves + link;
      if (leaf == source) continue;  // never back
      const std::uint32_t bits = bloom_of(leaf);
      const bool against = std::ranges::count(state[pod], link) > 0;
      if (label.common_ds[link] || ((bits & label.bloom) == bits && !against))
        agents.push_back(leaf);
    }
  };
  for (int spine = 0; spine < clos.spines; ++spine) {
    if (!label.leaf_us[spine]) continue;
    down(own);
    for (int core = 0; core < clos.cores; ++core)
      for (int pod = 0; label.spine_us[core] && pod < clos.pods; ++pod)
        if (label.core_ds[pod]) down(pod);
  }
  return agents;
}

std::uint64_t tree_label_bytes(const Clos& clos) {
  const int bits = width(kPorts, clos.spines) + width(kPorts, clos.cores) +
                   width(kPorts, clos.leaves) + kBloom + width(kPods, clos.pods);
  return 1 + static_cast<std::uint64_t>(bits + 7) / 8;
}

std::uint64_t rack_label_bytes(const Clos& clos) {
  return 1 + static_cast<std::uint64_t>(width(kPorts, clos.ports) + 7) / 8;
}

void encode_tree_label(const Clos& clos, const OrcaLabel& label, std::uint8_t* to) {
  std::fill_n(to, tree_label_bytes(clos), std::uint8_t{0});
  to[0] = label.own_rack ? 2 : 0;  // status 0; the type's lowest bit
  BitWriter bits(to + 1);
  bits.put(label.leaf_us);
  bits.put(label.spine_us);
  bits.put(label.common_ds);
  for (int bit = 0; bit < kBloom; ++bit) bits.put(((label.bloom >> bit) & 1) != 0);
  bits.put(label.core_ds);
}

void encode_rack_label(const Clos& clos, const std::vector<int>& ports, std::uint8_t* to) {
  std::fill_n(to, rack_label_bytes(clos), std::uint8_t{0});
  to[0] = 1;  // status 1
  std::vector<bool> bits(width(kPorts, clos.ports));
  for (const int port : ports) bits[port] = true;
  BitWriter(to + 1).put(bits);
}

}  // namespace ghostrank::multicast
