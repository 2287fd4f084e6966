// How long the compressed pieces of BytePS's roots and servers are on average
// (collectives/schemes/keyed/piece_compression.h), if sizes depend on the data and ranks hold no
// real data: gradients are drawn by their law and go through the codecs of all nodes and of a
// server.
//
//   ranks of a node: draws > sum > codec of its root > payload: a piece
//   server:          sum of the decompressed payloads > its codec > payload: a sum
//
// Memories take some rounds to fill; only the last round counts. Pieces are drawn in lengths of
// powers of two, up to a limit; sizes of other lengths follow from those of the two next to them.
//
// Units: elements. Threading: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "collectives/gradients/gradient_law.h"
#include "collectives/schemes/keyed/piece_compression.h"

namespace ghostrank {

class PieceSizes {
 public:
  // `how` without its function `expected`; ranks: of each node.
  PieceSizes(PieceCompression how, const GradientLaw& law, int nodes, int ranks,
             std::uint64_t seed);

  PayloadSizes of(std::uint64_t elements);

 private:
  const PayloadSizes& known(std::uint64_t elements);  // hold mutex_
  PayloadSizes mean(std::uint64_t elements);
  // Of piece `piece` of every node, and their sum.
  PayloadSizes drawn(std::uint64_t elements, std::uint64_t piece);
  // What the ranks of a node have of it, added up.
  std::vector<float> piece_of_node(int round, int node, std::uint64_t elements,
                                   std::uint64_t piece);
  std::vector<float> sum_of_ranks(std::uint64_t elements, std::uint64_t seed) const;

  const PieceCompression how_;
  const GradientLaw law_;
  const int nodes_, ranks_, rounds_;  // that are drawn
  const std::uint64_t longest_;       // piece that is drawn
  const std::uint64_t kept_;          // of it, in sums_
  const std::uint64_t seed_;
  std::mutex mutex_;
  std::map<std::uint64_t, PayloadSizes> known_;  // by drawn elements
  std::vector<std::vector<float>> sums_;         // of the ranks of a node: by round and node
};

}  // namespace ghostrank
