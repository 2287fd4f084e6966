// The instructions are those of protocols 2 to 5 (Python's pickletools lists them) that make plain
// values. They work on a stack; `marks` are heights of it at which a list's or a dictionary's items
// begin. A value may be used in several places, so the values form a graph, which may even have
// cycles: measure() bounds it before build() follows it.
#include "profiles/trace/pickle.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kBytesPerNode = 2, kLeastNodes = 1 << 16;
constexpr std::size_t kMostTextPerByte = 16, kLeastText = 4 << 20;
constexpr int kDeepestPickle = 64;
constexpr std::uint32_t kNoItem = 0xffffffff;

// A pickle's byte may make a value, so they are small.
struct Value {
  struct Span {
    std::uint32_t from, to;
  };
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, dictionary };
  Kind kind = Kind::none;
  std::uint32_t begin = 0;  // byte of its instruction
  union {
    std::int64_t integer = 0;
    double real;
    Span span;  // text: first byte, length; list, dictionary: first and last item
  };
};
static_assert(sizeof(Value) == 16);
using Kind = Value::Kind;

struct PickleItem {  // a dictionary's are key, value, key, value, ...
  std::uint32_t value = 0, next = kNoItem;
};

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& path, std::string_view unread)
      : bytes_(bytes), path_(path), unread_(unread) {
    if (bytes.size() >= kNoItem) fail("a pickle of more than 4 GiB; dump JSON");
  }

  JsonTape run() {
    while (step()) {
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("the pickle ends without its one value");
    if (at_ < bytes_.size()) {
      begin_ = at_;
      fail("data behind the end of the pickle; remove it");
    }
    measure(stack_.front(), 0);
    nodes_.reserve(count_);
    digits_.reserve(digits_count_);
    build(stack_.front(), {});
    return {std::move(nodes_), std::move(digits_)};
  }

 private:
  [[noreturn]] void fail_at(std::size_t byte, const std::string& what) const {
    throw Error(path_ + ": byte " + std::to_string(byte) + ": " + what);
  }
  [[noreturn]] void fail(const std::string& what) const { fail_at(begin_, what); }

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
    stack_.push_back(static_cast<std::uint32_t>(values_.size()));
    Value& value = values_.emplace_back();
    value.kind = kind;
    value.begin = static_cast<std::uint32_t>(begin_);
    if (kind == Kind::list || kind == Kind::dictionary) value.span = {kNoItem, kNoItem};
    return value;
  }
  void push_integer(std::int64_t value) { push(Kind::integer).integer = value; }
  void push_text(std::uint64_t length) {
    take(length);
    const std::size_t from = at_ - length;
    push(Kind::text).span = {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(length)};
  }
  // An integer of `size` bytes in two's complement; one of more than 64 bits as the nearest double.
  void push_long(std::uint64_t size) {
    if (size <= 8) {
      const std::uint64_t bits = number(size);
      const int unused = static_cast<int>(64 - 8 * size);
      return push_integer(size == 0 ? 0 : static_cast<std::int64_t>(bits << unused) >> unused);
    }
    const std::string_view digits = take(size);
    const bool negative = static_cast<unsigned char>(digits.back()) >= 0x80;
    double sum = 0;
    for (std::size_t i = size; i-- > 0;) {
      const auto digit = static_cast<unsigned char>(digits[i]);
      sum = sum * 256 + (negative ? 255 - digit : digit);
    }
    push(Kind::real).real = negative ? -sum - 1 : sum;
  }

  // The stack's least height: what lies below belongs to an unfinished list.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void need(std::size_t count) const {
    if (stack_.size() < floor() + count) fail("the stack has no value for this instruction");
  }
  // The number of values since the last mark, which it takes.
  std::size_t since_mark() {
    if (marks_.empty()) fail("the items have no beginning");
    const std::size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }
  // Moves the last `count` values of the stack behind the items.
  void move_items(std::size_t count, Value::Span& items) {
    for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i) {
      const auto index = static_cast<std::uint32_t>(items_.size());
      (items.from == kNoItem ? items.from : items_[items.to].next) = index;
      items.to = index;
      items_.push_back({stack_[i]});
    }
    stack_.resize(stack_.size() - count);
  }
  // The last `count` values become one array.
  void push_tuple(std::size_t count) {
    need(count);
    Value::Span items{kNoItem, kNoItem};
    move_items(count, items);
    push(Kind::list).span = items;
  }
  void add(Kind kind, std::size_t count) {
    need(count);
    const std::size_t height = stack_.size() - count;
    if (height <= floor() || values_[stack_[height - 1]].kind != kind)
      fail("items of something that is no list or dictionary");
    if (kind == Kind::dictionary && count % 2 != 0) fail("a key without a value");
    move_items(count, values_[stack_[height - 1]].span);
  }
  // Writers number values from 0, so a number is below the bytes of the pickle.
  void remember(std::uint64_t name) {
    if (stack_.size() <= floor()) fail("there is no value to remember");
    if (name > bytes_.size()) fail("value " + std::to_string(name) + " to remember of fewer");
    if (name >= memo_.size()) memo_.resize(name + 1, kNoItem);
    remembered_ += memo_[name] == kNoItem;
    memo_[name] = stack_.back();
  }
  void recall(std::uint64_t name) {
    if (name >= memo_.size() || memo_[name] == kNoItem)
      fail("value " + std::to_string(name) + " is not known");
    stack_.push_back(memo_[name]);
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
      case 0x8b:
        push_long(number(4));
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
      case 't':
        push_tuple(since_mark());
        break;
      case '(':
        marks_.push_back(static_cast<std::uint32_t>(stack_.size()));
        break;
      case 'a':
        add(Kind::list, 1);
        break;
      case 'e':
        add(Kind::list, since_mark());
        break;
      case 's':
        add(Kind::dictionary, 2);
        break;
      case 'u':
        add(Kind::dictionary, since_mark());
        break;
      case 'q':
        remember(number(1));
        break;
      case 'r':
        remember(number(4));
        break;
      case 0x94:
        remember(remembered_);
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

  std::string_view text_of(const Value& value) const {
    return bytes_.substr(value.span.from, value.span.to);
  }

  // Calls `take(key, item)` for every item that is read; a list's have no key.
  template <class Take>
  void for_each_item(const Value& value, const Take& take) const {
    for (std::uint32_t i = value.span.from; i != kNoItem; i = items_[i].next) {
      const Value* key = nullptr;
      if (value.kind == Kind::dictionary) {
        key = &values_[items_[i].value];
        i = items_[i].next;
        if (key->kind == Kind::text && text_of(*key) == unread_) continue;
      }
      take(key, items_[i].value);
    }
  }

  void measure_text(const Value& value) {
    texts_ += value.span.to;
    if (texts_ > kLeastText + kMostTextPerByte * bytes_.size())
      fail_at(value.begin, "texts that are used so often make more than " +
                               std::to_string(kMostTextPerByte) + " times the pickle; dump JSON");
  }
  void measure_key(const Value& key) {
    if (key.kind == Kind::text)
      measure_text(key);
    else if (key.kind == Kind::integer)
      digits_count_ += std::to_string(key.integer).size();
    else
      fail_at(key.begin, "a key that is neither text nor integer; dump JSON");
  }
  // Counts what build() will make of a value.
  void measure(std::uint32_t at, int depth) {
    const Value& value = values_[at];
    if (depth > kDeepestPickle)
      fail_at(value.begin,
              "values nested more than " + std::to_string(kDeepestPickle) + " deep; no dump is");
    const std::size_t most = kLeastNodes + bytes_.size() / kBytesPerNode;
    if (++count_ > most)
      fail_at(value.begin, "more than " + std::to_string(most) +
                               " values, those used in several places counted in each, in a "
                               "pickle of " +
                               std::to_string(bytes_.size()) + " bytes; dump JSON");
    if (value.kind == Kind::text) measure_text(value);
    if (value.kind != Kind::list && value.kind != Kind::dictionary) return;
    for_each_item(value, [&](const Value* key, std::uint32_t item) {
      if (key) measure_key(*key);
      measure(item, depth + 1);
    });
  }

  std::string_view key_of(const Value& key) {
    if (key.kind == Kind::text) return text_of(key);
    const std::string digits = std::to_string(key.integer);
    digits_.insert(digits_.end(), digits.begin(), digits.end());  // has room for all of them
    return {digits_.data() + digits_.size() - digits.size(), digits.size()};
  }
  void build(std::uint32_t at, std::string_view key) {
    const Value& value = values_[at];
    JsonNode& node = nodes_.emplace_back();  // stays where it is: there is room for all of them
    node.at = static_cast<std::uint32_t>(nodes_.size() - 1);
    node.key = key;
    switch (value.kind) {
      case Kind::none:
        break;
      case Kind::boolean:
        node.kind = JsonNode::Kind::boolean;
        node.integer = value.integer;
        break;
      case Kind::integer:
        node.kind = JsonNode::Kind::integer;
        node.integer = value.integer;
        node.number = static_cast<double>(value.integer);
        break;
      case Kind::real:
        if (!std::isfinite(value.real)) break;
        node.kind = JsonNode::Kind::number;
        node.number = value.real;
        break;
      case Kind::text:
        node.kind = JsonNode::Kind::string;
        node.text = text_of(value);
        break;
      case Kind::list:
      case Kind::dictionary:
        node.kind = value.kind == Kind::list ? JsonNode::Kind::array : JsonNode::Kind::object;
        for_each_item(value, [&](const Value* its_key, std::uint32_t item) {
          build(item, its_key ? key_of(*its_key) : std::string_view());
          ++node.size;
        });
        break;
    }
    node.end = static_cast<std::uint32_t>(nodes_.size());
  }

  const std::string_view bytes_;
  const std::string& path_;
  const std::string_view unread_;   // values of this key are left out
  std::size_t at_ = 0, begin_ = 0;  // begin_: of the current instruction
  // Deques, because vectors that grow hold what they have twice.
  std::deque<Value> values_;
  std::deque<PickleItem> items_;
  std::deque<std::uint32_t> stack_, marks_, memo_;
  std::size_t remembered_ = 0;
  std::size_t count_ = 0, texts_ = 0, digits_count_ = 0;  // nodes; bytes of texts, of other keys
  std::vector<JsonNode> nodes_;
  std::vector<char> digits_;  // of keys
};

}  // namespace

bool is_old_pickle(std::string_view head) {
  return head.starts_with("(d") || head.starts_with("}q") || head.starts_with("}(");
}

JsonTape json_of_pickle(std::string_view bytes, const std::string& path, std::string_view unread) {
  return PickleReader(bytes, path, unread).run();
}

}  // namespace ghostrank
