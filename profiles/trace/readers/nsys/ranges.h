// The NVTX ranges of an nsys export that matter here: calls of NCCL with their payloads, and steps.
//
//   StringIds (id, value)        NVTX_EVENTS (start, end, eventType, text | textId, globalTid,
//                                             binaryData | jsonText | jsonTextId, domainId)
//   NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, type, name, offset): layout of binaryData
//
// binaryData begins with 32 bytes: domainId, schemaId and the payload's size, 8 bytes each, and a
// word that is not used here. That layout is not documented; it is what public decoders of
// exports take it to be.
// Units: nanoseconds since the session began. Errors: Error(usage). Threading: pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiles/trace/sqlite_rows.h"

namespace ghostrank {

inline constexpr std::int64_t kMostNsysNanos = 9'000'000'000'000'000;  // as picoseconds in 63 bits
inline constexpr std::int64_t kMostNsysId = 0xffffffff;  // of devices, streams and correlations

// Throws unless the export has a schema that is read.
void check_nsys_version(SqliteFile& file);

// Strings of the export that matter here, by id: names that begin with "nccl", names of steps,
// payloads as JSON.
using NsysStrings = std::unordered_map<std::int64_t, std::string>;
NsysStrings read_nsys_strings(SqliteFile& file);

enum class NcclField : std::uint8_t { comm, bytes, root, peer, rank, ranks, count };

class NcclPayload {
 public:
  std::optional<std::uint64_t>& operator[](NcclField field) { return at_[index(field)]; }
  const std::optional<std::uint64_t>& operator[](NcclField field) const {
    return at_[index(field)];
  }

 private:
  static std::size_t index(NcclField field) { return static_cast<std::size_t>(field); }
  std::array<std::optional<std::uint64_t>, static_cast<std::size_t>(NcclField::count)> at_;
};

struct NsysRange {
  enum class Kind : std::uint8_t { call, group_start, group_end, membership };
  Kind kind = Kind::call;
  std::uint32_t call = 0;    // index into kNcclCalls, kNcclSend or kNcclRecv
  std::uint64_t thread = 0;  // globalTid; without its lowest 24 bits: the process
  std::int64_t start = 0, end = 0;
  std::uint64_t row = 0;  // in NVTX_EVENTS
  NcclPayload payload;
};

// A range that is named like "iteration 7".
struct NsysStep {
  std::uint64_t process = 0;  // globalPid without its lowest 24 bits
  std::int64_t start = 0, end = 0;
  auto operator<=>(const NsysStep&) const = default;
};

struct NsysRanges {
  std::vector<NsysRange> nccl;  // in the order of the table
  std::vector<NsysStep> steps;
  std::uint64_t others = 0;  // rows of NVTX_EVENTS that are neither
};
NsysRanges read_nsys_ranges(SqliteFile& file, const NsysStrings& strings);

}  // namespace ghostrank
