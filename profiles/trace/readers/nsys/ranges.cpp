#include "profiles/trace/readers/nsys/ranges.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "profiles/error.h"
#include "profiles/trace/json_stream.h"
#include "profiles/trace/readers/nccl/calls.h"

namespace ghostrank {
namespace {

constexpr std::int64_t kPushPopRange = 59;  // of eventType
constexpr std::int64_t kAnyInteger = std::numeric_limits<std::int64_t>::max();

// By NcclField: the name in NCCL's schemas.
constexpr std::string_view kFields[] = {
    "NCCL communicator ID", "Message size [bytes]", "Root", "Peer rank", "Rank", "No. of ranks"};

std::optional<NcclField> field_named(std::string_view name) {
  const auto* at = std::find(std::begin(kFields), std::end(kFields), name);
  if (at == std::end(kFields)) return std::nullopt;
  return static_cast<NcclField>(at - std::begin(kFields));
}

// Bytes of an integer type of NVTX's payloads, by number; 0: no integer of 4 or 8 bytes.
std::size_t width_of(std::int64_t type) {
  switch (type) {
    case 5:   // int
    case 6:   // unsigned
    case 15:  // int32
    case 16:  // uint32
      return 4;
    case 7:   // long
    case 8:   // unsigned long
    case 9:   // long long
    case 10:  // unsigned long long
    case 17:  // int64
    case 18:  // uint64
    case 22:  // size_t
      return 8;
    default:
      return 0;
  }
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = bytes.size(); i > 0; --i)
    out = out << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return out;
}

bool is_step(std::string_view text) {
  constexpr std::string_view kNames[] = {"profilerstep", "step",          "iteration",  "iter",
                                         "train_step",   "training_step", "global_step"};
  if (text.empty() || text.size() > 64 || !std::isdigit(static_cast<unsigned char>(text.back())))
    return false;
  const auto cut = [&](std::string_view what) {
    const std::size_t last = text.find_last_not_of(what);
    text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  };
  cut("0123456789");
  cut(" #_:=-");
  std::string name(text);
  for (char& c : name)
    c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Where the fields of NCCL's payloads are.
class Payloads {
 public:
  explicit Payloads(SqliteFile& file) {
    const std::string table = "NVTX_PAYLOAD_SCHEMA_ENTRIES";
    if (!file.has(table)) return;
    SqliteRows rows(file, table, {"domainId", "schemaId", "type", "name", "offset"}, 5);
    while (rows.next()) {
      const auto field = field_named(rows.text(3));
      if (!field) continue;
      const Member member{
          *field, rows.is_null(4) ? 0 : static_cast<std::size_t>(rows.integer(4, 0, 1 << 20)),
          width_of(rows.integer(2, 0, kAnyInteger))};
      if (member.width == 0) rows.fail("type is no integer of 4 or 8 bytes");
      auto& members = at_[{rows.bits(0), rows.bits(1)}];
      const auto same = std::find_if(members.begin(), members.end(),
                                     [&](const Member& one) { return one.field == member.field; });
      if (same == members.end()) {
        members.push_back(member);
      } else if (same->offset != member.offset || same->width != member.width) {
        rows.fail("the schema has " + quote(rows.text(3)) + " at two places");
      }
    }
  }

  // An unknown schema: no field.
  NcclPayload decode(std::string_view bytes, const SqliteRows& rows) const {
    constexpr std::size_t kHead = 32;
    NcclPayload out;
    if (bytes.size() < kHead) return out;
    const auto at =
        at_.find({little_endian(bytes.substr(0, 8)), little_endian(bytes.substr(8, 8))});
    if (at == at_.end()) return out;
    const std::string_view payload = bytes.substr(kHead);
    for (const Member& member : at->second) {
      if (member.offset + member.width > payload.size())
        rows.fail("binaryData has " + std::to_string(payload.size()) +
                  " bytes of payload, fewer than its schema");
      out[member.field] = little_endian(payload.substr(member.offset, member.width));
    }
    return out;
  }

 private:
  struct Member {
    NcclField field;
    std::size_t offset, width;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<Member>> at_;  // by domain, schema
};

NcclPayload from_json(std::string_view text, const SqliteRows& rows) {
  NcclPayload out;
  try {
    const JsonTape tape = parse_json(text, "jsonText");
    for (const JsonNode& child : tape.children(tape.root())) {
      const auto field = field_named(child.key);
      if (!field || !child.is_number() || !(child.number >= 0) || child.number >= 0x1p64) continue;
      // The tape has integers from 2^63 on as doubles, which suffices to tell communicators apart.
      out[*field] = child.is_integer() ? static_cast<std::uint64_t>(child.integer)
                                       : static_cast<std::uint64_t>(child.number);
    }
  } catch (const Error& error) {
    rows.fail(error.what());
  }
  return out;
}

std::optional<std::uint32_t> call_named(std::string_view name) {
  if (name == "ncclSend") return kNcclSend;
  if (name == "ncclRecv") return kNcclRecv;
  for (std::uint32_t i = 0; i < std::size(kNcclCalls); ++i)
    if (name.substr(4) == kNcclCalls[i].name) return i;
  return std::nullopt;
}

}  // namespace

void check_nsys_version(SqliteFile& file) {
  std::string version;
  SqliteRows rows(file, "META_DATA_EXPORT", {"name", "value"}, 2);
  while (rows.next())
    if (rows.text(0) == "EXPORT_SCHEMA_VERSION") version = rows.text(1);
  if (!version.starts_with("3.24.") && !version.starts_with("3.25."))
    throw Error(file.path() + ": EXPORT_SCHEMA_VERSION " + quote(version) +
                " is not read; 3.24 and 3.25 are: export the report with an nsys that writes them");
}

NsysStrings read_nsys_strings(SqliteFile& file) {
  NsysStrings out;
  SqliteRows rows(file, "StringIds", {"id", "value"}, 2);
  while (rows.next()) {
    const std::string_view value = rows.text(1);
    if (value.starts_with("nccl") || is_step(value) ||
        (value.starts_with('{') && value.find(kFields[0]) != std::string_view::npos))
      out.insert_or_assign(rows.integer(0, -kAnyInteger, kAnyInteger), std::string(value));
  }
  return out;
}

NsysRanges read_nsys_ranges(SqliteFile& file, const NsysStrings& strings) {
  enum { kStart, kEnd, kType, kText, kTextId, kThread, kBinary, kJson, kJsonId };
  NsysRanges out;
  if (!file.has("NVTX_EVENTS")) return out;
  const Payloads payloads(file);
  SqliteRows rows(file, "NVTX_EVENTS",
                  {"start", "end", "eventType", "text", "textId", "globalTid", "binaryData",
                   "jsonText", "jsonTextId"},
                  6);
  const auto string_at = [&](int direct, int id) -> std::string_view {
    if (!rows.is_null(direct) || rows.is_null(id)) return rows.text(direct);
    const auto at = strings.find(rows.integer(id, -kAnyInteger, kAnyInteger));
    return at == strings.end() ? std::string_view() : at->second;
  };
  while (rows.next()) {
    const std::string_view name = string_at(kText, kTextId);
    const bool nccl = name.starts_with("nccl");
    // A range without an end was open when the capture stopped.
    if ((!nccl && !is_step(name)) || rows.integer(kType, 0, kAnyInteger) != kPushPopRange ||
        rows.is_null(kEnd)) {
      ++out.others;
      continue;
    }
    NsysRange range;
    range.start = rows.integer(kStart, 0, kMostNsysNanos);
    range.end = rows.integer(kEnd, range.start, kMostNsysNanos);
    range.thread = rows.bits(kThread);
    if (!nccl) {
      out.steps.push_back({range.thread >> 24, range.start, range.end});
      continue;
    }
    range.row = rows.row();
    if (!rows.is_null(kBinary)) {
      range.payload = payloads.decode(rows.bytes(kBinary), rows);
    } else if (const std::string_view payload = string_at(kJson, kJsonId); !payload.empty()) {
      range.payload = from_json(payload, rows);
    }
    if (const auto call = call_named(name)) {
      range.call = *call;
    } else if (name == "ncclGroupStart") {
      range.kind = NsysRange::Kind::group_start;
    } else if (name == "ncclGroupEnd") {
      range.kind = NsysRange::Kind::group_end;
    } else if (range.payload[NcclField::comm] && range.payload[NcclField::rank] &&
               range.payload[NcclField::ranks]) {
      range.kind = NsysRange::Kind::membership;
    } else {
      ++out.others;
      continue;
    }
    out.nccl.push_back(range);
  }
  return out;
}

}  // namespace ghostrank
