// See msccl_file.h.
#include "profiles/algorithms/msccl_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tinyxml2.h>
#include <utility>

#include "collectives/check/checker.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

using tinyxml2::XMLElement;

constexpr std::int64_t kMostRanks = 4096, kMostChannels = 1024;

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  MscclAlgorithm read(std::string_view text);

 private:
  [[noreturn]] void fail(int line, const std::string& what) const {
    throw Error(file_ + ":" + std::to_string(line) + ": " + what);
  }
  [[noreturn]] void fail(const XMLElement& at, const std::string& what) const {
    fail(at.GetLineNum(), what);
  }
  std::string_view text(const XMLElement& at, const char* name) const;
  std::int64_t number(const XMLElement& at, const char* name, std::int64_t least,
                      std::int64_t most) const;
  std::int64_t number_or(const XMLElement& at, const char* name, std::int64_t absent,
                         std::int64_t least, std::int64_t most) const {
    return at.Attribute(name) ? number(at, name, least, most) : absent;
  }
  Func read_func(const XMLElement& at) const;
  void count(const XMLElement& at, std::int64_t& sum, std::int64_t more, std::int64_t most,
             const char* what) const;
  void check_name(const XMLElement& at, const char* wanted) const;
  void read_header(const XMLElement& algo);
  void read_rank(const XMLElement& gpu);
  std::uint32_t read_chunks(const XMLElement& gpu, const char* name);
  void read_threadblock(const XMLElement& tb, MscclRank& rank, std::map<int, int>& index);
  MscclStep read_step(const XMLElement& at, const MscclThreadblock& tb, std::size_t position);
  MscclChunkRef read_ref(const XMLElement& at, const char* buffer, const char* offset) const;
  void check_rank(const XMLElement& gpu, MscclRank& rank, const std::map<int, int>& index) const;
  void check_ref(int line, const MscclRank& rank, const MscclChunkRef& ref, std::uint32_t count,
                 const char* which) const;

  std::string file_;
  MscclAlgorithm out_;
  std::vector<bool> seen_;  // by rank: its <gpu> has been read
  std::int64_t threadblocks_ = 0, steps_ = 0, chunks_ = 0, moved_ = 0, cells_ = 0;
};

std::string_view Reader::text(const XMLElement& at, const char* name) const {
  const char* value = at.Attribute(name);
  if (!value) fail(at, std::string("<") + at.Name() + "> has no attribute " + quoted(name));
  return value;
}

std::int64_t Reader::number(const XMLElement& at, const char* name, std::int64_t least,
                            std::int64_t most) const {
  const std::string_view given = text(at, name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (error != std::errc{} || end != given.data() + given.size() || value < least || value > most)
    fail(at, std::string(name) + " is " + quoted(given) + "; a whole number from " +
                 std::to_string(least) + " to " + std::to_string(most) + " is needed");
  return value;
}

Func Reader::read_func(const XMLElement& at) const {
  std::string given(text(at, "coll"));
  std::erase(given, '_');
  std::string known;
  for (int i = 0; i < kFuncs; ++i) {
    const auto func = static_cast<Func>(i);
    std::string name(msccl_name_of(func));
    if (name.empty()) continue;
    known += (known.empty() ? "" : ", ") + name;
    std::erase(name, '_');
    if (name == given) return func;
  }
  fail(at, "coll is " + quoted(text(at, "coll")) + "; known are " + known);
}

void Reader::count(const XMLElement& at, std::int64_t& sum, std::int64_t more, std::int64_t most,
                   const char* what) const {
  sum += more;
  if (sum > most)
    fail(at, "more than " + std::to_string(most) + " " + what + " in one file are not supported");
}

void Reader::check_name(const XMLElement& at, const char* wanted) const {
  if (std::strcmp(at.Name(), wanted) != 0)
    fail(at, "found <" + std::string(std::string_view(at.Name()).substr(0, 80)) + ">, expected <" +
                 wanted + ">");
}

MscclAlgorithm Reader::read(std::string_view text) {
  if (text.size() > kMostMscclBytes) fail(1, "the file is larger than 64 MiB");
  tinyxml2::XMLDocument document;
  if (document.Parse(text.data(), text.size()) != tinyxml2::XML_SUCCESS)
    fail(std::max(1, document.ErrorLineNum()),
         "this is not XML, or a tag before here is not closed");
  const XMLElement* algo = document.RootElement();
  if (!algo) fail(1, "the file is empty; an MSCCL file has an element <algo>");
  check_name(*algo, "algo");
  read_header(*algo);
  seen_.resize(out_.ranks.size());
  for (const XMLElement* gpu = algo->FirstChildElement(); gpu; gpu = gpu->NextSiblingElement())
    read_rank(*gpu);
  for (std::size_t r = 0; r < seen_.size(); ++r)
    if (!seen_[r]) fail(*algo, "there is no <gpu> with id " + std::to_string(r));
  return std::move(out_);
}

void Reader::read_header(const XMLElement& algo) {
  out_.name = algo.Attribute("name") ? std::string(text(algo, "name").substr(0, 80)) : file_;
  out_.func = read_func(algo);
  const std::optional<Protocol> protocol = protocol_named(text(algo, "proto"));
  if (!protocol)
    fail(algo, "proto is " + quoted(text(algo, "proto")) + "; known are Simple, LL and LL128");
  out_.protocol = *protocol;
  out_.channels = static_cast<int>(number(algo, "nchannels", 1, kMostChannels));
  const std::int64_t ranks = number(algo, "ngpus", 1, kMostRanks);
  out_.ranks.resize(ranks);
  out_.chunks_per_loop =
      static_cast<std::uint32_t>(number(algo, "nchunksperloop", 1, kMostMscclChunks / ranks));
  out_.in_place = number_or(algo, "inplace", 0, 0, 1) == 1;
  out_.root = static_cast<GroupRank>(number_or(algo, "root", 0, 0, ranks - 1));
  if (out_.func == Func::all_to_all && out_.in_place)
    fail(algo, "an all-to-all in place is not supported; use one with inplace=\"0\"");
  if (out_.func == Func::send_recv && ranks < 2) fail(algo, "send_recv needs two ranks or more");
  if (chunks_per_block(out_) == 0 ||
      (chunks_per_block(out_) != out_.chunks_per_loop &&
       out_.chunks_per_loop % static_cast<std::uint32_t>(ranks) != 0))
    fail(algo, "nchunksperloop is " + std::to_string(out_.chunks_per_loop) +
                   "; it must be a multiple of ngpus, as " + std::string(msccl_name_of(out_.func)) +
                   " has a block for every rank");
}

std::uint32_t Reader::read_chunks(const XMLElement& gpu, const char* name) {
  const auto chunks = static_cast<std::uint32_t>(number(gpu, name, 0, kMostMscclChunks));
  count(gpu, chunks_, chunks, kMostMscclChunks, "chunks");
  return chunks;
}

void Reader::read_rank(const XMLElement& gpu) {
  check_name(gpu, "gpu");
  const std::size_t id = number(gpu, "id", 0, static_cast<std::int64_t>(out_.ranks.size()) - 1);
  if (seen_[id]) fail(gpu, "this is the second <gpu> with id " + std::to_string(id));
  seen_[id] = true;
  MscclRank& rank = out_.ranks[id];
  rank.line = gpu.GetLineNum();
  rank.input_chunks = read_chunks(gpu, "i_chunks");
  rank.output_chunks = read_chunks(gpu, "o_chunks");
  rank.scratch_chunks = read_chunks(gpu, "s_chunks");
  const std::uint32_t all = out_.chunks_per_loop, block = chunks_per_block(out_);
  for (const std::uint32_t held : {rank.input_chunks, rank.output_chunks})
    if (held != 0 && held != all && held != block)
      fail(gpu, "a buffer has " + std::to_string(held) + " chunks; with nchunksperloop " +
                    std::to_string(all) + " it must have 0, " + std::to_string(all) +
                    (block != all ? " or " + std::to_string(block) : ""));
  std::map<int, int> index;  // of threadblocks, by id
  for (const XMLElement* tb = gpu.FirstChildElement(); tb; tb = tb->NextSiblingElement())
    read_threadblock(*tb, rank, index);
  count(gpu, cells_,
        (std::int64_t{all} + rank.scratch_chunks) *
            static_cast<std::int64_t>(rank.threadblocks.size()),
        kMostMscclCells, "chunks times threadblocks");
  check_rank(gpu, rank, index);
}

void Reader::read_threadblock(const XMLElement& tb, MscclRank& rank, std::map<int, int>& index) {
  check_name(tb, "tb");
  count(tb, threadblocks_, 1, kMostMscclThreadblocks, "threadblocks");
  const auto id = static_cast<int>(number(tb, "id", 0, kMostMscclThreadblocks));
  if (!index.emplace(id, static_cast<int>(rank.threadblocks.size())).second)
    fail(tb, "this is the second <tb> with id " + std::to_string(id) + " of its gpu");
  MscclThreadblock& out = rank.threadblocks.emplace_back();
  out.line = tb.GetLineNum();
  const std::int64_t last = static_cast<std::int64_t>(out_.ranks.size()) - 1;
  const GroupRank self = static_cast<GroupRank>(&rank - out_.ranks.data());
  out.send = static_cast<GroupRank>(number(tb, "send", -1, last));
  out.recv = static_cast<GroupRank>(number(tb, "recv", -1, last));
  if (out.send == self || out.recv == self) fail(tb, "a gpu cannot be its own peer");
  // -1 means no channel; a threadblock without peers may have none.
  out.channel = static_cast<int>(std::max<std::int64_t>(
      0, number(tb, "chan", out.send < 0 && out.recv < 0 ? -1 : 0, out_.channels - 1)));
  for (const XMLElement* step = tb.FirstChildElement(); step; step = step->NextSiblingElement())
    out.steps.push_back(read_step(*step, out, out.steps.size()));
}

MscclChunkRef Reader::read_ref(const XMLElement& at, const char* buffer, const char* offset) const {
  const std::string_view name = text(at, buffer);
  const std::size_t which = std::string_view("ios").find(name);
  if (name.size() != 1 || which == std::string_view::npos)
    fail(at, std::string(buffer) + " is " + quoted(name) + "; known are i, o and s");
  return {static_cast<MscclBuffer>(which),
          static_cast<std::uint32_t>(number(at, offset, 0, kMostMscclChunks))};
}

MscclStep Reader::read_step(const XMLElement& at, const MscclThreadblock& tb,
                            std::size_t position) {
  check_name(at, "step");
  count(at, steps_, 1, kMostMscclSteps, "steps");
  MscclStep step;
  step.line = at.GetLineNum();
  if (number(at, "s", 0, kMostMscclSteps) != static_cast<std::int64_t>(position))
    fail(at, "s is " + quoted(text(at, "s")) + "; steps are numbered from 0 in their order, here " +
                 std::to_string(position));
  const std::string_view type = text(at, "type");
  int op = 0;
  while (op < kMscclOps && name_of(static_cast<MscclOp>(op)) != type) ++op;
  if (op == kMscclOps)
    fail(at, "type is " + quoted(type) + "; known are s, r, rcs, rrs, rrc, rrcs, cpy, re and nop");
  step.op = static_cast<MscclOp>(op);
  if (sends(step.op) && tb.send < 0) fail(at, "a step that sends in a <tb> with send=\"-1\"");
  if (receives(step.op) && tb.recv < 0) fail(at, "a step that receives in a <tb> with recv=\"-1\"");
  if (reads_source(step.op)) step.source = read_ref(at, "srcbuf", "srcoff");
  if (writes_destination(step.op)) step.destination = read_ref(at, "dstbuf", "dstoff");
  if (step.op != MscclOp::nop)
    step.count = static_cast<std::uint32_t>(number(at, "cnt", 0, kMostMscclChunks));
  count(at, moved_, step.count, kMostMscclChunks, "moved chunks");
  step.depends_on = static_cast<int>(number_or(at, "depid", -1, -1, kMostMscclThreadblocks));
  step.depends_step = static_cast<int>(number_or(at, "deps", -1, -1, kMostMscclSteps));
  return step;
}

void Reader::check_ref(int line, const MscclRank& rank, const MscclChunkRef& ref,
                       std::uint32_t count, const char* which) const {
  const std::uint32_t held = ref.buffer == MscclBuffer::input    ? rank.input_chunks
                             : ref.buffer == MscclBuffer::output ? rank.output_chunks
                                                                 : rank.scratch_chunks;
  if (ref.chunk > held || count > held - ref.chunk)
    fail(line, std::string(which) + " ends at chunk " +
                   std::to_string(std::uint64_t{ref.chunk} + count) + " of a buffer of " +
                   std::to_string(held));
}

// Checks that need the whole rank. Turns threadblock ids into indices.
void Reader::check_rank(const XMLElement& gpu, MscclRank& rank,
                        const std::map<int, int>& index) const {
  std::set<std::pair<int, GroupRank>> sending, receiving;  // (channel, peer)
  for (MscclThreadblock& tb : rank.threadblocks) {
    const bool twice = (tb.send >= 0 && !sending.emplace(tb.channel, tb.send).second) ||
                       (tb.recv >= 0 && !receiving.emplace(tb.channel, tb.recv).second);
    if (twice) fail(tb.line, "another <tb> of this gpu has this peer on this channel already");
    for (MscclStep& step : tb.steps) {
      if (reads_source(step.op)) check_ref(step.line, rank, step.source, step.count, "source");
      if (writes_destination(step.op))
        check_ref(step.line, rank, step.destination, step.count, "destination");
      if (step.depends_on < 0) continue;
      const auto found = index.find(step.depends_on);
      if (found == index.end())
        fail(step.line, "depid is " + std::to_string(step.depends_on) + "; gpu " +
                            std::string(text(gpu, "id")) + " has no such <tb>");
      const auto steps = rank.threadblocks[found->second].steps.size();
      if (step.depends_step < 0 || static_cast<std::size_t>(step.depends_step) >= steps)
        fail(step.line, "deps is " + std::to_string(step.depends_step) + "; <tb> " +
                            std::to_string(step.depends_on) + " has " + std::to_string(steps) +
                            " steps");
      step.depends_on = found->second;
    }
  }
}

// Line of the innermost element that the checker's report points at.
int line_of(const MscclAlgorithm& algorithm, const CheckReport::Where& at) {
  if (at.rank < 0) return 1;
  const MscclRank& rank = algorithm.ranks[at.rank];
  if (at.actor < 0) return rank.line;
  const MscclThreadblock& tb = rank.threadblocks[at.actor];
  const std::size_t step = at.step;
  return at.step < 0 || step >= tb.steps.size() ? tb.line : tb.steps[step].line;
}

}  // namespace

MscclAlgorithm parse_msccl(std::string_view text, const std::string& file) {
  return Reader(file).read(text);
}

MscclProof prove_msccl(const std::shared_ptr<const MscclAlgorithm>& algorithm,
                       const std::string& file) {
  MscclProof proof;
  const std::uint64_t chunks = chunks_per_block(*algorithm);
  for (const std::uint64_t count : {chunks, 2 * chunks - 1}) {
    const Collective c{algorithm->func, static_cast<int>(algorithm->ranks.size()), count, 4,
                       algorithm->root};
    const CheckReport report = check(*msccl_schedule(algorithm, c, {}));
    if (!report.ok)
      throw Error(file + ":" + std::to_string(line_of(*algorithm, report.at)) +
                  ": the algorithm is wrong: " + report.error +
                  " (actors are the gpu's <tb> in their order)");
    if (count == chunks) proof.rounds = report.rounds;
  }
  return proof;
}

}  // namespace ghostrank
