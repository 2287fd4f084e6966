// The results of one tensor's calls where its pieces and their sums travel compressed
// (schemes/keyed/piece_compression.h), to check servers by. Nodes are added one after the other, in
// order.
//
// Units: elements. Threading: one owner; refers to its arguments.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "collectives/agent.h"
#include "collectives/schemes/keyed/keys.h"
#include "collectives/schemes/keyed/piece_compression.h"

namespace ghostrank {

class CompressedReference final : public Expected {
 public:
  // `nodes`: the ranks of each. `servers`: number of the first server among the ends.
  CompressedReference(const PieceCompression& how, const std::vector<std::vector<GroupRank>>& nodes,
                      KeyPieces pieces, GroupParty servers)
      : how_(how), nodes_(nodes), pieces_(std::move(pieces)), servers_(servers) {}

  std::span<const float> next(std::span<const std::vector<float>> given) override {
    result_.resize(given.front().size());
    for (const KeyPiece& piece : pieces_) {
      std::vector<float> sum(piece.elements);
      for (const std::vector<GroupRank>& node : nodes_) {
        std::vector<float> of_node(piece.elements);
        for (const GroupRank rank : node)
          add(of_node, given[static_cast<std::size_t>(rank)].data() + piece.first);
        add(sum, sent(piece, node.front(), how_.memory, std::move(of_node)).data());
      }
      const std::vector<float> back =
          sent(piece, servers_ + piece.helper, how_.server_memory(), std::move(sum));
      std::copy(back.begin(), back.end(),
                result_.begin() + static_cast<std::ptrdiff_t>(piece.first));
    }
    ++round_;
    return result_;
  }

 private:
  static void add(std::vector<float>& sum, const float* more) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }

  // The values of an end as others decompress them.
  std::vector<float> sent(const KeyPiece& piece, GroupParty end, Memory memory,
                          std::vector<float> values) {
    PieceCodec& codec =
        codecs_.try_emplace({piece.key, end}, how_, memory, piece.key, end, piece.elements)
            .first->second;
    const std::vector<std::byte> payload = codec.compress(std::move(values));
    return PieceCodec::decompressed(how_, piece.key, round_, payload, piece.elements);
  }

  const PieceCompression& how_;
  const std::vector<std::vector<GroupRank>>& nodes_;
  const KeyPieces pieces_;
  const GroupParty servers_;
  std::map<std::pair<std::uint32_t, GroupParty>, PieceCodec> codecs_;
  std::vector<float> result_;
  std::uint64_t round_ = 0;
};

}  // namespace ghostrank
