#include "profiles/trace/readers/chakra_file.h"

#include <optional>

#include "profiles/error.h"

#ifdef GHOSTRANK_WITH_PROTOBUF
#include <google/protobuf/io/coded_stream.h>
#endif

namespace ghostrank {

#ifdef GHOSTRANK_WITH_PROTOBUF
namespace {

using google::protobuf::io::CodedInputStream;

// Wire types.
constexpr std::uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

// Field numbers of et_def.proto.
constexpr std::uint32_t kLastNodeField = 10;

class ChakraReader {
 public:
  ChakraReader(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  [[noreturn]] void fail(std::uint64_t byte, const std::string& what) const {
    throw Error(path_ + ": byte " + std::to_string(byte) + ": " + what);
  }

  // The next message; empty at the end of the file.
  std::optional<std::string_view> next() {
    if (at_ == text_.size()) return std::nullopt;
    CodedInputStream in(data(at_), static_cast<int>(std::min<std::size_t>(text_.size() - at_, 16)));
    std::uint64_t length = 0;
    if (!in.ReadVarint64(&length)) fail(at_, "no length of a message; the file is damaged");
    const std::size_t from = at_ + in.CurrentPosition();
    if (length > text_.size() - from || length > kMostMessage)
      fail(at_, "a message of " + std::to_string(length) + " bytes, but " +
                    std::to_string(text_.size() - from) +
                    " are left; the file is cut off, or no Chakra trace");
    at_ = from + length;
    return std::string_view(text_).substr(from, length);
  }

  std::uint64_t offset(std::string_view part) const { return part.data() - text_.data(); }

  ChakraHead head(std::string_view message) const {
    ChakraHead out;
    fields(message,
           [&](std::uint32_t field, std::uint32_t wire, std::uint64_t, std::string_view bytes) {
             if (field > 2 || wire != kBytes) return false;
             if (field == 1) out.version = bytes;
             return true;
           });
    return out;
  }

  void node(std::string_view message, ChakraNode& out) const {
    out.id = out.start_us = out.duration_us = 0;
    out.name = out.pg_name = out.input_values = out.input_types = {};
    out.type = ChakraNode::invalid;
    out.host = false;
    out.control.clear();
    out.data.clear();
    out.has = 0;
    out.tag = 0;
    out.track = -1;
    fields(message,
           [&](std::uint32_t field, std::uint32_t wire, std::uint64_t number,
               std::string_view bytes) { return node_field(out, field, wire, number, bytes); });
  }

 private:
  static constexpr std::uint64_t kMostMessage = 256 << 20;

  const std::uint8_t* data(std::size_t at) const {
    return reinterpret_cast<const std::uint8_t*>(text_.data()) + at;
  }

  // Calls `take` for every field of a message; `take` returns false if the schema has no such
  // field.
  template <typename Take>
  void fields(std::string_view message, Take take) const {
    CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                        static_cast<int>(message.size()));
    const auto here = [&] {
      return offset(message) + static_cast<std::uint64_t>(in.CurrentPosition());
    };
    while (static_cast<std::size_t>(in.CurrentPosition()) < message.size()) {
      const std::uint64_t begin = here();
      const std::uint32_t tag = in.ReadTag();
      const std::uint32_t wire = tag & 7;
      std::uint64_t number = 0;
      std::uint32_t half = 0, length = 0;
      std::string_view bytes;
      bool good = tag >> 3 != 0;
      if (wire == kVarint)
        good = good && in.ReadVarint64(&number);
      else if (wire == kFixed64)
        good = good && in.ReadLittleEndian64(&number);
      else if (wire == kFixed32)
        good = good && in.ReadLittleEndian32(&half), number = half;
      else if (wire == kBytes) {
        good = good && in.ReadVarint32(&length);
        const auto from = static_cast<std::size_t>(in.CurrentPosition());
        good = good && length <= message.size() - from && in.Skip(static_cast<int>(length));
        if (good) bytes = message.substr(from, length);
      } else {
        good = false;
      }
      if (!good) fail(begin, "no field of a message; the file is damaged, or no Chakra trace");
      if (!take(tag >> 3, wire, number, bytes))
        fail(begin, "field " + std::to_string(tag >> 3) + " of wire type " + std::to_string(wire) +
                        " is none of Chakra 0.0.4 or 1.0.0; convert older traces first");
    }
  }

  void numbers(std::string_view packed, std::vector<std::uint64_t>& out) const {
    CodedInputStream in(reinterpret_cast<const std::uint8_t*>(packed.data()),
                        static_cast<int>(packed.size()));
    while (static_cast<std::size_t>(in.CurrentPosition()) < packed.size()) {
      std::uint64_t number = 0;
      if (!in.ReadVarint64(&number)) fail(offset(packed), "a damaged list of numbers");
      out.push_back(number);
    }
  }

  bool node_field(ChakraNode& out, std::uint32_t field, std::uint32_t wire, std::uint64_t number,
                  std::string_view bytes) const {
    if (field > kLastNodeField) return false;
    const bool is_number = field == 1 || field == 3 || field == 6 || field == 7;
    if (field == 4 || field == 5) {
      if (wire == kBytes)
        numbers(bytes, field == 4 ? out.control : out.data);
      else if (wire == kVarint)
        (field == 4 ? out.control : out.data).push_back(number);
      else
        return false;
      return true;
    }
    if (wire != (is_number ? kVarint : kBytes)) return false;
    if (field == 1) out.id = number;
    if (field == 2) out.name = bytes;
    if (field == 3) {
      if (number > ChakraNode::coll) return false;
      out.type = static_cast<ChakraNode::Type>(number);
    }
    if (field == 6) out.start_us = number;
    if (field == 7) out.duration_us = number;
    if (field == 8)
      fields(bytes,
             [&](std::uint32_t part, std::uint32_t type, std::uint64_t, std::string_view text) {
               if (part == 1) out.input_values = text;
               if (part == 3) out.input_types = text;
               return part <= 3 && type == kBytes;
             });
    if (field == 10) attribute(out, bytes);
    return true;
  }

  // Reads an AttributeProto's value as a number, whichever of the types it has.
  void attribute(ChakraNode& out, std::string_view message) const {
    std::string_view name, text;
    std::uint32_t kind = 0;
    std::int64_t value = 0;
    fields(message, [&](std::uint32_t field, std::uint32_t wire, std::uint64_t number,
                        std::string_view bytes) {
      if (field == 1 && wire == kBytes) name = bytes;
      if (field <= 2) return wire == kBytes;
      if (field > 32) return false;
      kind = field;
      text = bytes;
      value = number;
      if (field == 15 || field == 17) value = static_cast<std::int64_t>(number >> 1) ^ -(value & 1);
      if (field == 7) value = static_cast<std::int32_t>(number);
      if (field == 23) value = static_cast<std::int32_t>(number);
      const bool single = field % 2 == 1 && field < 29;
      const bool of_64 = field == 3 || field == 21 || field == 25;
      const bool of_32 = field == 5 || field == 19 || field == 23;
      return wire == (!single ? kBytes : of_64 ? kFixed64 : of_32 ? kFixed32 : kVarint);
    });
    const bool number = kind % 2 == 1 && kind >= 7 && kind <= 27;
    struct Known {
      std::string_view name;
      int bit;
    };
    constexpr Known kKnown[] = {{"comm_type", 0},   {"comm_size", 1},  {"comm_src", 2},
                                {"comm_dst", 3},    {"comm_group", 4}, {"num_ops", 5},
                                {"tensor_size", 6}, {"root_rank", 7},  {"comm_root", 7}};
    if (number) {
      for (const Known& known : kKnown) {
        if (name != known.name) continue;
        if (value < 0)
          fail(offset(message), std::string(name) + " is negative; the trace is damaged");
        out.values[known.bit] = value;
        out.has |= 1U << known.bit;
      }
      if (name == "is_cpu_op") out.host = value != 0;
      if (name == "comm_tag") out.tag = static_cast<std::uint64_t>(value);
      if (name == "stream" || (name == "tid" && out.track < 0)) out.track = value;
    }
    if (kind == 29 && (name == "pg_name" || name == "comm_group")) {
      out.pg_name = text;
      out.has |= ChakraNode::group;
    }
    if (kind == 28 && name == "involved_dim" && some_left_out(text))
      out.has |= ChakraNode::part_of_dims;
  }

  bool some_left_out(std::string_view list) const {
    bool left_out = false;
    fields(list, [&](std::uint32_t field, std::uint32_t wire, std::uint64_t number,
                     std::string_view bytes) {
      if (field != 1) return false;
      std::vector<std::uint64_t> all;
      if (wire == kVarint)
        all.push_back(number);
      else
        numbers(bytes, all);
      for (const std::uint64_t one : all) left_out |= one == 0;
      return true;
    });
    return left_out;
  }

  const std::string& text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

ChakraHead read_chakra(const std::string& text, const std::string& path,
                       const std::function<void(const ChakraNode&, std::uint64_t offset)>& node) {
  ChakraReader reader(text, path);
  const auto first = reader.next();
  if (!first) reader.fail(0, "the file is empty; a Chakra trace begins with its metadata");
  ChakraHead head = reader.head(*first);
  ChakraNode one;
  while (const auto message = reader.next()) {
    reader.node(*message, one);
    node(one, reader.offset(*message));
  }
  return head;
}

bool can_read_chakra() { return true; }

#else

ChakraHead read_chakra(const std::string&, const std::string& path,
                       const std::function<void(const ChakraNode&, std::uint64_t)>&) {
  throw Error(path +
              ": this ghostrank was built without protobuf, which Chakra traces need; "
              "install libprotobuf-dev and build again");
}

bool can_read_chakra() { return false; }

#endif

// Expects a length, then field 1 or 2 of GlobalMetadata or nothing, then a node with one of its
// fields.
bool looks_like_chakra(std::string_view head) {
  const auto varint = [&](std::size_t& at) {
    std::uint64_t value = 0;
    for (int shift = 0; at < head.size() && shift < 63; shift += 7) {
      const auto byte = static_cast<unsigned char>(head[at++]);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    return ~std::uint64_t{0};
  };
  std::size_t at = 0;
  const std::uint64_t length = varint(at);
  if (length > 0 && (at >= head.size() || (head[at] != 0x0a && head[at] != 0x12))) return false;
  if (length > head.size() - at) return length < (1 << 16) && head.size() > 256;
  at += length;
  if (at == head.size()) return true;
  const std::uint64_t second = varint(at);
  if (second == 0 || second > (1 << 28) || at >= head.size()) return second == 0;
  return head[at] == 0x08 || head[at] == 0x12 || head[at] == 0x18;
}

}  // namespace ghostrank
