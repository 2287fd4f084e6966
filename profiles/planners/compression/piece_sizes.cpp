#include "profiles/planners/compression/piece_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "collectives/common/dice.h"

namespace ghostrank {
namespace {

// At most so many nodes, and ranks of a node, are drawn: gradients of more add up to the same
// distribution on another scale, and sizes do not depend on the scale.
constexpr int kMostNodes = 8, kMostRanks = 2;
// A piece of up to this length is drawn whole, because its largest element decides much; if it is
// shorter, several are drawn. All draws together take a second or two.
constexpr std::uint64_t kMostDrawn = 1 << 20, kMostPieces = 16;
constexpr int kRoundsOfMemory = 3;

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
  const std::uint64_t drawn = std::min(std::bit_ceil(elements), kMostDrawn);
  const std::lock_guard lock(mutex_);
  auto known = known_.find(drawn);
  if (known == known_.end()) known = known_.emplace(drawn, mean(drawn)).first;
  return {in_proportion(known->second.piece, drawn, elements),
          in_proportion(known->second.sum, drawn, elements)};
}

PayloadSizes PieceSizes::mean(std::uint64_t elements) const {
  const std::uint64_t pieces = std::clamp<std::uint64_t>(kMostDrawn / elements, 1, kMostPieces);
  PayloadSizes sum;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    const PayloadSizes one = drawn(elements, checking::mix(seed_ + elements) + piece);
    sum.piece += one.piece;
    sum.sum += one.sum;
  }
  return {sum.piece / pieces, sum.sum / pieces};
}

PayloadSizes PieceSizes::drawn(std::uint64_t elements, std::uint64_t seed) const {
  const std::uint64_t element = bytes_of(how_.method->payload);
  const auto key = static_cast<std::uint32_t>(checking::mix(seed));  // codecs draw by it
  std::vector<PieceCodec> roots;
  for (int node = 0; node < nodes_; ++node)
    roots.emplace_back(how_, how_.memory, key, node, elements);
  PieceCodec server(how_, how_.server_memory(), key, nodes_, elements);
  std::vector<float> gradient(elements);
  const auto add = [](std::vector<float>& sum, const std::vector<float>& more) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  };
  std::uint64_t draw = 0;
  PayloadSizes sizes;
  for (int round = 0; round < rounds_; ++round) {
    std::uint64_t pushed = 0;
    std::vector<float> sum(elements);
    for (PieceCodec& root : roots) {
      std::vector<float> of_node(elements);
      for (int rank = 0; rank < ranks_; ++rank) {
        law_.draw(checking::mix(seed + ++draw), gradient);
        add(of_node, gradient);
      }
      const std::vector<std::byte> payload = root.compress(std::move(of_node));
      pushed += payload.size() / element;
      add(sum, PieceCodec::decompressed(how_, key, static_cast<std::uint64_t>(round), payload,
                                        elements));
    }
    sizes = {pushed / static_cast<std::uint64_t>(nodes_),
             server.compress(std::move(sum)).size() / element};
  }
  return sizes;
}

}  // namespace ghostrank
