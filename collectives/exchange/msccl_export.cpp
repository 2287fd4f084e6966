// Writes a schedule as an MSCCL algorithm. See msccl.h.
//
// An actor's work is a sequence of items: receive from one peer, then from the next, work locally,
// send to one peer, then to the next, step by step and slice by slice. Every item becomes a step of
// the threadblock that has the item's peer, and depends on the previous item if that is in another
// threadblock. An actor with at most one peer in each direction is a single threadblock, which
// receives a block and sends the same block on in one step (rcs, rrcs).
//
// Threading: pure functions.
#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "collectives/exchange/msccl.h"

namespace ghostrank {
namespace {

// Visits every block of elements that a schedule names.
template <typename Visit>
void for_each_block(const Schedule& schedule, Visit visit) {
  std::vector<Block> pieces;
  std::vector<Local> locals;
  for (GroupRank r = 0; r < schedule.collective().size; ++r) {
    for (int a = 0; a < schedule.actors(r); ++a) {
      for (int k = 0; k < schedule.actor(r, a).steps; ++k) {
        const Step step = schedule.step(r, a, k);
        for (const Way way : {Way::recv, Way::send}) {
          const bool recv = way == Way::recv;
          if ((recv ? step.recv_from : step.send_to).empty()) continue;
          pieces.clear();
          if (step.scattered) schedule.pieces(r, a, k, way, pieces);
          for (const Block& piece : pieces) visit(piece);
          for (std::uint32_t s = 0; s < step.slices && !step.scattered; ++s)
            visit(slice_of(recv ? step.recv : step.send, step, s));
        }
        locals.clear();
        if (step.local) schedule.locals(r, a, k, locals);
        for (const Local& local : locals) visit(local.from), visit(local.to);
      }
    }
  }
}

// Elements of a chunk: the largest number that divides all offsets and lengths.
std::uint64_t common_unit(const Schedule& schedule) {
  std::uint64_t unit = schedule.collective().count;
  for_each_block(schedule, [&](const Block& block) {
    if (block.count == 0) return;
    unit = std::gcd(unit, block.count);
    if (block.buffer != Buffer::none) unit = std::gcd(unit, block.offset);
  });
  return unit;
}

class RankExport {
 public:
  // Adds the rank's steps to `written`, which counts those of all ranks.
  RankExport(const Schedule& schedule, const MscclAlgorithm& algorithm, std::uint64_t unit,
             GroupRank r, std::int64_t& written)
      : schedule_(schedule), algorithm_(algorithm), unit_(unit), rank_(r), written_(written) {
    out_.scratch_chunks = chunks(schedule.scratch_elements(r));
  }

  MscclRank write() {
    count_chunks();
    if (algorithm_.func == Func::all_to_all && !schedule_.out_of_place()) copy_own_block();
    const int actors = schedule_.actors(rank_);
    ends_.resize(actors);
    for (int a = 0; a < actors; ++a) write_actor(a);
    for (const auto& [at, on] : to_resolve_) resolve(at, on);
    return std::move(out_);
  }

 private:
  struct At {  // a step of the output
    int threadblock = -1, step = -1;
  };

  std::uint32_t chunks(std::uint64_t elements) const {
    return static_cast<std::uint32_t>(elements / unit_);
  }

  void count_chunks() {
    const std::uint32_t block = chunks_per_block(algorithm_), all = algorithm_.chunks_per_loop;
    const bool one_in = algorithm_.func == Func::all_gather || algorithm_.func == Func::gather;
    const bool one_out =
        algorithm_.func == Func::reduce_scatter || algorithm_.func == Func::scatter;
    out_.input_chunks = one_in ? block : all;
    out_.output_chunks = one_out ? block : all;
  }

  // The schedule's block as chunks of a buffer. A buffer with one block is counted from the begin
  // of that block.
  MscclChunkRef chunk_ref(const Block& block) const {
    if (block.count == 0) return {};
    if (block.buffer == Buffer::scratch) return {MscclBuffer::scratch, chunks(block.offset)};
    const bool apart = schedule_.out_of_place() || algorithm_.func == Func::all_to_all;
    const bool in_output = algorithm_.func == Func::all_gather || algorithm_.func == Func::gather;
    const bool output = apart ? block.buffer == Buffer::work : in_output;
    const std::uint32_t held = output ? out_.output_chunks : out_.input_chunks;
    const bool own = held != algorithm_.chunks_per_loop;
    const std::uint64_t base = own ? rank_ * schedule_.collective().count : 0;
    if (block.offset < base || block.offset + block.count > base + held * unit_)
      throw std::invalid_argument("rank " + std::to_string(rank_) + " uses blocks of its " +
                                  (output ? "output" : "input") +
                                  " other than its own, which is all that the buffer has in an "
                                  "MSCCL " +
                                  std::string(msccl_name_of(algorithm_.func)));
    return {output ? MscclBuffer::output : MscclBuffer::input, chunks(block.offset - base)};
  }

  // In MSCCL the algorithm copies the own block; our contract leaves that to the player of a
  // schedule.
  void copy_own_block() {
    const std::uint32_t own = rank_ * chunks_per_block(algorithm_);
    MscclThreadblock& tb = out_.threadblocks.emplace_back();
    tb.steps.push_back({MscclOp::cpy,
                        {MscclBuffer::input, own},
                        {MscclBuffer::output, own},
                        chunks_per_block(algorithm_)});
    count_step();
    first_ = {0, 0};
  }

  // Opens the threadblocks of an actor: a single one, or one per peer.
  void open_threadblocks(int a) {
    std::set<GroupRank> senders, receivers;
    const Actor actor = schedule_.actor(rank_, a);
    for (int k = 0; k < actor.steps; ++k) {
      const Step step = schedule_.step(rank_, a, k);
      receivers.insert(step.send_to.begin(), step.send_to.end());
      senders.insert(step.recv_from.begin(), step.recv_from.end());
    }
    base_ = static_cast<int>(out_.threadblocks.size());
    const auto open = [&](GroupRank send, GroupRank recv) {
      MscclThreadblock& tb = out_.threadblocks.emplace_back();
      tb.send = send, tb.recv = recv, tb.channel = actor.channel;
      rooms_.resize(out_.threadblocks.size());
    };
    fused_ = senders.size() <= 1 && receivers.size() <= 1;
    if (fused_)
      return open(receivers.empty() ? kNoRank : *receivers.begin(),
                  senders.empty() ? kNoRank : *senders.begin());
    std::set<GroupRank> peers = senders;
    peers.insert(receivers.begin(), receivers.end());
    for (const GroupRank peer : peers)
      open(receivers.contains(peer) ? peer : kNoRank, senders.contains(peer) ? peer : kNoRank);
  }

  int threadblock_of(GroupRank peer, Way way) const {
    for (int t = base_;; ++t) {
      const MscclThreadblock& tb = out_.threadblocks.at(t);
      if ((way == Way::send ? tb.send : tb.recv) == peer) return t;
    }
  }

  void write_actor(int a) {
    open_threadblocks(a);
    last_ = first_;
    const int steps = schedule_.actor(rank_, a).steps;
    for (int k = 0; k < steps; ++k) {
      const Step step = schedule_.step(rank_, a, k);
      if (step.depends) {
        if (last_.threadblock >= 0 && last_.threadblock != base_) emit(base_, {});
        emit(base_, {});
        to_resolve_.push_back({last_, schedule_.dependency(rank_, a, k)});
      }
      for (std::uint32_t s = 0; s < step.slices; ++s) write_slice(a, k, step, s);
      ends_[a].push_back(last_);
    }
  }

  void write_slice(int a, int k, const Step& step, std::uint32_t s) {
    const Block in = slice_of(step.recv, step, s), out = slice_of(step.send, step, s);
    const bool reduces = step.on_recv == Combine::reduce;
    if (fused_ && step.recv_from.size() == 1 && step.send_to.size() == 1 && in == out &&
        !step.local && !step.scattered)
      return emit(base_, block_step(reduces ? MscclOp::rrcs : MscclOp::rcs, in));
    for (const GroupRank peer : step.recv_from) {
      const int t = threadblock_of(peer, Way::recv);
      if (step.scattered)
        unpack(t, pieces(a, k, Way::recv), in.count, reduces);
      else
        emit(t, block_step(reduces ? MscclOp::rrc : MscclOp::r, in));
    }
    if (step.local) write_locals(a, k);
    for (const GroupRank peer : step.send_to) {
      const int t = threadblock_of(peer, Way::send);
      if (step.scattered)
        pack(t, pieces(a, k, Way::send), out.count);
      else
        emit(t, block_step(MscclOp::s, out));
    }
  }

  MscclStep block_step(MscclOp op, const Block& block) const {
    return {op, chunk_ref(block), chunk_ref(block), chunks(block.count)};
  }

  std::vector<Block> pieces(int a, int k, Way way) const {
    std::vector<Block> list;
    schedule_.pieces(rank_, a, k, way, list);
    return list;
  }

  void write_locals(int a, int k) {
    std::vector<Local> locals;
    schedule_.locals(rank_, a, k, locals);
    const int t = std::max(last_.threadblock, base_);
    for (const auto& [from, to, how] : locals)
      emit(t, {how == Combine::copy ? MscclOp::cpy : MscclOp::re, chunk_ref(from), chunk_ref(to),
               chunks(from.count)});
  }

  // The begin of the threadblock's own scratch, made large enough for a message of `elements`
  // elements.
  std::uint32_t room(int t, std::uint64_t elements) {
    auto& [begin, size] = rooms_[t];
    if (chunks(elements) > size) {
      begin = out_.scratch_chunks;
      size = chunks(elements);
      out_.scratch_chunks += size;
    }
    return begin;
  }

  void unpack(int t, const std::vector<Block>& list, std::uint64_t elements, bool reduces) {
    const std::uint32_t at = room(t, elements);
    MscclStep receive{MscclOp::r, {}, {MscclBuffer::scratch, at}, chunks(elements)};
    emit(t, receive);
    std::uint64_t passed = 0;
    for (const Block& piece : list) {
      const MscclChunkRef from{MscclBuffer::scratch, at + chunks(passed)};
      if (piece.buffer != Buffer::none && piece.count > 0)
        emit(t,
             {reduces ? MscclOp::re : MscclOp::cpy, from, chunk_ref(piece), chunks(piece.count)});
      passed += piece.count;
    }
  }

  void pack(int t, const std::vector<Block>& list, std::uint64_t elements) {
    const std::uint32_t at = room(t, elements);
    std::uint64_t passed = 0;
    for (const Block& piece : list) {
      const MscclChunkRef to{MscclBuffer::scratch, at + chunks(passed)};
      if (piece.buffer != Buffer::none && piece.count > 0)
        emit(t, {MscclOp::cpy, chunk_ref(piece), to, chunks(piece.count)});
      passed += piece.count;
    }
    emit(t, {MscclOp::s, {MscclBuffer::scratch, at}, {}, chunks(elements)});
  }

  void emit(int t, MscclStep step) {
    std::vector<MscclStep>& steps = out_.threadblocks[t].steps;
    if (last_.threadblock >= 0 && last_.threadblock != t) {
      step.depends_on = last_.threadblock;
      step.depends_step = last_.step;
    }
    last_ = {t, static_cast<int>(steps.size())};
    steps.push_back(step);
    count_step();
  }

  void count_step() {
    if (++written_ > kMostMscclSteps)
      throw std::invalid_argument("too many steps to spell out: all ranks together may have " +
                                  std::to_string(kMostMscclSteps) +
                                  "; use fewer ranks, channels or slices");
  }

  // If the awaited step has produced no output step, the waiting one depends on nothing.
  void resolve(At at, StepOf on) {
    const At end = ends_[on.actor][on.step];
    MscclStep& step = out_.threadblocks[at.threadblock].steps[at.step];
    step.depends_on = end.threadblock;
    step.depends_step = end.step;
  }

  const Schedule& schedule_;
  const MscclAlgorithm& algorithm_;
  const std::uint64_t unit_;
  const GroupRank rank_;
  std::int64_t& written_;
  MscclRank out_;
  At first_, last_;  // first_: of the rank; last_: of the actor; the next item follows it
  int base_ = 0;     // the actor's first threadblock
  bool fused_ = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rooms_;  // by threadblock: begin, size
  std::vector<std::vector<At>> ends_;                           // by actor and step
  std::vector<std::pair<At, StepOf>> to_resolve_;
};

void refuse_above(std::uint64_t number, std::uint64_t most, const char* what) {
  if (number > most)
    throw std::invalid_argument("the file would have " + std::to_string(number) + " " + what +
                                ", and may have " + std::to_string(most) +
                                "; export a call of fewer elements, or of a number that divides "
                                "evenly: an algorithm serves calls of every size");
}

void check_size(const MscclAlgorithm& algorithm) {
  std::uint64_t chunks = 0, threadblocks = 0, moved = 0, cells = 0;
  for (const MscclRank& rank : algorithm.ranks) {
    chunks += std::uint64_t{rank.input_chunks} + rank.output_chunks + rank.scratch_chunks;
    threadblocks += rank.threadblocks.size();
    cells +=
        (std::uint64_t{algorithm.chunks_per_loop} + rank.scratch_chunks) * rank.threadblocks.size();
    for (const MscclThreadblock& tb : rank.threadblocks)
      for (const MscclStep& step : tb.steps) moved += step.count;
  }
  refuse_above(threadblocks, kMostMscclThreadblocks, "threadblocks");
  refuse_above(chunks, kMostMscclChunks, "chunks");
  refuse_above(moved, kMostMscclChunks, "moved chunks");
  refuse_above(cells, kMostMscclCells, "chunks times threadblocks");
}

std::string ref_xml(const char* buffer, const char* offset, const MscclChunkRef& ref) {
  static constexpr std::string_view kLetters = "ios";
  return std::string(" ") + buffer + "=\"" + kLetters[static_cast<std::size_t>(ref.buffer)] +
         "\" " + offset + "=\"" + std::to_string(ref.chunk) + '"';
}

// Escapes a name, which may contain any character.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string attribute(const char* name, std::int64_t value) {
  return std::string(" ") + name + "=\"" + std::to_string(value) + '"';
}

void append_threadblock(std::string& text, const MscclThreadblock& tb, std::size_t id,
                        const std::set<std::pair<int, int>>& awaited) {
  text += "    <tb" + attribute("id", static_cast<int>(id)) + attribute("send", tb.send) +
          attribute("recv", tb.recv) + attribute("chan", tb.channel) + ">\n";
  for (std::size_t s = 0; s < tb.steps.size(); ++s) {
    const MscclStep& step = tb.steps[s];
    text +=
        "      <step" + attribute("s", static_cast<int>(s)) + " type=\"" +
        std::string(name_of(step.op)) + '"' + ref_xml("srcbuf", "srcoff", step.source) +
        ref_xml("dstbuf", "dstoff", step.destination) + attribute("cnt", step.count) +
        attribute("depid", step.depends_on) + attribute("deps", step.depends_step) +
        attribute("hasdep", awaited.contains({static_cast<int>(id), static_cast<int>(s)}) ? 1 : 0) +
        "/>\n";
  }
  text += "    </tb>\n";
}

}  // namespace

MscclAlgorithm to_msccl(const Schedule& schedule, std::string name) {
  const Collective& c = schedule.collective();
  if (msccl_name_of(c.func).empty())
    throw std::invalid_argument("MSCCL has no word for " + std::string(name_of(c.func)));
  if (c.count == 0) throw std::invalid_argument("a call without elements has no chunks");
  const std::uint64_t unit = common_unit(schedule);
  MscclAlgorithm out;
  out.name = std::move(name);
  out.func = c.func;
  out.protocol = schedule.protocol();
  out.in_place = !schedule.out_of_place() && c.func != Func::all_to_all;
  out.root = c.root;
  const std::uint64_t chunks = work_elements(c, 0) / unit;
  refuse_above(chunks, kMostMscclChunks, "chunks");
  out.chunks_per_loop = static_cast<std::uint32_t>(chunks);
  out.ranks.resize(c.size);  // chunks_per_block() needs their number
  std::int64_t written = 0;
  for (GroupRank r = 0; r < c.size; ++r) {
    MscclRank& rank = out.ranks[r];
    rank = RankExport(schedule, out, unit, r, written).write();
    for (const MscclThreadblock& tb : rank.threadblocks)
      out.channels = std::max(out.channels, tb.channel + 1);
  }
  check_size(out);
  return out;
}

std::string to_xml(const MscclAlgorithm& algorithm) {
  std::string text =
      "<algo name=\"" + escaped(algorithm.name) + "\" proto=\"" +
      std::string(name_of(algorithm.protocol)) + '"' + attribute("nchannels", algorithm.channels) +
      attribute("nchunksperloop", algorithm.chunks_per_loop) +
      attribute("ngpus", static_cast<int>(algorithm.ranks.size())) + " coll=\"" +
      std::string(msccl_name_of(algorithm.func)) + '"' +
      attribute("inplace", algorithm.in_place ? 1 : 0) +
      attribute("outofplace", algorithm.in_place ? 0 : 1) + attribute("minBytes", 0) +
      attribute("maxBytes", INT64_MAX) + attribute("root", algorithm.root) + ">\n";
  for (std::size_t r = 0; r < algorithm.ranks.size(); ++r) {
    const MscclRank& rank = algorithm.ranks[r];
    text += "  <gpu" + attribute("id", static_cast<int>(r)) +
            attribute("i_chunks", rank.input_chunks) + attribute("o_chunks", rank.output_chunks) +
            attribute("s_chunks", rank.scratch_chunks) + ">\n";
    std::set<std::pair<int, int>> awaited;
    for (const MscclThreadblock& tb : rank.threadblocks)
      for (const MscclStep& step : tb.steps) awaited.insert({step.depends_on, step.depends_step});
    for (std::size_t t = 0; t < rank.threadblocks.size(); ++t)
      append_threadblock(text, rank.threadblocks[t], t, awaited);
    text += "  </gpu>\n";
  }
  text += "</algo>\n";
  refuse_above(text.size(), kMostMscclBytes, "bytes");
  return text;
}

}  // namespace ghostrank
