#include "collectives/schemes/keyed/keyed.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "collectives/schemes/keyed/compressed_reference.h"
#include "collectives/schemes/keyed/nesterov_reference.h"
#include "collectives/schemes/shared/numbers.h"

namespace ghostrank {
namespace {

// The number of the tensor of a call; kUnnamedTensor: it has none that keys can hold.
std::uint32_t tensor_of(const Call& call) {
  return call.tensor == 0 || call.tensor > kUnnamedTensor ? kUnnamedTensor : call.tensor - 1;
}

}  // namespace

KeyedEnds::KeyedEnds(int size, const Communicator& comm, int helpers, const KeyRules& rules)
    : Ends(size), servers_(comm.at_servers), helpers_(helpers), rules_(rules) {
  if (helpers < 1)
    throw std::invalid_argument("it needs servers, and the job has none; set servers.count");
  std::map<std::int32_t, int> number;
  for (GroupRank r = 0; r < size; ++r) {
    const std::int32_t node = comm.node_of.empty() ? r : comm.node_of[r];
    const int n = number.try_emplace(node, static_cast<int>(number.size())).first->second;
    node_of_.push_back(n);
    nodes_.resize(number.size());
    nodes_[n].push_back(r);
  }
  if (static_cast<std::size_t>(rules.racks) > nodes_.size())
    throw std::invalid_argument("each of the " + std::to_string(rules.racks) +
                                " servers is the box of a rack, and there are " +
                                std::to_string(nodes_.size()) +
                                " nodes; use at most as many servers");
}

void KeyedEnds::cut_named() {
  for (const AtServers::Tensor& tensor : named_tensors())
    named_.push_back(std::make_shared<const KeyPieces>(
        cut(static_cast<std::uint32_t>(named_.size()), tensor.elements, tensor.element_bytes)));
}

void KeyedEnds::set_named(std::vector<KeyPieces> pieces) {
  for (KeyPieces& one : pieces) named_.push_back(std::make_shared<const KeyPieces>(std::move(one)));
}

std::shared_ptr<const KeyPieces> KeyedEnds::pieces(const Call& call) const {
  const std::uint64_t elements = call.collective.count;
  const std::uint32_t element_bytes = bytes_of(call.type);
  const std::uint32_t tensor = tensor_of(call);
  if (tensor < named_.size() && servers_.tensors[tensor].elements == elements &&
      servers_.tensors[tensor].element_bytes == element_bytes)
    return named_[tensor];
  return std::make_shared<const KeyPieces>(cut(tensor, elements, element_bytes));
}

std::vector<Helper> KeyedEnds::helpers() const {
  return std::vector<Helper>(helpers_, {PartyKind::server});
}

std::unique_ptr<Agent> KeyedEnds::agent(GroupParty party) const {
  if (party < size()) return key_worker(*this, party);
  const int helper = party - size();
  return is_relay(helper) ? key_relay(*this, helper) : key_server(*this, helper);
}

const PieceCompression* KeyedEnds::compression_of(std::uint32_t key) const {
  const std::uint32_t tensor = key / kMostParts;
  if (tensor >= named_.size()) return nullptr;
  const PieceCompression* how = servers_.compression.get();
  const AtServers::Tensor& whole = servers_.tensors[tensor];
  return whole.elements * whole.element_bytes >= how->min_bytes ? how : nullptr;
}

bool KeyedEnds::exact() const {
  return !servers_.compression || !servers_.compression->method->measure;
}

KeyedEnds::OnWire KeyedEnds::on_wire(const KeyPiece& piece, std::uint32_t element_bytes) const {
  const PieceCompression* how = compression(piece.key);
  if (!how) return {piece.elements * element_bytes, piece.elements * element_bytes};
  const PayloadSizes sizes = how->payloads(piece.elements);
  const std::uint64_t each = bytes_of(how->method->payload);
  return {sizes.piece * each, sizes.sum * each};
}

int KeyedEnds::heir(std::uint32_t key, const std::set<int>& dead) const {
  std::vector<int> alive;
  for (int helper = 0; helper < helpers_; ++helper)
    if (!dead.contains(helper)) alive.push_back(helper);
  if (alive.empty()) return -1;
  return alive[server_of_key(KeyHash::djb2, key, static_cast<int>(alive.size()), 0)];
}

int KeyedEnds::relay_in(int rack, std::uint32_t key) const {
  if (rules_.rack_nics == 0) return -1;
  const std::uint32_t nics = rules_.rack_nics;
  return helpers_ - (1 + static_cast<int>(key % nics)) * racks() + rack;
}

std::string KeyedEnds::refuses(const Call& call) const {
  if (compression(tensor_of(call) * kMostParts) && call.type != DataType::float32)
    return "compresses float32 alone, not " + std::string(name_of(call.type));
  const std::size_t parts = pieces(call)->size();
  if (parts <= kMostParts) return "";
  return "cuts a tensor into " + std::to_string(parts) + " pieces, at most " +
         std::to_string(kMostParts) + " are possible; take larger ones";
}

std::unique_ptr<Expected> KeyedEnds::expected(const Call& call) const {
  const std::uint32_t tensor = tensor_of(call);
  if (steps_weights(tensor, call.type))
    return std::make_unique<NesterovReference>(servers_.optimizer);
  const PieceCompression* how = compression(tensor * kMostParts);
  if (!how) return nullptr;
  return std::make_unique<CompressedReference>(*how, nodes_, *pieces(call), size());
}

bool KeyedEnds::steps_weights(std::uint32_t tensor, DataType type) const {
  return rules_.optimises && tensor < kUnnamedTensor && is_float(type);
}

PieceShard shard_of(const KeyPiece& piece, std::size_t member, std::size_t members) {
  const std::uint64_t begin = piece.elements * member / members,
                      end = piece.elements * (member + 1) / members;
  return {piece.first + begin, end - begin};
}

// What the ranks of a node send each other; notes of one sender to one receiver in one edge.
void KeyedEnds::add_node_traffic(const std::vector<GroupRank>& node, const KeyPieces& pieces,
                                 std::uint32_t element_bytes, std::vector<Edge>& edges) const {
  const std::size_t g = node.size();
  std::vector<std::uint64_t> shards(g);  // elements of all pieces, by member
  for (const KeyPiece& piece : pieces)
    for (std::size_t m = 0; m < g; ++m) shards[m] += shard_of(piece, m, g).elements;
  const std::uint64_t header = rules_.header_bytes, each = pieces.size();
  for (std::size_t from = 0; from < g; ++from)
    for (std::size_t to = 0; to < g; ++to) {
      if (from == to) continue;
      std::uint64_t messages = 2 * each, elements = shards[to] + shards[from];
      if (to == 0) {  // also `ready` and `summed`
        messages += 1 + each;
        elements += shards[from];
      }
      if (from == 0) {  // also `reduce` and `own`
        messages += 2 * each;
        elements += shards[to];
      }
      edges.push_back(
          {node[from], node[to], messages * header + elements * element_bytes, messages});
    }
}

// What roots and servers send each other, and servers of different racks.
void KeyedEnds::add_server_traffic(const KeyPieces& pieces, std::uint32_t element_bytes,
                                   std::vector<Edge>& edges) const {
  struct Owned {
    std::uint64_t pieces = 0;
    OnWire bytes;
  };
  std::vector<Owned> owned(helpers_);
  for (const KeyPiece& piece : pieces) {
    Owned& keys = owned[piece.helper];
    const OnWire one = on_wire(piece, element_bytes);
    ++keys.pieces;
    keys.bytes.push += one.push;
    keys.bytes.result += one.result;
  }
  const std::uint64_t notes = rules_.answer == Answer::result ? 1 : 2;  // each way, per piece
  const auto both_ways = [&](GroupParty pusher, GroupParty owner, const Owned& keys) {
    const std::uint64_t messages = notes * keys.pieces;
    const std::uint64_t headers = messages * rules_.header_bytes;
    edges.push_back({pusher, owner, headers + keys.bytes.push, messages});
    edges.push_back({owner, pusher, headers + keys.bytes.result, messages});
  };
  for (int owner = 0; owner < helpers_; ++owner) {
    if (owned[owner].pieces == 0) continue;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      both_ways(nodes_[n].front(), size() + helper_in(rack_of_node(n), owner), owned[owner]);
    if (rules_.rack_nics > 0) continue;
    for (int rack = 0; rack < racks(); ++rack)
      if (rack != rack_of_helper(owner))
        both_ways(size() + helper_in(rack, owner), size() + owner, owned[owner]);
  }
}

// What boxes exchange through relays: for each piece every other box sends its sum, and the owner's
// relay gets the result once.
void KeyedEnds::add_relayed_traffic(const KeyPieces& pieces, std::uint32_t element_bytes,
                                    std::vector<Edge>& edges) const {
  std::map<std::pair<GroupParty, GroupParty>, Edge> sums;
  const auto add = [&](int from, int to, std::uint64_t elements) {
    Edge& edge = sums.try_emplace({from, to}, Edge{size() + from, size() + to}).first->second;
    edge.bytes += rules_.header_bytes + elements * element_bytes;
    ++edge.messages;
  };
  for (const KeyPiece& piece : pieces) {
    const int home = rack_of_helper(piece.helper), owner = relay_in(home, piece.key);
    for (int rack = 0; rack < racks(); ++rack) {
      if (rack == home) continue;
      const int box = helper_in(rack, piece.helper), relay = relay_in(rack, piece.key);
      for (const auto& [from, to] : {std::pair(box, relay), std::pair(relay, owner)}) {
        add(from, to, piece.elements);
        add(to, from, piece.elements);
      }
      add(owner, piece.helper, piece.elements);
    }
    if (racks() > 1) add(piece.helper, owner, piece.elements);
  }
  for (const auto& [ends, edge] : sums) edges.push_back(edge);
}

std::vector<Ends::Edge> KeyedEnds::traffic(const Call& call) const {
  const std::shared_ptr<const KeyPieces> all = pieces(call);
  std::vector<Edge> edges;
  if (all->empty()) return edges;
  add_server_traffic(*all, bytes_of(call.type), edges);
  if (rules_.rack_nics > 0) add_relayed_traffic(*all, bytes_of(call.type), edges);
  for (const std::vector<GroupRank>& node : nodes_)
    add_node_traffic(node, *all, bytes_of(call.type), edges);
  return edges;
}

void KeyOutbox::send(Io& io, GroupParty to, const Note& note) {
  if (kept_.empty() && io.send(to, note, Carriage::reliable)) return;
  Kept& kept = kept_.emplace_back(Kept{to, note, {}, {}});
  kept.content.assign(note.content.begin(), note.content.end());
  kept.words.assign(note.words.begin(), note.words.end());
}

void KeyOutbox::on_room(Io& io) {
  while (next_ < kept_.size()) {
    Kept& kept = kept_[next_];
    kept.note.content = kept.content;
    kept.note.words = kept.words;
    if (!io.send(kept.to, kept.note, Carriage::reliable)) return;
    kept.content = {};
    ++next_;
  }
  kept_.clear();
  next_ = 0;
}

}  // namespace ghostrank
