#include "collectives/schemes/shared/rails.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

namespace ghostrank {

Rails::Rails(int ranks, const Communicator& comm) : rail_of_(ranks) {
  std::map<std::int32_t, int> number;  // of nodes, in order of appearance
  for (GroupRank r = 0; r < ranks; ++r) {
    const std::int32_t node = comm.node_of.empty() ? r : comm.node_of.at(r);
    node_of_.push_back(number.try_emplace(node, static_cast<int>(number.size())).first->second);
    on_node_.resize(number.size());
    on_node_[node_of_.back()].push_back(r);
  }
  std::vector<std::vector<GroupRank>> first;  // by node: the first rank at each NIC
  for (const std::vector<GroupRank>& local : on_node_) {
    std::map<std::int32_t, int> rail;  // by NIC, in order of appearance
    std::vector<GroupRank>& workers = first.emplace_back();
    for (std::size_t i = 0; i < local.size(); ++i) {
      const std::int32_t nic =
          comm.nic_of.empty() ? static_cast<std::int32_t>(i) : comm.nic_of.at(local[i]);
      const auto [at, fresh] = rail.try_emplace(nic, static_cast<int>(rail.size()));
      rail_of_[local[i]] = at->second;
      if (fresh) workers.push_back(local[i]);
    }
    const auto nics = static_cast<int>(workers.size());
    rails_ = rails_ == 0 ? nics : std::min(rails_, nics);
  }
  on_rail_.resize(rails_);
  workers_.resize(rails_);
  for (GroupRank r = 0; r < ranks; ++r) {
    rail_of_[r] %= rails_;  // NICs that other nodes lack share the rails that there are
    on_rail_[rail_of_[r]].push_back(r);
  }
  for (int rail = 0; rail < rails_; ++rail)
    for (const std::vector<GroupRank>& workers : first) workers_[rail].push_back(workers[rail]);
}

bool has_reach(Func func) {
  return reduces(func) || func == Func::all_gather || func == Func::broadcast;
}

Reach reach_of(Func func) {
  if (func == Func::all_reduce) return Reach::everyone;
  if (func == Func::reduce_scatter || func == Func::reduce) return Reach::to_one;
  if (func == Func::all_gather || func == Func::broadcast) return Reach::from_one;
  throw std::logic_error("no chunks of a " + std::string(name_of(func)));
}

RailShare::RailShare(const Rails& rails, int rail, const Call& call, std::uint64_t per_chunk)
    : reach_(reach_of(call.collective.func)), per_chunk_(per_chunk) {
  const Collective& c = call.collective;
  const auto chunks_in = [&](std::uint64_t n) { return (n + per_chunk - 1) / per_chunk; };
  if (c.func == Func::reduce_scatter || c.func == Func::all_gather) {
    blocks_ = rails.on_rail(rail);
    count_ = c.count;
    chunks_ = blocks_.size() * chunks_in(count_);
  } else {
    const std::uint64_t parts = rails.rails();
    const std::uint64_t part = chunks_in((c.count + parts - 1) / parts) * per_chunk;
    first_ = std::min(c.count, rail * part);
    count_ = std::min(part, c.count - first_);
    chunks_ = chunks_in(count_);
    if (reach_ != Reach::everyone) root_ = c.root;
  }
  in_piece_ = std::max(kLeastInPiece, (chunks_ + kMostPieces - 1) / kMostPieces);
}

// The blocks take turns, so that their ranks send and receive evenly.
RailShare::Chunk RailShare::chunk(std::uint64_t number) const {
  const std::uint64_t turns = std::max<std::uint64_t>(1, blocks_.size());
  const std::uint64_t offset = number / turns * per_chunk_;
  const GroupRank rank = blocks_.empty() ? root_ : blocks_[number % turns];
  const std::uint64_t start = blocks_.empty() ? first_ : rank * count_;
  return {start + offset, std::min(per_chunk_, count_ - offset), rank};
}

std::uint64_t RailShare::elements_of_block(std::uint64_t piece, std::size_t block) const {
  const std::uint64_t turns = std::max<std::uint64_t>(1, blocks_.size());
  const auto offset = [&](std::uint64_t chunk) {
    return std::min(count_, (chunk + turns - 1 - block) / turns * per_chunk_);
  };
  return offset(first_of(piece + 1)) - offset(first_of(piece));
}

std::size_t RailShare::block_of(GroupRank rank) const {
  const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), rank);
  return at != blocks_.end() && *at == rank ? static_cast<std::size_t>(at - blocks_.begin())
                                            : blocks_.size();
}

std::uint64_t RailShare::elements(std::uint64_t piece, GroupRank of) const {
  if (blocks_.empty()) return of == kNoRank || of == root_ ? elements_of_block(piece, 0) : 0;
  if (of != kNoRank) {
    const std::size_t block = block_of(of);
    return block < blocks_.size() ? elements_of_block(piece, block) : 0;
  }
  // All chunks are full but those of the last turn.
  const std::uint64_t begin = first_of(piece), end = first_of(piece + 1);
  const std::uint64_t full = chunks_ - blocks_.size(), turns = chunks_ / blocks_.size();
  const std::uint64_t before = begin < full ? std::min(end, full) - begin : 0;
  return before * per_chunk_ + (end - begin - before) * (count_ - (turns - 1) * per_chunk_);
}

std::uint64_t RailShare::chunks_of(GroupRank rank) const {
  if (rank == kNoRank) return 0;
  if (blocks_.empty()) return rank == root_ ? chunks_ : 0;
  return block_of(rank) < blocks_.size() ? chunks_ / blocks_.size() : 0;
}

std::uint64_t RailShare::notes_to(GroupRank r) const {
  if (reach_ == Reach::everyone) return pieces();
  if (reach_ == Reach::from_one) return chunks_of(r) < chunks_ ? pieces() : 0;
  std::uint64_t notes = 0;
  for (std::uint64_t piece = 0; piece < pieces(); ++piece) notes += elements(piece, r) > 0;
  return notes;
}

}  // namespace ghostrank
