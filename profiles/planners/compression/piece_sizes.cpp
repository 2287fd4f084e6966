#include "profiles/planners/compression/piece_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "collectives/common/dice.h"

namespace ghostrank {
namespace {

// Gradients of all ranks are drawn, because sums of more of them are larger, and nearer to a normal
// law. So many draws take half a second, and are made once in each round: pieces of all lengths are
// cut out of the nodes' sums. Sums beyond kMostKept (64 MiB) are drawn for each length anew.
constexpr std::uint64_t kMostDraws = 1 << 25, kMostKept = 1 << 24;
// A piece of up to the longest length is drawn whole, because its largest element decides much; if
// it is shorter, several are drawn. So many ranks that not even the least length is left of the
// draws are not drawn.
constexpr std::uint64_t kLongest = 1 << 20, kLeast = 1 << 12, kMostPieces = 16;
constexpr int kRoundsOfMemory = 3;

// Sizes of pieces of two lengths, and what lies between them or beyond, by the power of the length
// that fits both: 1 where sizes are in proportion, a half where methods scale by the L2 norm.
struct Measured {
  std::uint64_t elements = 0, size = 0;
};
std::uint64_t by_power(const Measured& a, const Measured& b, std::uint64_t elements) {
  if (elements == b.elements || a.elements == b.elements || a.size == 0 || b.size == 0)
    return static_cast<std::uint64_t>(
        std::llround(static_cast<double>(b.size) * static_cast<double>(elements) /
                     static_cast<double>(b.elements)));
  const auto log_of = [](std::uint64_t above, std::uint64_t below) {
    return std::log2(static_cast<double>(above) / static_cast<double>(below));
  };
  const double power = log_of(b.size, a.size) / log_of(b.elements, a.elements);
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(b.size) * std::exp2(power * log_of(elements, b.elements))));
}

}  // namespace

PieceSizes::PieceSizes(PieceCompression how, const GradientLaw& law, int nodes, int ranks,
                       std::uint64_t seed)
    : how_(std::move(how)),
      law_(law),
      nodes_(std::clamp(static_cast<int>(kMostDraws / kLeast) / ranks, 1, nodes)),
      ranks_(ranks),
      rounds_(how_.memory == Memory::none ? 1 : kRoundsOfMemory),
      longest_(std::min(kLongest, std::bit_floor(kMostDraws / static_cast<std::uint64_t>(nodes_) /
                                                 static_cast<std::uint64_t>(ranks_)))),
      kept_(std::min(longest_, std::bit_floor(kMostKept / static_cast<std::uint64_t>(nodes_) /
                                              static_cast<std::uint64_t>(rounds_)))),
      seed_(seed) {}

PayloadSizes PieceSizes::of(std::uint64_t elements) {
  const std::uint64_t longer = std::min(std::bit_ceil(elements), longest_);
  const std::uint64_t shorter =
      elements == longer ? longer : std::max<std::uint64_t>(1, longer / 2);
  const std::lock_guard lock(mutex_);
  const PayloadSizes a = known(shorter), b = known(longer);
  return {by_power({shorter, a.piece}, {longer, b.piece}, elements),
          by_power({shorter, a.sum}, {longer, b.sum}, elements)};
}

const PayloadSizes& PieceSizes::known(std::uint64_t elements) {
  auto found = known_.find(elements);
  if (found == known_.end()) found = known_.emplace(elements, mean(elements)).first;
  return found->second;
}

PayloadSizes PieceSizes::mean(std::uint64_t elements) {
  const std::uint64_t whole = elements <= kept_ ? kept_ : longest_;
  const std::uint64_t pieces = std::clamp<std::uint64_t>(whole / elements, 1, kMostPieces);
  PayloadSizes sum;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    const PayloadSizes one = drawn(elements, piece);
    sum.piece += one.piece;
    sum.sum += one.sum;
  }
  return {sum.piece / pieces, sum.sum / pieces};
}

std::vector<float> PieceSizes::sum_of_ranks(std::uint64_t elements, std::uint64_t seed) const {
  std::vector<float> sum(elements), gradient(elements);
  for (int rank = 0; rank < ranks_; ++rank) {
    law_.draw(checking::mix(seed + static_cast<std::uint64_t>(rank)), gradient);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
  }
  return sum;
}

std::vector<float> PieceSizes::piece_of_node(int round, int node, std::uint64_t elements,
                                             std::uint64_t piece) {
  const auto number = static_cast<std::uint64_t>(round) * static_cast<std::uint64_t>(nodes_) +
                      static_cast<std::uint64_t>(node);
  const auto ranks = static_cast<std::uint64_t>(ranks_);
  if (elements > kept_)
    return sum_of_ranks(elements, checking::mix(seed_ + elements + piece) + number * ranks);
  while (sums_.size() <= number)
    sums_.push_back(sum_of_ranks(kept_, checking::mix(seed_) + sums_.size() * ranks));
  const float* const begin = sums_[number].data() + piece * elements;
  return {begin, begin + elements};
}

PayloadSizes PieceSizes::drawn(std::uint64_t elements, std::uint64_t piece) {
  const std::uint64_t element = bytes_of(how_.method->payload);
  // Codecs draw by it.
  const auto key =
      static_cast<std::uint32_t>(checking::mix(checking::mix(seed_ + elements) + piece));
  std::vector<PieceCodec> roots;
  for (int node = 0; node < nodes_; ++node)
    roots.emplace_back(how_, how_.memory, key, node, elements);
  PieceCodec server(how_, how_.server_memory(), key, nodes_, elements);
  PayloadSizes sizes;
  for (int round = 0; round < rounds_; ++round) {
    std::uint64_t pushed = 0;
    std::vector<float> sum(elements);
    for (int node = 0; node < nodes_; ++node) {
      const std::vector<std::byte> payload = roots[static_cast<std::size_t>(node)].compress(
          piece_of_node(round, node, elements, piece));
      pushed += payload.size() / element;
      const std::vector<float> received =
          PieceCodec::decompressed(how_, key, static_cast<std::uint64_t>(round), payload, elements);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += received[i];
    }
    sizes = {pushed / static_cast<std::uint64_t>(nodes_),
             server.compress(std::move(sum)).size() / element};
  }
  return sizes;
}

}  // namespace ghostrank
