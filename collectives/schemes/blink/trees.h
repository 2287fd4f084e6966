// The trees of a call of Blink (schemes/blink.h): who is above and below whom, and which part of
// the data each tree carries.
//
// Units: elements. Threading: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

class BlinkTrees {
 public:
  // Throws std::invalid_argument as make_blink() does.
  BlinkTrees(const Collective& c, const Communicator& comm);

  int size() const { return static_cast<int>(trees_.size()); }
  const Block& share(int tree) const { return trees_[tree].share; }
  GroupRank parent(int tree, GroupRank r) const;  // kNoRank: r is the root
  int children(int tree, GroupRank r) const;
  GroupRank child(int tree, GroupRank r, int i) const;
  int depth() const { return depth_; }  // links from top to bottom, of the deepest

 private:
  // Trees inside every node, which several trees share.
  struct Local {
    std::vector<GroupRank> parent;  // by rank; kNoRank at the root of each node's tree
    std::vector<int> first;         // of its children in `child`, by rank
    std::vector<GroupRank> child;
    std::vector<GroupRank> root;  // by node
  };
  struct Tree {
    int local;
    int node;       // that of the hub
    GroupRank hub;  // the roots of the other nodes' trees are its children
    Block share;
  };
  // A piece of a partition, with which every node deals by one of its trees; ends at `end` of 1.
  struct Piece {
    double end;
    std::vector<std::vector<int>> parents;  // by node and place
  };

  void find_nodes(const Communicator& comm);
  std::vector<Piece> pieces(const Communicator& comm, int partition);
  int root_place(int node, int partition) const;
  int hub_place(int node, int partition) const;
  int add_local(const std::vector<std::vector<int>>& parents);
  bool rooted() const { return func_ != Func::all_reduce; }

  Func func_;
  GroupRank root_;
  std::vector<int> node_, place_;                // by rank
  std::vector<std::vector<GroupRank>> members_;  // by node
  bool lone_with_links_ = false;
  int depth_ = 0;
  std::vector<Local> locals_;
  std::vector<Tree> trees_;
};

}  // namespace ghostrank
