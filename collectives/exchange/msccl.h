// Collectives in the form of MSCCL, as data: what its XML files hold, the schedule that such a file
// spells out, and the file that spells out a schedule.
//
//   gpu                 a rank; its input, output and scratch buffers are counted in chunks
//   tb (threadblock)    an actor: at most one peer that it sends to, one that it receives from
//   step                one of
//
//     s      send src                                   cpy    dst = src
//     r      dst = received                             re     dst = dst + src
//     rrc    dst = received + src                       nop    nothing: for its dependency
//     rcs    dst = received, send it
//     rrs    send received + src, which is not kept
//     rrcs   dst = received + src, send it
//
//   depid, deps         the step begins after step `deps` of threadblock `depid` of its rank
//
// Chunks: all-reduce, broadcast, reduce and send/recv cut the buffer into `chunks_per_loop` chunks,
// all others each of the `size` blocks of it into chunks_per_loop / size. A chunk has ceil(elements
// / chunks) elements. Where that is more than there are (MSCCL itself leaves such calls to NCCL)
// the last chunks are padded, and the padding travels. A step is one message however large: MSCCL's
// cutting of large chunks into its FIFO's slots is not modelled.
//
// Input and output of an in-place algorithm are one buffer; out of place the input is not written.
//
// Units: chunks, unless said otherwise. Threading: immutable values and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

enum class MscclOp : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };
inline constexpr int kMscclOps = 9;
std::string_view name_of(MscclOp op);  // "s", "r", ...
bool sends(MscclOp op);
bool receives(MscclOp op);
bool reads_source(MscclOp op);  // beside what it receives
bool writes_destination(MscclOp op);

enum class MscclBuffer : std::uint8_t { input, output, scratch };

struct MscclPlace {
  MscclBuffer buffer = MscclBuffer::input;
  std::uint32_t chunk = 0;
  bool operator==(const MscclPlace&) const = default;
};

struct MscclStep {
  MscclOp op = MscclOp::nop;
  MscclPlace source, destination;
  std::uint32_t count = 0;
  int depends_on = -1, depends_step = -1;  // index of a threadblock, or -1
  int line = 0;                            // in the file it came from
};

struct MscclThreadblock {
  Rank send = kNoRank, recv = kNoRank;
  int channel = 0;
  std::vector<MscclStep> steps;
  int line = 0;
};

struct MscclRank {
  std::uint32_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
  std::vector<MscclThreadblock> threadblocks;
  int line = 0;
};

struct MscclAlgorithm {
  std::string name;
  Func func = Func::all_reduce;
  Protocol protocol = Protocol::simple;
  int channels = 1;
  std::uint32_t chunks_per_loop = 1;
  bool in_place = true;
  Rank root = 0;  // an attribute of ours: MSCCL's files do not say
  std::vector<MscclRank> ranks;
};

// "allreduce", "reducescatter", ...; empty for what MSCCL has no word for. Send/recv is a word of
// ours.
std::string_view msccl_name_of(Func func);

// Chunks of one block of the buffer: of the whole buffer where it has no blocks.
std::uint32_t chunks_per_block(const MscclAlgorithm& algorithm);

// The schedule of a call. Throws std::invalid_argument when the call is not the algorithm's (size,
// root), or wants slices. The algorithm must be well-formed (profiles/algorithms/msccl_file.h sees
// to that): threadblocks have the peers their steps use, places lie inside the buffers.
std::unique_ptr<Schedule> msccl_schedule(std::shared_ptr<const MscclAlgorithm> algorithm,
                                         const Collective& c, const Communicator& comm);

// The algorithm that does what the schedule does, message by message: an actor becomes as many
// threadblocks as it has peers, tied together by dependencies; messages that are put together from
// several places go through scratch. Chunks are as large as possible. Throws std::invalid_argument
// for what MSCCL has no word for: a barrier, lists of unequal counts.
MscclAlgorithm to_msccl(const Schedule& schedule, std::string name);

std::string to_xml(const MscclAlgorithm& algorithm);

}  // namespace ghostrank
