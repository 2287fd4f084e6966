#include "profiles/job/job.h"

#include "collectives/server_placement.h"
#include "profiles/job/framing.h"

namespace ghostrank {

std::string_view name_of(Framework framework) {
  for (const auto& [known, word] : kFrameworks)
    if (known == framework) return word;
  return "";
}

std::string_view name_of(FabricKind kind) {
  for (const auto& [known, word] : kFabricKinds)
    if (known == kind) return word;
  return "";
}

std::string_view name_of(SwitchTarget target) {
  for (const auto& [known, word] : kSwitchTargets)
    if (known == target) return word;
  return "";
}

std::uint32_t path_mtu_of(std::string_view text) {
  std::uint32_t bytes = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return 0;
    bytes = 10 * bytes + static_cast<std::uint32_t>(digit - '0');
  }
  return bytes;
}

Framing framing_named(std::string_view name, std::uint32_t mtu, std::uint32_t path_mtu) {
  constexpr std::uint32_t kEthernet = 38;  // preamble 8, header 14, checksum 4, gap 12
  constexpr std::uint32_t kIp = 20, kUdp = 8, kTcp = 32;
  if (name == "ethernet") return {mtu, kEthernet, 0};
  if (name == "tcp") return {mtu - kIp - kTcp, kEthernet + kIp + kTcp, 0};
  // The path MTU is a power of two. A packet has IP, UDP, a base header of 12 bytes and a checksum
  // of 4; a message, which is one RDMA write, has an address header of 16 bytes, once.
  if (path_mtu == 0) path_mtu = mtu > 4200 ? 4096 : 1024;
  if (name == "rocev2") return {path_mtu, kEthernet + kIp + kUdp + 16, 16};
  // Packets of schemes: the scheme's own header counts as part of its messages.
  if (name == "udp") return {mtu - kIp - kUdp, kEthernet + kIp + kUdp, 0};
  return {};
}

int ServerSpec::places(int rank_nodes) const {
  return count + (placement && placement->everywhere ? rank_nodes : 0);
}

int ServerSpec::beside(int rank_nodes) const {
  if (placement && placement->everywhere) return rank_nodes;
  return colocated ? count : 0;
}

std::string algorithm_key(Func func) { return "collectives." + std::string(name_of(func)); }

const std::string& CollectiveSpec::algorithm(Func func, const std::string& group) const {
  const auto of_group = groups.find(group);
  if (of_group == groups.end()) return algorithm(func);
  const auto named = of_group->second.find(func);
  return named == of_group->second.end() ? algorithm(func) : named->second;
}

const std::string& JobSpec::source_of(const std::string& key) const {
  const auto at = sources.find(key);
  return at == sources.end() ? file : at->second;
}

}  // namespace ghostrank
