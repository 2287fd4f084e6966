#include "switch/dpdk/expand.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace ghostrank::dpdk {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 8;                // files that include each other
constexpr std::size_t kMostRepeats = 256;  // as many registers as a program has

class Expander {
 public:
  explicit Expander(const std::vector<std::string>& folders) : folders_(folders) {}

  void add(const fs::path& path, int depth) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error(path.string() + ": cannot be opened");
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
    add(path, lines, 0, lines.size(), depth);
  }
  const std::string& text() const { return text_; }

 private:
  [[noreturn]] static void fail(const fs::path& path, std::size_t at, const std::string& what) {
    throw std::runtime_error(path.string() + ":" + std::to_string(at + 1) + ": " + what);
  }

  // Lines [begin, end) of a file.
  void add(const fs::path& path, const std::vector<std::string>& lines, std::size_t begin,
           std::size_t end, int depth) {
    place(path, begin);
    for (std::size_t at = begin; at < end; ++at) {
      const std::string line = filled(path, at, lines[at]);
      std::istringstream words(line.substr(0, line.find("//")));
      std::string word, name, value, more;
      words >> word >> name >> value >> more;
      if (word == "set") {
        if (value.empty() || !more.empty()) fail(path, at, "expected: set NAME VALUE");
        values_[name] = value;
        text_ += '\n';
      } else if (word == "include") {
        if (name.empty() || !value.empty()) fail(path, at, "expected: include FILE");
        if (depth == kDeepest) fail(path, at, "files include each other; leave one out");
        add(found(path, at, name), depth + 1);
        place(path, at + 1);
      } else if (word == "repeat") {
        if (name.empty() || !value.empty()) fail(path, at, "expected: repeat COUNT");
        const std::size_t last = end_of(path, lines, at, end);
        repeat(path, lines, at, last, count_of(path, at, name), depth);
        at = last;
        place(path, at + 1);
      } else if (word == "end") {
        fail(path, at, "'end' without 'repeat' before it");
      } else {
        text_ += line + '\n';
      }
    }
  }

  void repeat(const fs::path& path, const std::vector<std::string>& lines, std::size_t at,
              std::size_t last, std::size_t count, int depth) {
    auto outer = values_.extract("i");  // of a repeat that includes this file
    for (std::size_t i = 0; i < count; ++i) {
      values_["i"] = std::to_string(i);
      add(path, lines, at + 1, last, depth);
    }
    values_.erase("i");
    values_.insert(std::move(outer));
  }

  void place(const fs::path& path, std::size_t next) {
    text_ += "#line " + std::to_string(next + 1) + " " + path.string() + '\n';
  }

  static std::size_t end_of(const fs::path& path, const std::vector<std::string>& lines,
                            std::size_t repeat, std::size_t end) {
    for (std::size_t at = repeat + 1; at < end; ++at) {
      std::istringstream words(lines[at]);
      std::string word;
      words >> word;
      if (word == "repeat") fail(path, at, "'repeat' within another one; write one of them out");
      if (word == "end") return at;
    }
    fail(path, repeat, "there is no 'end' for this 'repeat'");
  }

  static std::size_t count_of(const fs::path& path, std::size_t at, const std::string& word) {
    std::size_t count = 0;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc{} || rest != word.data() + word.size() || count > kMostRepeats)
      fail(path, at, "'" + word + "' is not a number from 0 to " + std::to_string(kMostRepeats));
    return count;
  }

  fs::path found(const fs::path& from, std::size_t at, const std::string& name) const {
    std::string looked = from.parent_path().string();
    if (fs::path beside = from.parent_path() / name; fs::exists(beside)) return beside;
    for (const std::string& folder : folders_) {
      if (fs::path file = fs::path(folder) / name; fs::exists(file)) return file;
      looked += ", " + folder;
    }
    fail(from, at, "there is no file '" + name + "' in " + looked);
  }

  // The line with values in place of {NAME}s. In comments they stay.
  std::string filled(const fs::path& path, std::size_t at, std::string line) const {
    for (std::size_t open = 0; (open = line.find('{', open)) != std::string::npos;) {
      const std::size_t close = line.find('}', open);
      if (line.find("//") < open || close == std::string::npos || close == open + 1) break;
      const std::string name = line.substr(open + 1, close - open - 1);
      const auto value = values_.find(name);
      if (value == values_.end())
        fail(path, at, "'{" + name + "}' has no value; write 'set " + name + " VALUE' before it");
      line.replace(open, close + 1 - open, value->second);
      open += value->second.size();
    }
    return line;
  }

  const std::vector<std::string>& folders_;
  std::map<std::string, std::string> values_;
  std::string text_;
};

}  // namespace

std::string expand_spec(const std::string& path, const std::vector<std::string>& folders) {
  Expander expander(folders);
  expander.add(path, 0);
  return expander.text();
}

}  // namespace ghostrank::dpdk
