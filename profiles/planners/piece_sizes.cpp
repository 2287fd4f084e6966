#include "profiles/planners/piece_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "collectives/dice.h"

namespace ghostrank {
namespace {

// Of larger numbers the sums look alike, and sizes do not depend on their scale.
constexpr int kMostNodes = 16, kMostRanks = 8;
// At most so many elements are drawn for one length, which takes some tenths of a second.
constexpr std::uint64_t kMostDrawn = 1 << 22, kLeastDrawn = 1 << 12;
constexpr int kRoundsOfMemory = 4;
constexpr std::uint32_t kKey = 0;

std::uint64_t in_proportion(std::uint64_t size, std::uint64_t drawn, std::uint64_t elements) {
  return static_cast<std::uint64_t>(std::llround(
      static_cast<double>(size) * static_cast<double>(elements) / static_cast<double>(drawn)));
}

}  // namespace

PieceSizes::PieceSizes(PieceCompression how, const GradientLaw& law, int nodes, int ranks,
                       std::uint64_t seed)
    : how_(std::move(how)),
      law_(law),
      nodes_(std::min(nodes, kMostNodes)),
      ranks_(std::min(ranks, kMostRanks)),
      rounds_(how_.memory == Memory::none ? 1 : kRoundsOfMemory),
      seed_(seed) {}

PayloadSizes PieceSizes::of(std::uint64_t elements) {
  const std::uint64_t most = kMostDrawn / static_cast<std::uint64_t>(nodes_ * ranks_ * rounds_);
  const std::uint64_t part =
      std::min(std::bit_ceil(elements), std::max(kLeastDrawn, std::bit_floor(most)));
  const std::lock_guard lock(mutex_);
  auto known = known_.find(part);
  if (known == known_.end()) known = known_.emplace(part, drawn(part)).first;
  return {in_proportion(known->second.piece, part, elements),
          in_proportion(known->second.sum, part, elements)};
}

PayloadSizes PieceSizes::drawn(std::uint64_t elements) const {
  const std::uint64_t element = bytes_of(how_.method->payload);
  std::vector<PieceCodec> roots;
  for (int node = 0; node < nodes_; ++node)
    roots.emplace_back(how_, how_.memory, kKey, node, elements);
  PieceCodec server(how_, how_.server_memory(), kKey, nodes_, elements);
  std::uint64_t draws = checking::mix(seed_ + elements);
  std::vector<float> gradient(elements);
  const auto add = [](std::vector<float>& sum, const std::vector<float>& more) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  };
  PayloadSizes sizes;
  for (int round = 0; round < rounds_; ++round) {
    std::uint64_t pushed = 0;
    std::vector<float> sum(elements);
    for (PieceCodec& root : roots) {
      std::vector<float> of_node(elements);
      for (int rank = 0; rank < ranks_; ++rank) {
        law_.draw(++draws, gradient);
        add(of_node, gradient);
      }
      const std::vector<std::byte> payload = root.compress(std::move(of_node));
      pushed += payload.size() / element;
      add(sum, PieceCodec::decompressed(how_, kKey, static_cast<std::uint64_t>(round), payload,
                                        elements));
    }
    sizes = {pushed / static_cast<std::uint64_t>(nodes_),
             server.compress(std::move(sum)).size() / element};
  }
  return sizes;
}

}  // namespace ghostrank
