// JSON as a flat list of values, the tape, without copies of its strings. Only json_stream.cpp sees
// RapidJSON.
//
// Input is not trusted: nesting is bounded, and malformed input gives Error(usage) with file,
// line and column. Threading: one thread per tape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/trace/trace_file.h"

namespace ghostrank {

// Bytes behind a text parsed in place that the parser may read; the first one must be 0.
inline constexpr std::size_t kJsonSlack = 17;

struct JsonNode {
  enum class Kind : std::uint8_t { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  std::uint32_t size = 0;  // array, object: children
  std::uint32_t at = 0;    // own index on the tape
  std::uint32_t end = 0;   // index behind the last descendant
  std::string_view key;    // of an object's child
  std::string_view text;   // string
  std::int64_t integer = 0;
  double number = 0;  // integer, number

  bool is_integer() const { return kind == Kind::integer; }
  bool is_number() const { return kind == Kind::integer || kind == Kind::number; }
};

class JsonTape {
 public:
  class Children {
   public:
    class Iterator {
     public:
      Iterator(const std::vector<JsonNode>* nodes, std::uint32_t at) : nodes_(nodes), at_(at) {}
      const JsonNode& operator*() const { return (*nodes_)[at_]; }
      const JsonNode* operator->() const { return &(*nodes_)[at_]; }
      Iterator& operator++() {
        at_ = (*nodes_)[at_].end;
        return *this;
      }
      bool operator==(const Iterator& other) const { return at_ == other.at_; }

     private:
      const std::vector<JsonNode>* nodes_;
      std::uint32_t at_;
    };
    Children(const std::vector<JsonNode>* nodes, const JsonNode& of)
        : nodes_(nodes), from_(of.at + 1), to_(of.end) {}
    Iterator begin() const { return {nodes_, from_}; }
    Iterator end() const { return {nodes_, to_}; }

   private:
    const std::vector<JsonNode>* nodes_;
    std::uint32_t from_, to_;
  };

  JsonTape() = default;
  // Of values that are no text. `own`: characters that the nodes refer to.
  JsonTape(std::vector<JsonNode> nodes, std::vector<char> own)
      : nodes_(std::move(nodes)), own_(std::move(own)) {}

  const JsonNode& root() const { return nodes_.front(); }
  Children children(const JsonNode& of) const { return {&nodes_, of}; }  // a scalar has none
  // Child of an object by key; null: there is none.
  const JsonNode* find(const JsonNode& object, std::string_view key) const;

  // Parses text[0, size) in place: overwrites it, and the tape refers to it. kJsonSlack bytes must
  // follow the text. `line` is the line in which it begins, for errors.
  void parse(char* text, std::size_t size, const std::string& path, std::uint64_t line);

 private:
  friend JsonTape parse_json(std::string_view text, const std::string& path);
  std::vector<JsonNode> nodes_;
  std::vector<char> own_;
};

JsonTape parse_json(std::string_view text, const std::string& path);

// A file with one value per line; skips empty lines.
class JsonLines {
 public:
  explicit JsonLines(const std::string& path) : file_(path) {}

  bool next(JsonTape& tape);  // false: the end
  std::uint64_t line() const { return line_; }
  bool whole() const { return whole_; }  // false: the file ends within the line, without newline

 private:
  bool next_line(char*& text, std::size_t& size);

  TraceFile file_;
  std::vector<char> buffer_;
  std::size_t from_ = 0, to_ = 0;  // unread part of the buffer
  bool ended_ = false, whole_ = true;
  std::uint64_t line_ = 0;
};

}  // namespace ghostrank
