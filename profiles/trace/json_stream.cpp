#include "profiles/trace/json_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "profiles/error.h"

#ifdef GHOSTRANK_WITH_RAPIDJSON
#ifdef __SSE2__
#define RAPIDJSON_SSE2  // reads up to kJsonSlack bytes behind a text
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#endif

namespace ghostrank {
namespace {

[[noreturn]] void fail_at(const std::string& path, std::uint64_t line, std::size_t column,
                          const std::string& what) {
  throw Error(path + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + what);
}

#ifdef GHOSTRANK_WITH_RAPIDJSON
constexpr std::size_t kDeepest = 64;

// RapidJSON's handler: appends to the tape. A callback that returns false ends the parse.
class TapeWriter {
 public:
  explicit TapeWriter(std::vector<JsonNode>& nodes) : nodes_(nodes) {}

  bool Null() {
    add(JsonNode::Kind::null);
    return true;
  }
  bool Bool(bool value) {
    add(JsonNode::Kind::boolean).integer = value;
    return true;
  }
  bool Int(int value) { return Int64(value); }
  bool Uint(unsigned value) { return Int64(value); }
  bool Int64(std::int64_t value) {
    JsonNode& node = add(JsonNode::Kind::integer);
    node.integer = value;
    node.number = static_cast<double>(value);
    return true;
  }
  bool Uint64(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return Int64(value);
    add(JsonNode::Kind::number).number = static_cast<double>(value);
    return true;
  }
  bool Double(double value) {
    add(JsonNode::Kind::number).number = value;
    return true;
  }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return false; }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    add(JsonNode::Kind::string).text = {text, length};
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_ = {text, length};
    return true;
  }
  bool StartObject() { return open(JsonNode::Kind::object); }
  bool EndObject(rapidjson::SizeType size) { return close(size); }
  bool StartArray() { return open(JsonNode::Kind::array); }
  bool EndArray(rapidjson::SizeType size) { return close(size); }

 private:
  JsonNode& add(JsonNode::Kind kind) {
    JsonNode& node = nodes_.emplace_back();
    node.kind = kind;
    node.at = static_cast<std::uint32_t>(nodes_.size() - 1);
    node.end = node.at + 1;
    node.key = key_;
    key_ = {};
    return node;
  }
  bool open(JsonNode::Kind kind) {
    if (depth_ == kDeepest || nodes_.size() > 0xfffffff0) return false;
    open_[depth_++] = add(kind).at;
    return true;
  }
  bool close(std::size_t size) {
    JsonNode& node = nodes_[open_[--depth_]];
    node.size = static_cast<std::uint32_t>(size);
    node.end = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }

  std::vector<JsonNode>& nodes_;
  std::string_view key_;
  std::array<std::uint32_t, kDeepest> open_{};
  std::size_t depth_ = 0;
};
#endif

}  // namespace

const JsonNode* JsonTape::find(const JsonNode& object, std::string_view key) const {
  if (object.kind != JsonNode::Kind::object) return nullptr;
  for (const JsonNode& child : children(object))
    if (child.key == key) return &child;
  return nullptr;
}

#ifdef GHOSTRANK_WITH_RAPIDJSON
void JsonTape::parse(char* text, std::size_t size, const std::string& path, std::uint64_t line) {
  nodes_.clear();
  rapidjson::Reader reader;
  rapidjson::InsituStringStream stream(text);
  TapeWriter writer(nodes_);
  const rapidjson::ParseResult result = reader.Parse<rapidjson::kParseInsituFlag>(stream, writer);
  if (!result.IsError() && result.Offset() >= size) return;
  if (!result.IsError() && stream.Tell() >= size) return;
  const std::size_t offset = std::min(result.IsError() ? result.Offset() : stream.Tell(), size);
  // Parsing overwrites the text, but keeps its newlines outside of strings.
  const std::uint64_t lines = std::count(text, text + offset, '\n');
  std::size_t column = 1;
  for (std::size_t at = offset; at > 0 && text[at - 1] != '\n'; --at) ++column;
  const bool too_deep = result.Code() == rapidjson::kParseErrorTermination;
  fail_at(path, line + lines, column,
          (too_deep           ? "nested too deep; no trace is"
           : result.IsError() ? std::string(rapidjson::GetParseError_En(result.Code())) +
                                    " correct the JSON, or write the file again"
                              : "text behind the end of the JSON; remove it"));
}
#else
void JsonTape::parse(char*, std::size_t, const std::string& path, std::uint64_t line) {
  fail_at(path, line, 1,
          "this ghostrank was built without RapidJSON, which JSON traces need; install "
          "rapidjson-dev and build again");
}
#endif

JsonTape parse_json(std::string_view text, const std::string& path) {
  JsonTape tape;
  tape.own_.assign(text.begin(), text.end());
  tape.own_.resize(text.size() + kJsonSlack);
  tape.parse(tape.own_.data(), text.size(), path, 1);
  return tape;
}

bool JsonLines::next_line(char*& text, std::size_t& size) {
  constexpr std::size_t kReadBytes = 1 << 20, kLongest = 256 << 20;
  std::size_t looked = from_;
  for (;;) {
    void* end = looked < to_ ? std::memchr(buffer_.data() + looked, '\n', to_ - looked) : nullptr;
    if (!end && ended_) {
      if (from_ == to_) return false;
      end = buffer_.data() + to_;
      whole_ = false;
    }
    if (end) {
      text = buffer_.data() + from_;
      size = static_cast<char*>(end) - text;
      text[size] = '\0';
      from_ = std::min(to_, from_ + size + 1);
      ++line_;
      return true;
    }
    const std::size_t have = to_ - from_;
    if (have > kLongest) fail_at(file_.path(), line_ + 1, 1, "a line of more than 256 MiB");
    if (from_ > 0) std::memmove(buffer_.data(), buffer_.data() + from_, have);
    looked = have;
    from_ = 0;
    to_ = have;
    buffer_.resize(std::max(buffer_.size(), std::max(2 * have, kReadBytes) + kJsonSlack));
    const std::size_t got = file_.read(buffer_.data() + to_, buffer_.size() - kJsonSlack - to_);
    ended_ = got == 0;
    to_ += got;
  }
}

bool JsonLines::next(JsonTape& tape) {
  char* text = nullptr;
  std::size_t size = 0;
  while (next_line(text, size)) {
    const std::string_view line(text, size);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    tape.parse(text, size, file_.path(), line_);
    return true;
  }
  return false;
}

}  // namespace ghostrank
