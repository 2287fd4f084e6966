#include "profiles/trace/json_elements.h"

#include <vector>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostValue = 64 << 20;

bool is_blank(int c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Finds where values begin and end; the parser checks their content.
class Scanner {
 public:
  explicit Scanner(const std::string& path) : file_(path), buffer_(1 << 20) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(file_.path() + ":" + std::to_string(line_) + ":" + std::to_string(column_) + ": " +
                what);
  }

  int peek() {
    if (at_ == end_) {
      end_ = file_.read(buffer_.data(), buffer_.size());
      at_ = 0;
      if (end_ == 0) return -1;
    }
    return static_cast<unsigned char>(buffer_[at_]);
  }
  int next() {
    const int c = peek();
    if (c < 0) fail("the file ends too early; it is cut off");
    ++at_;
    ++column_;
    if (c == '\n') {
      ++line_;
      column_ = 1;
    }
    return c;
  }
  int next_word() {
    while (is_blank(peek())) next();
    return peek();
  }
  void expect(char c) {
    if (next_word() < 0) fail("the file ends too early; it is cut off");
    if (peek() != c) fail(std::string("'") + c + "' is expected");
    next();
  }

  // Copies a whole value to value_ and adds the slack that the parser needs.
  void take_value() {
    value_.clear();
    const int first = next_word();
    value_line_ = line_;
    if (first == '{' || first == '[') {
      std::size_t depth = 0;
      do {
        const int c = keep();
        if (c == '"') keep_string();
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
      } while (depth > 0);
    } else if (first == '"') {
      keep();
      keep_string();
    } else {
      while (peek() >= 0 && !is_blank(peek()) && peek() != ',' && peek() != ']' && peek() != '}')
        keep();
    }
    value_.resize(value_.size() + kJsonSlack);
  }
  // A key, without its quotes.
  std::string take_key() {
    if (next_word() != '"') fail("a key in quotes is expected");
    take_value();
    return {value_.begin() + 1, value_.end() - 1 - kJsonSlack};
  }

  const JsonTape& parsed() {
    tape_.parse(value_.data(), value_.size() - kJsonSlack, file_.path(), value_line_);
    return tape_;
  }
  std::uint64_t value_line() const { return value_line_; }

 private:
  int keep() {
    const int c = next();
    if (value_.size() == kMostValue) fail("a value of more than 64 MiB");
    value_.push_back(static_cast<char>(c));
    return c;
  }
  void keep_string() {
    for (int c = keep(); c != '"'; c = keep())
      if (c == '\\') keep();
  }

  TraceFile file_;
  std::vector<char> buffer_, value_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t line_ = 1, column_ = 1, value_line_ = 1;
  JsonTape tape_;
};

void read_array(Scanner& in, const std::function<void(const JsonTape&, std::uint64_t)>& element) {
  in.expect('[');
  if (in.next_word() == ']') return in.expect(']');
  for (;;) {
    in.take_value();
    element(in.parsed(), in.value_line());
    if (in.next_word() == ']') return in.expect(']');
    in.expect(',');
  }
}

}  // namespace

void for_each_element(const std::string& path, std::string_view key,
                      const std::function<void(const JsonTape&, std::uint64_t)>& element,
                      const std::function<void(std::string_view, const JsonTape&)>& other) {
  Scanner in(path);
  if (in.next_word() == '[') {
    read_array(in, element);
  } else {
    in.expect('{');
    bool found = false;
    for (bool more = in.next_word() != '}'; more;) {
      const std::string name = in.take_key();
      in.expect(':');
      if (name == key && in.next_word() == '[') {
        found = true;
        read_array(in, element);
      } else {
        in.take_value();
        other(name, in.parsed());
      }
      more = in.next_word() == ',';
      if (more) in.expect(',');
    }
    in.expect('}');
    if (!found) in.fail("there is no array " + std::string(key));
  }
  if (in.next_word() >= 0) in.fail("text behind the end of the JSON; remove it");
}

}  // namespace ghostrank
