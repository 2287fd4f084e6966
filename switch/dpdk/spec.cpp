#include "switch/dpdk/spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

namespace ghostrank::dpdk {
namespace {

constexpr std::uint32_t kMostStructBytes = 255;
constexpr std::size_t kMostRegisters = 256, kMostHeaders = 64, kMostWords = 16;
constexpr std::size_t kMostNameBytes = 63, kMostInstructionBytes = 255;

// The instructions of DPDK 22.11.
constexpr std::array<std::string_view, 48> kInstructions{
    "rx",        "tx",          "drop",     "mirror",     "recirculate", "recircid",    "extract",
    "lookahead", "emit",        "validate", "invalidate", "mov",         "dma",         "add",
    "sub",       "ckadd",       "cksub",    "and",        "or",          "xor",         "shl",
    "shr",       "regprefetch", "regrd",    "regwr",      "regadd",      "metprefetch", "met",
    "table",     "learn",       "rearm",    "forget",     "extern",      "hash",        "entryid",
    "jmp",       "jmpv",        "jmpnv",    "jmph",       "jmpnh",       "jmpa",        "jmpna",
    "jmpeq",     "jmpneq",      "jmplt",    "jmpgt",      "return",      "selector"};

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Spec parse() {
    while (next()) {
      const std::string_view first = words_[0];
      if (first == "struct") {
        parse_struct();
      } else if (first == "header") {
        parse_header();
      } else if (first == "metadata") {
        expect(words_.size() == 3 && words_[1] == "instanceof", "metadata instanceof STRUCT");
        spec_.metadata = known_struct(words_[2]).name;
      } else if (first == "regarray") {
        parse_registers();
      } else if (first == "action") {
        parse_action();
      } else if (first == "table") {
        parse_table();
      } else if (first == "apply") {
        expect(words_.size() == 2 && words_[1] == "{", "apply {");
        spec_.instructions = parse_instructions();
      } else {
        fail("'" + std::string(first) +
             "' is not supported; known are struct, header, metadata, regarray, action, table and "
             "apply");
      }
    }
    finish();
    return std::move(spec_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(name_ + ":" + std::to_string(line_) + ": " + what);
  }
  void expect(bool holds, const std::string& form) const {
    if (!holds) fail("expected: " + form);
  }

  // Reads the next line that is not empty; false at the end.
  bool next() {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      at_ = end + 1;
      ++line_;
      if (line.starts_with("#line ")) {
        take_place(line.substr(6));
        continue;
      }
      line = line.substr(0, std::min(line.find("//"), line.find(';')));
      words_ = words_of(line);
      if (!words_.empty()) return true;
    }
    return false;
  }
  // "N FILE": where the next line is from (expand.h).
  void take_place(std::string_view place) {
    const std::size_t blank = place.find(' ');
    line_ = static_cast<int>(number(place.substr(0, blank))) - 1;
    name_ = place.substr(blank + 1);
  }
  void need(const char* what) {
    if (!next()) fail(std::string("the file ends within ") + what);
  }
  bool closes() const { return words_.size() == 1 && words_[0] == "}"; }

  std::string name_from(std::string_view word) const {
    if (word.empty() || word.size() > kMostNameBytes)
      fail("a name has 1 to " + std::to_string(kMostNameBytes) + " characters");
    return std::string(word);
  }
  std::uint64_t number(std::string_view word) const {
    const bool hex = word.starts_with("0x") || word.starts_with("0X");
    const std::string_view digits = hex ? word.substr(2) : word;
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
    if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
      fail("'" + std::string(word) + "' is not a number");
    return value;
  }
  const SpecStruct& known_struct(std::string_view name) const {
    const SpecStruct* found = spec_.find_struct(name);
    if (found == nullptr) fail("there is no struct '" + std::string(name) + "'");
    return *found;
  }

  void parse_struct() {
    expect(words_.size() == 3 && words_[2] == "{", "struct NAME {");
    SpecStruct s;
    s.name = name_from(words_[1]);
    if (spec_.find_struct(s.name) != nullptr) fail("there are two structs '" + s.name + "'");
    for (need("a struct"); !closes(); need("a struct")) {
      const std::string_view type = words_[0];
      expect(words_.size() == 2 && type.starts_with("bit<") && type.ends_with(">"), "bit<N> FIELD");
      const std::uint64_t bits = number(type.substr(4, type.size() - 5));
      if (bits == 0 || bits % 8 != 0 || bits > 64)
        fail("field '" + std::string(words_[1]) + "' has " + std::to_string(bits) +
             " bits; this pipeline wants whole bytes, at most 64 bits");
      s.fields.push_back({name_from(words_[1]), static_cast<std::uint32_t>(bits)});
    }
    if (s.fields.empty()) fail("struct '" + s.name + "' has no fields");
    spec_.structs.push_back(std::move(s));
  }

  void check_size(const SpecStruct& s, const char* what) const {
    if (s.bytes() > kMostStructBytes)
      fail(std::string(what) + " '" + s.name + "' has " + std::to_string(s.bytes()) +
           " bytes; operands reach the first " + std::to_string(kMostStructBytes) +
           " only, and sums would be wrong without an error: split it");
  }

  void parse_header() {
    expect(words_.size() == 4 && words_[2] == "instanceof", "header NAME instanceof STRUCT");
    const SpecStruct& type = known_struct(words_[3]);
    check_size(type, "header");
    spec_.headers.push_back({name_from(words_[1]), type.name});
    if (spec_.headers.size() > kMostHeaders)
      fail("more than " + std::to_string(kMostHeaders) + " headers");
  }

  void parse_registers() {
    expect(words_.size() == 6 && words_[2] == "size" && words_[4] == "initval",
           "regarray NAME size S initval V");
    const std::uint64_t size = number(words_[3]);
    if (size == 0 || size > 1u << 30) fail("a register array has 1 to 2^30 cells");
    spec_.registers.push_back(
        {name_from(words_[1]), static_cast<std::uint32_t>(size), number(words_[5])});
    if (spec_.registers.size() > kMostRegisters)
      fail("more than " + std::to_string(kMostRegisters) +
           " register arrays; the pipeline numbers them in 8 bits, and nothing would be summed: "
           "use larger arrays");
  }

  void parse_action() {
    const bool none = words_.size() == 5 && words_[3] == "none" && words_[4] == "{";
    const bool some = words_.size() == 6 && words_[3] == "instanceof" && words_[5] == "{";
    expect((none || some) && words_[2] == "args", "action NAME args none|instanceof STRUCT {");
    SpecAction action;
    action.name = name_from(words_[1]);
    if (some) action.type = known_struct(words_[4]).name;
    action.instructions = parse_instructions();
    spec_.actions.push_back(std::move(action));
  }

  std::vector<std::string> parse_instructions() {
    std::vector<std::string> all;
    for (need("instructions"); !closes(); need("instructions")) {
      const bool label = words_.size() >= 2 && words_[1] == ":";
      const std::size_t operation = label ? 2 : 0;
      if (words_.size() > operation && std::find(kInstructions.begin(), kInstructions.end(),
                                                 words_[operation]) == kInstructions.end())
        fail("DPDK 22.11 has no instruction '" + std::string(words_[operation]) + "'" +
             (words_[operation] == "compl" ? "; write the P4 program without ~" : ""));
      if (words_.size() > kMostWords)
        fail("an instruction has at most " + std::to_string(kMostWords) + " words");
      std::string line;
      for (const std::string_view word : words_)
        line += (line.empty() ? "" : " ") + std::string(word);
      if (line.size() > kMostInstructionBytes)
        fail("an instruction has at most " + std::to_string(kMostInstructionBytes) + " characters");
      all.push_back(std::move(line));
    }
    if (all.empty()) fail("there are no instructions");
    return all;
  }

  void parse_table() {
    expect(words_.size() == 3 && words_[2] == "{", "table NAME {");
    SpecTable table;
    table.name = name_from(words_[1]);
    for (need("a table"); !closes(); need("a table")) {
      if (words_[0] == "key") {
        parse_keys(table);
      } else if (words_[0] == "actions") {
        parse_table_actions(table);
      } else if (words_[0] == "default_action") {
        parse_default(table);
      } else if (words_[0] == "size") {
        expect(words_.size() == 2, "size N");
        const std::uint64_t size = number(words_[1]);
        if (size == 0 || size > 1u << 24) fail("a table has 1 to 2^24 entries");
        table.size = static_cast<std::uint32_t>(size);
      } else if (words_[0] != "instanceof" && words_[0] != "pragma" && words_[0] != "hash") {
        fail("a table has no '" + std::string(words_[0]) + "'");
      }
    }
    if (table.actions.empty() || table.default_action.empty() || table.size == 0)
      fail("table '" + table.name + "' needs actions, a default action and a size");
    spec_.tables.push_back(std::move(table));
  }

  void parse_keys(SpecTable& table) {
    expect(words_.size() == 2 && words_[1] == "{", "key {");
    for (need("a key"); !closes(); need("a key")) {
      expect(words_.size() == 2 && (words_[0].starts_with("h.") || words_[0].starts_with("m.")),
             "h.HEADER.FIELD|m.FIELD exact|wildcard|lpm");
      SpecKey key{std::string(words_[0]), SpecMatch::exact};
      if (words_[1] == "wildcard")
        key.match = SpecMatch::wildcard;
      else if (words_[1] == "lpm")
        key.match = SpecMatch::lpm;
      else
        expect(words_[1] == "exact", "exact, wildcard or lpm");
      table.keys.push_back(std::move(key));
    }
    const auto owner = [](const SpecKey& k) { return k.field.substr(0, k.field.rfind('.')); };
    for (const SpecKey& key : table.keys) {
      if (owner(key) != owner(table.keys.front()))
        fail("the keys of a table lie in one header or in the metadata");
    }
  }

  void parse_table_actions(SpecTable& table) {
    expect(words_.size() == 2 && words_[1] == "{", "actions {");
    for (need("actions"); !closes(); need("actions")) {
      SpecTableAction action{known_action(words_[0]), true, true};
      if (words_.size() == 2 && words_[1] == "@tableonly")
        action.as_default = false;
      else if (words_.size() == 2 && words_[1] == "@defaultonly")
        action.in_table = false;
      else
        expect(words_.size() == 1, "ACTION [@tableonly|@defaultonly]");
      table.actions.push_back(std::move(action));
    }
  }

  std::string known_action(std::string_view name) const {
    const auto same = [&](const SpecAction& a) { return a.name == name; };
    if (std::none_of(spec_.actions.begin(), spec_.actions.end(), same))
      fail("there is no action '" + std::string(name) + "'");
    return std::string(name);
  }

  void parse_default(SpecTable& table) {
    expect(words_.size() >= 4 && words_[2] == "args", "default_action NAME args none|... [const]");
    table.default_action = known_action(words_[1]);
    std::size_t end = words_.size();
    if (words_[end - 1] == "const") {
      table.default_is_const = true;
      --end;
    }
    if (words_[3] == "none") return;
    for (std::size_t i = 3; i < end; ++i)
      table.default_arguments += (i == 3 ? "" : " ") + std::string(words_[i]);
  }

  void finish() const {
    if (spec_.instructions.empty()) fail("there is no apply block");
    if (spec_.metadata.empty()) fail("there is no metadata");
    check_size(*spec_.find_struct(spec_.metadata), "metadata");
  }

  std::string_view text_;
  std::string name_;  // of the file of the line
  std::size_t at_ = 0;
  int line_ = 0;
  Words words_;
  Spec spec_;
};

template <typename T>
const T* named(const std::vector<T>& all, std::string_view name) {
  for (const T& one : all) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

}  // namespace

std::uint32_t SpecStruct::bytes() const {
  std::uint32_t bits = 0;
  for (const SpecField& f : fields) bits += f.bits;
  return bits / 8;
}

const SpecStruct* Spec::find_struct(std::string_view name) const { return named(structs, name); }
const SpecTable* Spec::find_table(std::string_view name) const { return named(tables, name); }

Spec parse_spec(std::string_view text, const std::string& name) {
  return Parser(text, name).parse();
}

}  // namespace ghostrank::dpdk
