// The instructions are those of protocols 2 to 5 (Python's pickletools lists them) that make plain
// values. They work on a stack; `marks` are heights of it at which a list's or a dictionary's items
// begin. A value may be used in several places, so the values form a graph, which may even have
// cycles: write() bounds it.
#include "profiles/trace/pickle.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "profiles/error.h"

namespace ghostrank {
namespace {

// Values that are used in several places make the JSON longer than the pickle: the names of fields,
// and frames of stacks.
constexpr std::size_t kMostJsonPerByte = 256, kLeastJson = 1 << 20;
constexpr int kDeepestPickle = 64;

struct Value {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, dictionary };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;
  std::vector<std::uint32_t> items;  // of a dictionary: key, value, key, value, ...
};
using Kind = Value::Kind;

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& path)
      : bytes_(bytes), path_(path), longest_(kLeastJson + kMostJsonPerByte * bytes.size()) {}

  std::string run() {
    while (step()) {
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("the pickle ends without its one value");
    std::string out;
    write(stack_.front(), 0, out);
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(path_ + ": byte " + std::to_string(begin_) + ": " + what);
  }

  std::string_view take(std::uint64_t length) {
    if (length > bytes_.size() - at_) fail("the pickle is cut off");
    const std::string_view out = bytes_.substr(at_, length);
    at_ += length;
    return out;
  }
  // An unsigned integer of `size` bytes, least significant first.
  std::uint64_t number(std::size_t size) {
    std::uint64_t out = 0;
    const std::string_view digits = take(size);
    for (std::size_t i = size; i-- > 0;) out = out << 8 | static_cast<unsigned char>(digits[i]);
    return out;
  }

  Value& push(Kind kind) {
    if (values_.size() == UINT32_MAX) fail("more than 2^32 values");
    stack_.push_back(static_cast<std::uint32_t>(values_.size()));
    values_.emplace_back().kind = kind;
    return values_.back();
  }
  void push_integer(std::int64_t value) { push(Kind::integer).integer = value; }
  void push_text(std::uint64_t length) {
    const std::string_view text = take(length);
    push(Kind::text).text = text;
  }
  // An integer of `size` bytes in two's complement.
  void push_long(std::size_t size) {
    if (size > 8) fail("an integer of more than 64 bits");
    const std::uint64_t bits = number(size);
    const int unused = static_cast<int>(64 - 8 * size);
    push_integer(size == 0 ? 0 : static_cast<std::int64_t>(bits << unused) >> unused);
  }
  // The last `count` values become one array.
  void push_tuple(std::size_t count) {
    std::vector<std::uint32_t> items = pop(count);
    push(Kind::list).items = std::move(items);
  }

  // The stack's least height: what lies below belongs to an unfinished list.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<std::uint32_t> pop(std::size_t count) {
    if (stack_.size() < floor() + count) fail("the stack has no value for this instruction");
    std::vector<std::uint32_t> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }
  std::vector<std::uint32_t> pop_to_mark() {
    if (marks_.empty()) fail("the items have no beginning");
    std::vector<std::uint32_t> out = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return out;
  }
  void add(Kind kind, const std::vector<std::uint32_t>& items) {
    if (stack_.size() <= floor() || values_[stack_.back()].kind != kind)
      fail("items of something that is no list or dictionary");
    if (kind == Kind::dictionary && items.size() % 2 != 0) fail("a key without a value");
    auto& all = values_[stack_.back()].items;
    all.insert(all.end(), items.begin(), items.end());
  }
  void remember(std::uint64_t name) {
    if (stack_.size() <= floor()) fail("there is no value to remember");
    memo_[name] = stack_.back();
  }
  void recall(std::uint64_t name) {
    const auto at = memo_.find(name);
    if (at == memo_.end()) fail("value " + std::to_string(name) + " is not known");
    stack_.push_back(at->second);
  }

  // Returns false at the end.
  bool step() {
    begin_ = at_;
    const auto code = static_cast<unsigned char>(take(1).front());
    switch (code) {
      case 0x80:  // the protocol
        if (number(1) > 5) fail("a protocol after 5; dump JSON");
        break;
      case 0x95:  // the length of a frame
        number(8);
        break;
      case 'N':
        push(Kind::none);
        break;
      case 0x88:
      case 0x89:
        push(Kind::boolean).integer = code == 0x88;
        break;
      case 'K':
        push_integer(static_cast<std::int64_t>(number(1)));
        break;
      case 'M':
        push_integer(static_cast<std::int64_t>(number(2)));
        break;
      case 'J':
        push_long(4);
        break;
      case 0x8a:
        push_long(number(1));
        break;
      case 'G': {
        std::uint64_t bits = 0;
        for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
        push(Kind::real).real = std::bit_cast<double>(bits);
        break;
      }
      case 0x8c:
        push_text(number(1));
        break;
      case 'X':
        push_text(number(4));
        break;
      case 0x8d:
        push_text(number(8));
        break;
      case ']':
        push(Kind::list);
        break;
      case '}':
        push(Kind::dictionary);
        break;
      case ')':
        push_tuple(0);
        break;
      case 0x85:
      case 0x86:
      case 0x87:
        push_tuple(code - 0x84U);
        break;
      case 't': {
        std::vector<std::uint32_t> items = pop_to_mark();
        push(Kind::list).items = std::move(items);
        break;
      }
      case '(':
        marks_.push_back(stack_.size());
        break;
      case 'a':
        add(Kind::list, pop(1));
        break;
      case 'e':
        add(Kind::list, pop_to_mark());
        break;
      case 's':
        add(Kind::dictionary, pop(2));
        break;
      case 'u':
        add(Kind::dictionary, pop_to_mark());
        break;
      case 'q':
        remember(number(1));
        break;
      case 'r':
        remember(number(4));
        break;
      case 0x94:
        remember(memo_.size());
        break;
      case 'h':
        recall(number(1));
        break;
      case 'j':
        recall(number(4));
        break;
      case '.':
        return false;
      default:
        fail("a pickle's instruction " + std::to_string(code) +
             " that makes no plain value, and nothing of a pickle is run here; dump JSON");
    }
    return true;
  }

  void write_text(std::string_view text, std::string& out) const {
    constexpr std::string_view kHex = "0123456789abcdef";
    out += '"';
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20) {
        out += "\\u00";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
        continue;
      }
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }

  void write(std::uint32_t at, int depth, std::string& out) const {
    if (depth > kDeepestPickle || out.size() > longest_)
      fail("values nested more than " + std::to_string(kDeepestPickle) + " deep, or more than " +
           std::to_string(longest_) + " bytes of them");
    const Value& value = values_[at];
    switch (value.kind) {
      case Kind::none:
        out += "null";
        break;
      case Kind::boolean:
        out += value.integer != 0 ? "true" : "false";
        break;
      case Kind::integer:
        out += std::to_string(value.integer);
        break;
      case Kind::real: {
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof digits, value.real).ptr;
        out += std::isfinite(value.real) ? std::string_view(digits, end - digits) : "null";
        break;
      }
      case Kind::text:
        write_text(value.text, out);
        break;
      case Kind::list:
      case Kind::dictionary:
        write_items(value, depth, out);
        break;
    }
  }

  void write_items(const Value& value, int depth, std::string& out) const {
    const bool keys = value.kind == Kind::dictionary;
    out += keys ? '{' : '[';
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      const bool key = keys && i % 2 == 0;
      if (i > 0) out += keys && !key ? ':' : ',';
      const Value& item = values_[value.items[i]];
      if (!key)
        write(value.items[i], depth + 1, out);
      else if (item.kind == Kind::text)
        write_text(item.text, out);
      else if (item.kind == Kind::integer)
        write_text(std::to_string(item.integer), out);
      else
        fail("a key that is neither text nor integer");
    }
    out += keys ? '}' : ']';
  }

  const std::string_view bytes_;
  const std::string& path_;
  const std::size_t longest_;       // bytes of JSON
  std::size_t at_ = 0, begin_ = 0;  // begin_: of the current instruction
  std::vector<Value> values_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;
};

}  // namespace

std::string json_of_pickle(std::string_view bytes, const std::string& path) {
  return PickleReader(bytes, path).run();
}

}  // namespace ghostrank
