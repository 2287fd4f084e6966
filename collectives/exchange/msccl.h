// Collectives in MSCCL's form, as data: the content of its XML files, the schedule that such a file
// describes, and the file that describes a schedule.
//
//   gpu                 a rank; its input, output and scratch buffers are counted in chunks
//   tb (threadblock)    an actor: sends to at most one peer and receives from at most one
//   step                one of
//
//     s      send src                                   cpy    dst = src
//     r      dst = received                             re     dst = dst + src
//     rrc    dst = received + src                       nop    nothing; only waits
//     rcs    dst = received, send it
//     rrs    send received + src, do not store it
//     rrcs   dst = received + src, send it
//
//   depid, deps         the step begins after step `deps` of threadblock `depid` of its rank
//
// Chunks: all-reduce, broadcast, reduce and send/recv cut the buffer into `chunks_per_loop` chunks;
// all other functions cut each of its `size` blocks into chunks_per_loop / size chunks. A chunk has
// ceil(elements / chunks) elements. If the chunks are longer than the data (MSCCL itself leaves
// such calls to NCCL), the last ones are padded, and the padding is sent. A step is one message of
// any size: MSCCL's cutting of large chunks into slices of its FIFO is not modelled.
//
// Input and output of an in-place algorithm are one buffer; an out-of-place one never writes its
// input.
//
// Units: chunks, unless said otherwise. Threading: immutable values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/schedule.h"

namespace ghostrank {

// What a file may have, all its ranks together. Readers refuse more, and to_msccl() and to_xml()
// write no more.
inline constexpr std::size_t kMostMscclBytes = 64u << 20;
inline constexpr std::int64_t kMostMscclThreadblocks = 8192, kMostMscclSteps = 1 << 20;
inline constexpr std::int64_t kMostMscclChunks = 1 << 24;  // in all buffers; that all steps move
inline constexpr std::int64_t kMostMscclCells = 1 << 26;   // chunks x threadblocks of a rank

enum class MscclOp : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };
inline constexpr int kMscclOps = 9;
std::string_view name_of(MscclOp op);  // "s", "r", ...
bool sends(MscclOp op);
bool receives(MscclOp op);
bool reads_source(MscclOp op);  // besides the received data
bool writes_destination(MscclOp op);

enum class MscclBuffer : std::uint8_t { input, output, scratch };

struct MscclChunkRef {
  MscclBuffer buffer = MscclBuffer::input;
  std::uint32_t chunk = 0;
  bool operator==(const MscclChunkRef&) const = default;
};

struct MscclStep {
  MscclOp op = MscclOp::nop;
  MscclChunkRef source, destination;
  std::uint32_t count = 0;
  int depends_on = -1, depends_step = -1;  // index of a threadblock, or -1
  int line = 0;                            // of the file it was read from
};

struct MscclThreadblock {
  GroupRank send = kNoRank, recv = kNoRank;
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
  GroupRank root = 0;  // our own attribute, because MSCCL's files have none
  std::vector<MscclRank> ranks;
};

// "allreduce", "reducescatter", ...; empty if MSCCL has no name for the function. "send_recv" is
// our own name.
std::string_view msccl_name_of(Func func);

// Chunks per block of the buffer; of the whole buffer if the function has no blocks.
std::uint32_t chunks_per_block(const MscclAlgorithm& algorithm);

// The schedule of a call. Throws std::invalid_argument if function, size or root of the call are
// not the algorithm's, or if `comm` asks for slices. The algorithm must be well-formed, which
// profiles/algorithms/msccl_file.h checks: threadblocks have the peers that their steps use, and
// all chunks lie inside the buffers.
std::unique_ptr<Schedule> msccl_schedule(std::shared_ptr<const MscclAlgorithm> algorithm,
                                         const Collective& c, const Communicator& comm);

// The algorithm that sends the schedule's messages, one by one. An actor becomes one threadblock
// per peer, ordered by dependencies; messages gathered from several blocks go through scratch.
// Chunks are as large as possible. Throws std::invalid_argument for functions that MSCCL lacks
// (barrier, v-variants), for a call without elements, and if a file of it would have more than it
// may.
MscclAlgorithm to_msccl(const Schedule& schedule, std::string name);

// Throws std::invalid_argument if the text is larger than a file may be.
std::string to_xml(const MscclAlgorithm& algorithm);

}  // namespace ghostrank
