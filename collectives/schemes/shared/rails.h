// Where the members of a communicator are, and how a call is shared out for schemes that reduce
// inside a node before a switch does.
//
//   node 0   rank 0 = worker of rail 0 ─┐ rank 1 = worker of rail 1 ─┐
//   node 1   rank 2 = worker of rail 0 ─┤ rank 3 = worker of rail 1 ─┤
//                                    switch of rail 0          switch of rail 1
//
// A rail is a NIC of every node. On each node the first rank at a NIC is the rail's worker there;
// ranks that share its NIC are served by it, too. Of an all-reduce, a broadcast or a reduce every
// rail carries an equal part of the tensor; of a reduce-scatter or an all-gather it carries the
// blocks of its ranks.
//
// Units: elements; workers of a rail are numbered like nodes, in the order in which nodes appear.
// Threading: immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "collectives/agent.h"

namespace ghostrank {

class Rails {
 public:
  Rails(int ranks, const Communicator& comm);

  int nodes() const { return static_cast<int>(on_node_.size()); }
  int rails() const { return rails_; }  // the least number of NICs that a node's ranks use
  int node_of(GroupRank rank) const { return node_of_[rank]; }
  int rail_of(GroupRank rank) const { return rail_of_[rank]; }
  const std::vector<GroupRank>& on_node(int node) const { return on_node_[node]; }
  const std::vector<GroupRank>& on_rail(int rail) const { return on_rail_[rail]; }
  GroupRank worker(int rail, int node) const { return workers_[rail][node]; }
  const std::vector<GroupRank>& workers(int rail) const { return workers_[rail]; }

 private:
  int rails_ = 0;
  std::vector<int> node_of_, rail_of_;  // by rank
  std::vector<std::vector<GroupRank>> on_node_, on_rail_, workers_;
};

// Who gives the elements of a chunk, and who takes them.
enum class Reach : std::uint8_t {
  everyone,  // all give, all take: all-reduce
  to_one,    // all give, one takes: reduce-scatter, reduce
  from_one,  // one gives, all others take: all-gather, broadcast
};
// Throws std::logic_error for other functions.
Reach reach_of(Func func);
bool has_reach(Func func);

// What a rail carries of a call, in chunks that each fill a packet (the last of a part less).
class RailShare {
 public:
  RailShare(const Rails& rails, int rail, const Call& call, std::uint64_t per_chunk);

  struct Chunk {
    std::uint64_t first = 0, elements = 0;
    GroupRank rank = kNoRank;  // who takes or gives it alone; kNoRank: nobody does
  };
  std::uint64_t chunks() const { return chunks_; }
  Chunk chunk(std::uint64_t number) const;
  Reach reach() const { return reach_; }

  bool gives(GroupRank r, const Chunk& c) const { return reach_ != Reach::from_one || r == c.rank; }
  bool takes(GroupRank r, const Chunk& c) const {
    return reach_ == Reach::everyone || (r == c.rank) == (reach_ == Reach::to_one);
  }

  // A piece is the content of one note between ranks of a node: chunks that follow each other. A
  // call has at most kMostPieces.
  static constexpr std::uint64_t kMostPieces = 256, kLeastInPiece = 16;
  std::uint64_t pieces() const { return (chunks_ + in_piece_ - 1) / in_piece_; }
  std::uint64_t piece_of(std::uint64_t chunk) const { return chunk / in_piece_; }
  std::uint64_t first_of(std::uint64_t piece) const { return std::min(chunks_, piece * in_piece_); }
  // Elements of a piece: of all its chunks, or of those of rank `of`.
  std::uint64_t elements(std::uint64_t piece, GroupRank of = kNoRank) const;
  // Chunks that are the rank's alone.
  std::uint64_t chunks_of(GroupRank rank) const;
  // The notes with results that the worker of a node has for another rank r there, one a piece. A
  // rank to which all elements belong already takes none.
  std::uint64_t notes_to(GroupRank r) const;

 private:
  std::uint64_t elements_of_block(std::uint64_t piece, std::size_t block) const;
  std::size_t block_of(GroupRank rank) const;  // blocks_.size(): it has none

  Reach reach_;
  std::uint64_t per_chunk_, chunks_ = 0, in_piece_ = 1;
  std::uint64_t first_ = 0, count_ = 0;  // the part of the tensor; of blocks: 0, a block's elements
  GroupRank root_ = kNoRank;
  std::vector<GroupRank> blocks_;  // whose blocks, ascending; empty: a part of the tensor
};

}  // namespace ghostrank
