// An MSCCL algorithm as a schedule: a threadblock is an actor, and its steps are the actor's steps.
// See msccl.h.
//
//   chunk j of the input or output      elements of the work buffer (out of place: of the input
//                                       buffer), padded at the end of a block; see append_blocks()
//   scratch                             s_chunks chunks, then per threadblock room for the largest
//                                       sum that one of its `rrs` steps does not store
//
// Threading: immutable.
#include "collectives/exchange/msccl.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace ghostrank {
namespace {

struct OpTraits {
  std::string_view name;
  bool sends, receives, source, destination;
};
constexpr std::array<OpTraits, kMscclOps> kOps{{{"s", true, false, true, false},
                                                {"r", false, true, false, true},
                                                {"rcs", true, true, false, true},
                                                {"rrs", true, true, true, false},
                                                {"rrc", false, true, true, true},
                                                {"rrcs", true, true, true, true},
                                                {"cpy", false, false, true, true},
                                                {"re", false, false, true, true},
                                                {"nop", false, false, false, false}}};
const OpTraits& traits(MscclOp op) { return kOps[static_cast<std::size_t>(op)]; }

bool reduces_received(MscclOp op) {
  return op == MscclOp::rrs || op == MscclOp::rrc || op == MscclOp::rrcs;
}

class MscclSchedule final : public Schedule {
 public:
  MscclSchedule(std::shared_ptr<const MscclAlgorithm> algorithm, const Collective& c,
                FlowControl flow)
      : Schedule(c, flow, algorithm->protocol),
        algorithm_(std::move(algorithm)),
        chunks_(chunks_per_block(*algorithm_)),
        chunk_elements_((c.count + chunks_ - 1) / chunks_),
        padded_(c.count % chunks_ != 0) {
    for (const MscclRank& rank : algorithm_->ranks) rooms_.push_back(rooms_of(rank));
    for (const MscclRank& rank : algorithm_->ranks) receivers_.push_back(receivers_of(rank));
  }

  int actors(GroupRank r) const override { return static_cast<int>(rank(r).threadblocks.size()); }
  Actor actor(GroupRank r, int a) const override {
    return {block(r, a).channel, static_cast<int>(block(r, a).steps.size())};
  }
  Step step(GroupRank r, int a, int k) const override;
  int receiver(GroupRank dst, int channel, GroupRank src) const override;
  void pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const override;
  bool out_of_place() const override { return !algorithm_->in_place; }
  std::uint64_t scratch_elements(GroupRank r) const override {
    return rooms_[r].back() * chunk_elements_;
  }
  StepOf dependency(GroupRank r, int a, int k) const override {
    return {at(r, a, k).depends_on, at(r, a, k).depends_step};
  }
  void locals(GroupRank r, int a, int k, std::vector<Local>& out) const override;

 private:
  using Receiver = std::pair<std::pair<int, GroupRank>, int>;  // (channel, source) -> threadblock

  const MscclRank& rank(GroupRank r) const { return algorithm_->ranks[r]; }
  const MscclThreadblock& block(GroupRank r, int a) const { return rank(r).threadblocks[a]; }
  const MscclStep& at(GroupRank r, int a, int k) const { return block(r, a).steps[k]; }
  static std::vector<std::uint64_t> rooms_of(const MscclRank& rank);
  static std::vector<Receiver> receivers_of(const MscclRank& rank);
  MscclChunkRef received_at(GroupRank r, int a, const MscclStep& step) const;
  Block chunk(GroupRank r, MscclChunkRef ref) const;
  bool in_one_block(const MscclChunkRef& ref, std::uint32_t count) const;
  Block whole(GroupRank r, const MscclChunkRef& ref, std::uint32_t count) const;
  void append_blocks(GroupRank r, MscclChunkRef ref, std::uint32_t count,
                     std::vector<Block>& out) const;

  std::shared_ptr<const MscclAlgorithm> algorithm_;
  std::uint32_t chunks_;  // per block
  std::uint64_t chunk_elements_;
  bool padded_;
  // By rank: the begin of each threadblock's room in scratch, in chunks, and the end of the last
  // one.
  std::vector<std::vector<std::uint64_t>> rooms_;
  std::vector<std::vector<Receiver>> receivers_;  // by rank, sorted
};

std::vector<std::uint64_t> MscclSchedule::rooms_of(const MscclRank& rank) {
  std::vector<std::uint64_t> rooms{rank.scratch_chunks};
  for (const MscclThreadblock& tb : rank.threadblocks) {
    std::uint64_t largest = 0;
    for (const MscclStep& step : tb.steps)
      if (step.op == MscclOp::rrs) largest = std::max<std::uint64_t>(largest, step.count);
    rooms.push_back(rooms.back() + largest);
  }
  return rooms;
}

std::vector<MscclSchedule::Receiver> MscclSchedule::receivers_of(const MscclRank& rank) {
  std::vector<Receiver> list;
  for (std::size_t i = 0; i < rank.threadblocks.size(); ++i) {
    const MscclThreadblock& tb = rank.threadblocks[i];
    if (tb.recv != kNoRank) list.push_back({{tb.channel, tb.recv}, static_cast<int>(i)});
  }
  std::sort(list.begin(), list.end());
  return list;
}

int MscclSchedule::receiver(GroupRank dst, int channel, GroupRank src) const {
  const auto& list = receivers_[dst];
  const Receiver key{{channel, src}, 0};
  const auto found = std::lower_bound(list.begin(), list.end(), key);
  return found != list.end() && found->first == key.first ? found->second : 0;
}

// The chunks that take the received data; the sum of an `rrs` goes to the threadblock's own room.
MscclChunkRef MscclSchedule::received_at(GroupRank r, int a, const MscclStep& step) const {
  if (step.op != MscclOp::rrs) return step.destination;
  const std::uint64_t room = rooms_[r][a];
  return {MscclBuffer::scratch, static_cast<std::uint32_t>(room)};
}

// The elements of one chunk, without padding.
Block MscclSchedule::chunk(GroupRank r, MscclChunkRef ref) const {
  if (ref.buffer == MscclBuffer::scratch)
    return {ref.chunk * chunk_elements_, chunk_elements_, Buffer::scratch};
  const bool input = ref.buffer == MscclBuffer::input;
  const std::uint32_t held = input ? rank(r).input_chunks : rank(r).output_chunks;
  std::uint64_t in_block = ref.chunk / chunks_;
  // A buffer that holds one block out of many holds the rank's own block.
  const bool own = held == chunks_ && algorithm_->chunks_per_loop != chunks_;
  if (own) in_block = r;
  const std::uint64_t count = collective().count;
  const std::uint64_t begin = std::min(count, ref.chunk % chunks_ * chunk_elements_);
  const bool apart = input && (!algorithm_->in_place || collective().func == Func::all_to_all);
  return {in_block * count + begin, std::min(chunk_elements_, count - begin),
          apart ? Buffer::input : Buffer::work};
}

bool MscclSchedule::in_one_block(const MscclChunkRef& ref, std::uint32_t count) const {
  return !padded_ || ref.buffer == MscclBuffer::scratch || count == 0;
}

Block MscclSchedule::whole(GroupRank r, const MscclChunkRef& ref, std::uint32_t count) const {
  if (count == 0) return {};
  Block block = chunk(r, ref);
  block.count = count * chunk_elements_;  // includes the padding; the step is then scattered
  return block;
}

// Appends the chunks' elements to `out`, padding as Buffer::none, and joins adjacent blocks.
void MscclSchedule::append_blocks(GroupRank r, MscclChunkRef ref, std::uint32_t count,
                                  std::vector<Block>& out) const {
  const auto add = [&](const Block& block) {
    if (block.count == 0) return;
    Block* last = out.empty() ? nullptr : &out.back();
    if (last && last->buffer == block.buffer &&
        (block.buffer == Buffer::none || last->offset + last->count == block.offset)) {
      last->count += block.count;
    } else {
      out.push_back(block);
    }
  };
  for (const std::uint32_t end = ref.chunk + count; ref.chunk < end; ++ref.chunk) {
    const Block block = chunk(r, ref);
    add(block);
    add({0, chunk_elements_ - block.count, Buffer::none});
  }
}

Step MscclSchedule::step(GroupRank r, int a, int k) const {
  const MscclThreadblock& tb = block(r, a);
  const MscclStep& from = at(r, a, k);
  Step step;
  step.depends = from.depends_on >= 0;
  const MscclChunkRef into = received_at(r, a, from);
  if (receives(from.op)) {
    step.recv_from = tb.recv;
    step.recv = whole(r, into, from.count);
    step.scattered = !in_one_block(into, from.count);
    // Reduced in place: the common case, which needs no local work.
    const bool here = reduces_received(from.op) && from.source == into;
    step.on_recv = here ? Combine::reduce : Combine::copy;
    step.local = reduces_received(from.op) && !here;
  } else {
    step.local = from.op == MscclOp::cpy || from.op == MscclOp::re;
  }
  if (sends(from.op)) {
    const MscclChunkRef out = receives(from.op) ? into : from.source;
    step.send_to = tb.send;
    step.send = whole(r, out, from.count);
    step.scattered = step.scattered || !in_one_block(out, from.count);
  }
  return step;
}

void MscclSchedule::pieces(GroupRank r, int a, int k, Way way, std::vector<Block>& out) const {
  const MscclStep& from = at(r, a, k);
  const bool received = way == Way::recv || receives(from.op);
  if (!(way == Way::recv ? receives(from.op) : sends(from.op))) return;
  out.clear();
  append_blocks(r, received ? received_at(r, a, from) : from.source, from.count, out);
}

// One chunk at a time, because padding lies at different offsets in the two buffers.
void MscclSchedule::locals(GroupRank r, int a, int k, std::vector<Local>& out) const {
  const MscclStep& from = at(r, a, k);
  out.clear();
  const Combine how = from.op == MscclOp::cpy ? Combine::copy : Combine::reduce;
  MscclChunkRef source = from.source, into = received_at(r, a, from);
  for (std::uint32_t i = 0; i < from.count; ++i, ++source.chunk, ++into.chunk) {
    Local local{chunk(r, source), chunk(r, into), how};
    local.from.count = local.to.count = std::min(local.from.count, local.to.count);
    if (local.from.count > 0) out.push_back(local);
  }
}

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

}  // namespace

std::string_view name_of(MscclOp op) { return traits(op).name; }
bool sends(MscclOp op) { return traits(op).sends; }
bool receives(MscclOp op) { return traits(op).receives; }
bool reads_source(MscclOp op) { return traits(op).source; }
bool writes_destination(MscclOp op) { return traits(op).destination; }

std::string_view msccl_name_of(Func func) {
  switch (func) {
    case Func::all_reduce:
      return "allreduce";
    case Func::reduce_scatter:
      return "reducescatter";
    case Func::all_gather:
      return "allgather";
    case Func::all_to_all:
      return "alltoall";
    case Func::broadcast:
    case Func::reduce:
    case Func::gather:
    case Func::scatter:
    case Func::send_recv:
      return name_of(func);
    default:
      return {};
  }
}

std::uint32_t chunks_per_block(const MscclAlgorithm& algorithm) {
  switch (algorithm.func) {
    case Func::all_reduce:
    case Func::broadcast:
    case Func::reduce:
    case Func::send_recv:
      return algorithm.chunks_per_loop;
    default:
      return algorithm.chunks_per_loop / static_cast<std::uint32_t>(algorithm.ranks.size());
  }
}

std::unique_ptr<Schedule> msccl_schedule(std::shared_ptr<const MscclAlgorithm> algorithm,
                                         const Collective& c, const Communicator& comm) {
  const auto size = static_cast<int>(algorithm->ranks.size());
  if (c.func != algorithm->func)
    refuse("'" + algorithm->name + "' is an algorithm for " +
           std::string(name_of(algorithm->func)) + ", not for " + std::string(name_of(c.func)));
  if (c.size != size)
    refuse("'" + algorithm->name + "' is for " + std::to_string(size) + " ranks; the group has " +
           std::to_string(c.size));
  if (c.root != algorithm->root)
    refuse("'" + algorithm->name + "' is for root " + std::to_string(algorithm->root) +
           ", not for root " + std::to_string(c.root));
  if (comm.slice_bytes > 0)
    refuse("'" + algorithm->name + "' says itself how large its messages are; leave out slice");
  return std::make_unique<MscclSchedule>(std::move(algorithm), c, comm.flow_control);
}

}  // namespace ghostrank
