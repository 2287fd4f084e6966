// See nccl/schedules/p2p_split.h.
#include "collectives/nccl/schedules/p2p_split.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "collectives/common/powers.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kNetworkChunk = 128 << 10, kNvlinkChunk = 512 << 10;
constexpr std::uint64_t kPage = 4096;
constexpr int kChannelGBps = 14;  // GB/s of the NICs that one channel drives

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

// Reverses the lowest log2(channels) bits of `value`.
int reverse_bits(int value, int channels) {
  int reversed = 0;
  for (int bit = 1; bit < channels; bit *= 2) {
    reversed = reversed * 2 + value % 2;
    value /= 2;
  }
  return reversed;
}

int channels_to_remote(NcclVersion version, const NcclNode& node, int ranks, int channels) {
  if (version == NcclVersion::v2_30) {
    // NCCL counts whole GB/s of all NICs of a GPU.
    const auto rate = static_cast<int>(node.nic_GBps * node.nics_per_gpu);
    return std::max(node.nics_per_gpu, (rate + kChannelGBps - 1) / kChannelGBps);
  }
  int wanted = 2;
  while (wanted > 1 && wanted * ranks > 4 * channels) wanted /= 2;
  return std::max(wanted, node.nics_per_gpu);
}

}  // namespace

NcclRounds::NcclRounds(const NcclNodes& nodes, int most)
    : nodes_(nodes), single_node_(nodes.nodes() == 1) {
  group_ = single_node_ ? nodes.size() : most;
  for (int node = 0; node < nodes.nodes(); ++node) {
    group_ = std::gcd(group_, nodes.ranks_of(node));
    if (nodes.uniform()) break;
  }
  groups_ = nodes.size() / group_;
  const int modulus = power_of_two_above(groups_);
  block_.resize(groups_);
  for (int d = 0, k = 0; k < modulus; ++k, d = (d + k) % modulus) {
    if (d >= groups_) continue;
    block_[d] = static_cast<std::int32_t>(distance_.size());
    distance_.push_back(d);
  }
}

GroupRank NcclRounds::partner(GroupRank r, int round, int sign) const {
  const int ordinal = nodes_.ordinal_of(r), q = ordinal / group_, l = ordinal % group_;
  const int d = sign * distance_[round / group_];
  const int delta = sign * (round % group_);
  return nodes_.rank_of_ordinal((q + d + groups_) % groups_ * group_ +
                                (l + delta + group_) % group_);
}

int NcclRounds::round_of(GroupRank source, GroupRank target) const {
  const int from = nodes_.ordinal_of(source), to = nodes_.ordinal_of(target);
  const int d = (to / group_ - from / group_ + groups_) % groups_;
  const int delta = (to % group_ - from % group_ + group_) % group_;
  return block_[d] * group_ + delta;
}

int NcclRounds::base(int round, int channels) const {
  return reverse_bits(round / rounds_per_base(), channels);
}

NcclP2pChannels nccl_p2p_channels(NcclVersion version, const NcclNode& node, const NcclNodes& nodes,
                                  int channels, const NcclSettings& settings) {
  NcclP2pChannels result;
  auto wanted = static_cast<std::int64_t>(channels);
  if (settings.max_p2p_channels > 0) wanted = std::min(wanted, settings.max_p2p_channels);
  wanted = std::max(wanted, settings.min_p2p_channels);
  result.channels = power_of_two_above(static_cast<int>(wanted));
  const int ranks = nodes.size();
  const bool several_nodes = nodes.nodes() > 1;
  const auto given = static_cast<int>(settings.net_peer_channels);
  int per_peer = 64;
  if (nodes.ranks_per_node() > 1) per_peer = 2 * node.nvlinks;
  if (several_nodes)
    per_peer = std::min(
        per_peer,
        given > 0 ? given : channels_to_remote(version, node, ranks, static_cast<int>(wanted)));
  per_peer = power_of_two_above(per_peer);
  if (version == NcclVersion::v2_30 && several_nodes && given == 0)
    while (per_peer > 1 && per_peer * ((ranks + 7) / 8) > result.channels) per_peer /= 2;
  per_peer = std::min(per_peer, result.channels);
  result.max_per_peer = result.min_per_peer = per_peer;
  while (result.min_per_peer > 1 && result.min_per_peer * ranks > result.channels)
    result.min_per_peer /= 2;
  const std::uint64_t own = several_nodes ? kNetworkChunk : kNvlinkChunk;
  const std::uint64_t net_chunk = settings.net_chunk_bytes;
  result.chunk_bytes = std::min(several_nodes && net_chunk > 0 ? net_chunk : own,
                                nccl_step_bytes(Protocol::simple, settings.buffers));
  result.message_bytes = settings.p2p_message_bytes;
  if (result.message_bytes > result.chunk_bytes)
    throw std::invalid_argument("NCCL_CHUNK_SIZE=" + std::to_string(result.message_bytes) +
                                ": a message has at most " + std::to_string(result.chunk_bytes) +
                                " bytes here");
  return result;
}

NcclP2pSplit nccl_p2p_split(std::uint64_t bytes, const NcclP2pChannels& channels, bool single_node,
                            bool over_network) {
  const std::uint64_t own = single_node ? kNvlinkChunk : kNetworkChunk;
  const std::uint64_t chunk = channels.chunk_bytes > 0 ? channels.chunk_bytes : own;
  const std::uint64_t least = single_node ? chunk / 8 : chunk / 2;
  const std::uint64_t most = single_node ? 32 * chunk : chunk;
  NcclP2pSplit split{1, 0, chunk};
  if (bytes == 0) return split;

  auto parts = std::min(static_cast<std::uint64_t>(channels.min_per_peer), ceil_div(bytes, least));
  std::uint64_t part = std::max(least, ceil_div(bytes, parts));
  while (part > most && parts <= static_cast<std::uint64_t>(channels.max_per_peer / 2)) {
    parts *= 2;
    part = ceil_div(bytes, parts);
  }
  split.parts = static_cast<int>(parts);
  split.part_bytes = ceil_div(ceil_div(bytes, parts), kPage) * kPage;
  if (channels.message_bytes > 0)
    split.message_bytes = channels.message_bytes;
  else if (over_network && bytes < chunk)
    split.message_bytes = chunk / 4;
  else if (over_network && bytes < 8 * chunk)
    split.message_bytes = chunk / 2;
  return split;
}

}  // namespace ghostrank
