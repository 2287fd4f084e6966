// All-reduces through servers that hold keys: what BytePS, PHub and a plain parameter server have
// in common. Each tensor is cut into pieces with a key and a server each (keys.h).
//
//   GPU       |  ready >                  shard to each GPU >      sum of a shard >
//   root GPU  |          > reduce piece                                            > push
//   server    |                                         + of every node  > (acknowledgement)
//   root GPU  |     (> pull)                        > shard to each GPU
//   GPU       |                                                        > shard to each other GPU
//
// The first rank on a node is its root; it alone talks to servers. Where a node has one rank, only
// push, pull and their answers remain. Pieces wait in a queue at the root, the lowest key first,
// until all ranks of the node have made the call and the piece fits the credit (one piece may
// always go), so a piece of a later call may overtake those of earlier calls. A piece gives its
// credit back when the server has acknowledged the push. The credit goes only with Answer::at_once:
// that acknowledgement waits for no other node, so nodes that push in different orders never wait
// for each other. (BytePS's own code gives the credit back even earlier, when the GPUs of the node
// have reduced the piece.)
//
// A server sums a key on one core of its machine. Two rounds of a key may be open: one that is
// summed, and one that slow nodes still pull. Boxes in racks: server.cpp, relay.cpp. Servers that
// die: worker.cpp. Compressed pieces and sums: schemes/keyed/piece_compression.h.
//
// Per piece of p bytes, g ranks on a node: a root sends p to a server and receives p; within the
// node every GPU sends 2 (g - 1) / g p to others, and p / g to the root and back. Of r racks every
// box but the owner's sends p to the owner and receives p: over all keys of a tensor of S bytes a
// box sends 2 (r - 1) / r S to other racks, and receives as much.
//
// Threading: an Ends is immutable; an agent has one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collectives/agent.h"
#include "collectives/schemes/keyed/keys.h"
#include "collectives/schemes/keyed/piece_compression.h"

namespace ghostrank {

enum class Answer : std::uint8_t {
  at_once,      // the server acknowledges a push when it arrives, then the root pulls, and the pull
                // waits until every node has pushed (BytePS)
  when_summed,  // it acknowledges a push when every node has pushed, then the root pulls (MXNet's
                // synchronous parameter server)
  result        // it sends the result unasked (PHub)
};

struct KeyRules {
  Answer answer = Answer::at_once;
  // After the last push the server steps the weights and the momentum of a key
  // (schemes/keyed/nesterov.h), both 0 at first, and answers with the weights in the type of the
  // gradients. Calls that name no tensor, and those of integers, remain sums.
  bool optimises = false;
  bool schedules = false;          // a core takes the key with the fewest pushes so far, not the
                                   // push that came first
  std::uint64_t credit_bytes = 0;  // of a node's pieces on their way to servers; 0: unlimited
  std::uint64_t header_bytes = 0;  // of a note
  int racks = 1;                   // more than 1: as many as machines with servers; Answer::result
  int rack_nics = 0;               // of each box, for other racks alone; 0: every NIC is for both
  // Answer::at_once: a pull waits for the pushes of all nodes. False (BytePS's asynchronous mode):
  // a pull waits for its root's own push alone, and the server adds every push to its store.
  bool waits = true;
  Picoseconds timeout_ps = 0;  // Answer::at_once: silence after which a root asks a server whether
                               // it is alive (server_watch.h); 0: never
  bool elastic = false;        // the others take the keys of a dead server; else the run ends
};

class KeyedEnds : public Ends {
 public:
  // Throws std::invalid_argument if there are no servers, or more racks than nodes.
  KeyedEnds(int size, const Communicator& comm, int helpers, const KeyRules& rules);

  std::vector<Helper> helpers() const override;
  std::unique_ptr<Agent> agent(GroupParty party) const override;
  std::vector<Edge> traffic(const Call& call) const override;
  bool exact() const override;  // false: the data decide how long compressed pieces are
  std::uint64_t overhead_bytes() const override { return rules_.header_bytes; }
  std::string refuses(const Call& call) const override;
  std::unique_ptr<Expected> expected(const Call& call) const override;
  // Whether servers step the weights of a tensor, as keys number it, whose gradients are of `type`.
  bool steps_weights(std::uint32_t tensor, DataType type) const;

  const KeyRules& rules() const { return rules_; }
  // Ranks of each node, by group rank; the first is the root.
  const std::vector<std::vector<GroupRank>>& nodes() const { return nodes_; }
  const std::vector<GroupRank>& node_with(GroupRank rank) const { return nodes_[node_of_[rank]]; }
  std::shared_ptr<const KeyPieces> pieces(const Call& call) const;

  int racks() const { return rules_.racks; }
  int rack_of_node(std::size_t node) const {
    return static_cast<int>(node * static_cast<std::size_t>(racks()) / nodes_.size());
  }
  int rack_of(GroupRank rank) const {
    return rack_of_node(static_cast<std::size_t>(node_of_[rank]));
  }
  int rack_of_helper(int helper) const { return helper % racks(); }
  // The helper that sums the owner's keys for a rack, on the same NIC of that rack's box.
  int helper_in(int rack, int owner) const { return owner - rack_of_helper(owner) + rack; }
  // The helper that relays the notes of a key between a rack's box and other racks; -1: none.
  int relay_in(int rack, std::uint32_t key) const;
  bool is_relay(int helper) const {
    return rules_.rack_nics > 0 && helper >= helpers_ - rules_.rack_nics * racks();
  }
  // The helper that owns a key, if there are racks.
  virtual int owner_of(std::uint32_t /*key*/) const { return 0; }
  // The core on which a helper sums the key; -1: the one that has least to sum.
  virtual int core_of(std::uint32_t /*key*/) const { return -1; }
  int cores() const { return servers_.cores; }
  // How pieces of a key travel; null: as they are. A key that is compressed has a piece_of().
  const PieceCompression* compression(std::uint32_t key) const {
    return servers_.compression == nullptr ? nullptr : compression_of(key);
  }
  const KeyPiece& piece_of(std::uint32_t key) const {
    return (*named_[key / kMostParts])[key % kMostParts];
  }
  // The server that takes a key in place of dead ones; -1: all are dead.
  int heir(std::uint32_t key, const std::set<int>& dead) const;
  const Nesterov& optimizer() const { return servers_.optimizer; }
  // Bytes that a server holds of a key of `bytes`, besides weights, if `pushers` parties push it:
  // the sum in progress and the one that is pulled.
  virtual std::uint64_t bytes_held(std::uint64_t bytes, std::size_t /*pushers*/) const {
    return 2 * bytes;
  }

 protected:
  // Pieces of a tensor; their keys are tensor << 16 | number of the piece.
  virtual KeyPieces cut(std::uint32_t tensor, std::uint64_t elements,
                        std::uint32_t element_bytes) const = 0;
  // Tensors that keys can hold: later ones count as unnamed.
  std::span<const AtServers::Tensor> named_tensors() const {
    const std::span<const AtServers::Tensor> all = servers_.tensors;
    return all.first(std::min<std::size_t>(all.size(), kUnnamedTensor));
  }
  // Constructors call one of these once: cuts the named tensors, or says how they are cut.
  void cut_named();
  void set_named(std::vector<KeyPieces> pieces);
  const AtServers& servers() const { return servers_; }

 private:
  void add_server_traffic(const KeyPieces& pieces, std::uint32_t element_bytes,
                          std::vector<Edge>& edges) const;
  void add_relayed_traffic(const KeyPieces& pieces, std::uint32_t element_bytes,
                           std::vector<Edge>& edges) const;
  void add_node_traffic(const std::vector<GroupRank>& node, const KeyPieces& pieces,
                        std::uint32_t element_bytes, std::vector<Edge>& edges) const;

  const PieceCompression* compression_of(std::uint32_t key) const;

  // Bytes of a piece without headers, to a server and back.
  struct OnWire {
    std::uint64_t push = 0, result = 0;
  };
  OnWire on_wire(const KeyPiece& piece, std::uint32_t element_bytes) const;

  AtServers servers_;
  int helpers_;
  KeyRules rules_;
  std::vector<int> node_of_;
  std::vector<std::vector<GroupRank>> nodes_;
  std::vector<std::shared_ptr<const KeyPieces>> named_;  // by tensor
};

// The part of a piece that rank `member` of `members` on a node reduces.
struct PieceShard {
  std::uint64_t first = 0, elements = 0;  // within the tensor
};
PieceShard shard_of(const KeyPiece& piece, std::size_t member, std::size_t members);

// Kinds of notes. Note::index: between a root and servers a key, else the number of the piece.
enum class KeyTag : std::uint8_t {
  ready,   // GPU to root: has made the call
  reduce,  // root to GPU: send the piece's shards
  share,   // GPU to GPU: its contribution to the receiver's shard
  summed,  // GPU to root: the node's sum of its shard
  push,
  pushed,  // acknowledgement
  pull,
  result,
  own,     // root to GPU: the result of its shard
  gather,  // GPU to GPU: the result of the sender's shard
  probe,   // root to server: is it alive?
  alive,   // it is
  moved    // heir to root: the key was a dead server's (words: its number)
};

std::unique_ptr<Agent> key_worker(const KeyedEnds& ends, GroupRank rank);
std::unique_ptr<Agent> key_server(const KeyedEnds& ends, int helper);
std::unique_ptr<Agent> key_relay(const KeyedEnds& ends, int helper);

// Sends notes in order; keeps those that find no room, for on_room().
class KeyOutbox {
 public:
  void send(Io& io, GroupParty to, const Note& note);
  void on_room(Io& io);

 private:
  struct Kept {
    GroupParty to;
    Note note;
    std::vector<std::byte> content, words;
  };
  std::vector<Kept> kept_;
  std::size_t next_ = 0;
};

}  // namespace ghostrank
