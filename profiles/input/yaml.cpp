#include "profiles/input/yaml.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_set>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "profiles/error.h"
#include "profiles/input/input_file.h"

namespace ghostrank {
namespace {

// Bytes of the UTF-8 character that `text` begins with; 0: of none.
std::size_t utf8_size(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead < 0x80                   ? 1
                           : lead >= 0xc2 && lead < 0xe0 ? 2
                           : lead >= 0xe0 && lead < 0xf0 ? 3
                           : lead >= 0xf0 && lead < 0xf5 ? 4
                                                         : 0;
  if (size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  return size;
}

// Builds the tree from parser events; the open lists and maps form a stack.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

  YamlValue take() { return std::move(root_); }
  const Mark& latest() const { return latest_; }  // of the value read last

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& at, YAML::anchor_t anchor) override {
    add(leaf(YamlValue::Kind::null, at), anchor);
  }
  void OnScalar(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    YamlValue value = leaf(YamlValue::Kind::scalar, at);
    refuse_tag(value.mark, tag);
    value.quoted = tag == "!";
    value.text = text;
    add(std::move(value), anchor);
  }
  void OnAlias(const YAML::Mark& at, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    const Mark here = mark(at);
    if (known == anchors_.end())
      fail(here, "an alias stands inside the value it refers to; write the value out");
    count(known->second, static_cast<int>(open_.size()), here);
    YamlValue copy = known->second;
    copy.mark = here;
    attach(std::move(copy));
  }
  void OnSequenceStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(YamlValue::Kind::list, at, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(YamlValue::Kind::map, at, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlValue value;
    YAML::anchor_t anchor = 0;
    bool has_key = false;  // a map's next value belongs to `key`
    std::string key;
    Mark key_mark;
    std::unordered_set<std::string> keys;
  };

  Mark mark(const YAML::Mark& at) const {
    return {source_, std::max(at.line, 0) + 1, std::max(at.column, 0) + 1};
  }
  YamlValue leaf(YamlValue::Kind kind, const YAML::Mark& at) const {
    YamlValue value;
    value.kind = kind;
    value.mark = mark(at);
    return value;
  }
  static void refuse_tag(const Mark& at, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(at, "the tag " + quote(tag) + " has no meaning here; remove it");
  }

  void start(YamlValue::Kind kind, const YAML::Mark& at, const std::string& tag,
             YAML::anchor_t anchor) {
    Open open;
    open.value = leaf(kind, at);
    open.anchor = anchor;
    refuse_tag(open.value.mark, tag);
    check_depth(static_cast<int>(open_.size()) + 1, open.value.mark);
    if (!open_.empty() && open_.back().value.is_map() && !open_.back().has_key)
      fail(
          open.value.mark,
          "a key must be a plain name; write 'name: value', and close the bracket that opens here");
    open_.push_back(std::move(open));
  }
  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.value), done.anchor);
  }

  void add(YamlValue value, YAML::anchor_t anchor) {
    count_one(value, value.mark);
    latest_ = value.mark;
    if (anchor != 0) {
      count(value, static_cast<int>(open_.size()), value.mark);
      anchors_[anchor] = value;
    }
    attach(std::move(value));
  }

  void attach(YamlValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.is_map() && !parent.has_key) {
      take_key(parent, value);
      return;
    }
    if (parent.value.is_map()) {
      value.key = std::move(parent.key);
      value.key_mark = parent.key_mark;
      parent.has_key = false;
    }
    parent.value.children.push_back(std::move(value));
  }

  static void take_key(Open& parent, const YamlValue& key) {
    if (!key.is_scalar()) fail(key.mark, "a key must be a plain name; write 'name: value'");
    if (!parent.keys.insert(key.text).second)
      fail(key.mark, "the key " + quote(key.text) + " is given twice; remove one of them");
    parent.has_key = true;
    parent.key = key.text;
    parent.key_mark = key.mark;
  }

  static void check_depth(int depth, const Mark& at) {
    if (depth > kMaxYamlDepth)
      fail(at, "lists and mappings are nested deeper than " + std::to_string(kMaxYamlDepth) +
                   " levels; flatten the file");
  }
  void count_one(const YamlValue& value, const Mark& at) {
    ++nodes_;
    text_ += value.text.size() + value.key.size();
    if (nodes_ > kMaxYamlNodes || text_ > kMaxYamlText)
      fail(at, "the file grows beyond " + std::to_string(kMaxYamlNodes) +
                   " values with its aliases written out; make it smaller");
  }
  void count(const YamlValue& value, int depth, const Mark& at) {
    check_depth(depth, at);
    count_one(value, at);
    for (const YamlValue& child : value.children) count(child, depth + 1, at);
  }

  std::shared_ptr<const Source> source_;
  YamlValue root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlValue> anchors_;
  Mark latest_;
  std::size_t nodes_ = 0, text_ = 0;
};

}  // namespace

std::string location(const Mark& mark) {
  if (!mark.source) return "default";
  if (!mark.source->has_lines) return mark.source->name;
  return mark.source->name + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

std::string origin(const Mark& mark) {
  if (!mark.source) return "default";
  if (!mark.source->has_lines) return mark.source->origin;
  return mark.source->origin + ":" + std::to_string(mark.line);
}

const YamlValue* YamlValue::find(std::string_view name) const {
  if (kind != Kind::map) return nullptr;
  const auto at = std::find_if(children.begin(), children.end(),
                               [&](const YamlValue& child) { return child.key == name; });
  return at == children.end() ? nullptr : &*at;
}

YamlValue* YamlValue::find(std::string_view name) {
  return const_cast<YamlValue*>(static_cast<const YamlValue*>(this)->find(name));
}

std::string quote(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string out = "'";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = utf8_size(text.substr(at));
    if (at + std::max<std::size_t>(size, 1) > kLongest) break;
    const bool shown = size > 1 || (size == 1 && text[at] >= 0x20 && text[at] != 0x7f);
    out += shown ? text.substr(at, size) : "?";
    at += std::max<std::size_t>(size, 1);
  }
  return out + (at < text.size() ? "…'" : "'");
}

std::string description(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null:
      return "nothing";
    case YamlValue::Kind::list:
      return "a list";
    case YamlValue::Kind::map:
      return "a mapping";
    case YamlValue::Kind::scalar:
      break;
  }
  return quote(value.text);
}

void fail(const Mark& mark, const std::string& what) { throw Error(location(mark) + ": " + what); }

YamlValue parse_yaml(std::string_view text, std::shared_ptr<const Source> source) {
  const Mark whole{source, 1, 1};
  if (text.size() > kMaxYamlBytes)
    fail(whole, "larger than " + std::to_string(kMaxYamlBytes >> 20) + " MiB; make it smaller");
  // Encodings of two or four bytes a character begin with a mark or with an ASCII character, of
  // which some bytes are 0.
  if (text.starts_with("\xfe\xff") || text.starts_with("\xff\xfe") ||
      text.substr(0, 4).find('\0') != std::string_view::npos)
    fail(whole, "not UTF-8 but UTF-16 or UTF-32, or no text; save it as UTF-8");
  // yaml-cpp closes an open quote at the end of the text, but refuses the end of a document inside
  // one.
  constexpr std::string_view kEnd = "\n...\n";
  const bool whole_lines = text.empty() || text.ends_with('\n');
  TreeBuilder builder(source);
  try {
    std::istringstream stream{std::string(text) + std::string(kEnd.substr(whole_lines))};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return YamlValue{.mark = whole};
    YamlValue root = builder.take();
    TreeBuilder rest(source);
    if (parser.HandleNextDocument(rest))
      fail(rest.take().mark, "a second document begins; keep one per file");
    return root;
  } catch (const YAML::Exception& error) {
    if (error.msg == YAML::ErrorMsg::DOC_IN_SCALAR)
      fail(builder.latest().source ? builder.latest() : whole,
           "a quote is opened here or after this and never closed; close it");
    const bool known = !error.mark.is_null();
    fail({source, known ? error.mark.line + 1 : 1, known ? error.mark.column + 1 : 1},
         "not valid YAML (" + error.msg + "); correct the syntax");
  }
}

YamlValue parse_yaml_file(const std::string& path) {
  return parse_yaml(read_input(path, "check the path", kMaxYamlBytes),
                    std::make_shared<Source>(Source{path, path, true}));
}

}  // namespace ghostrank
