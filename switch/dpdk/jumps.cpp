#include "switch/dpdk/jumps.h"

#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace ghostrank::dpdk {
namespace {

struct Line {
  std::string label;  // empty: none
  std::vector<std::string> words;
};
using Code = std::vector<Line>;

Line line_of(const std::string& text) {
  Line line;
  std::istringstream in(text);
  for (std::string word; in >> word;) line.words.push_back(word);
  if (line.words.size() > 2 && line.words[1] == ":") {
    line.label = line.words[0];
    line.words.erase(line.words.begin(), line.words.begin() + 2);
  }
  return line;
}

std::string text_of(const Line& line) {
  std::string text = line.label.empty() ? "" : line.label + " :";
  for (const std::string& word : line.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

bool is_jump(const Line& line) { return line.words.size() > 1 && line.words[0].starts_with("jmp"); }
bool always(const Line& line) { return line.words[0] == "jmp"; }

std::optional<std::uint64_t> constant(const std::string& word) {
  if (word.empty() || word[0] < '0' || word[0] > '9') return std::nullopt;
  return std::strtoull(word.c_str(), nullptr, 0);
}

// The jump with the opposite condition, to `target`; empty if DPDK has no instruction for it.
std::optional<Line> opposite(const Line& jump, const std::string& target) {
  static const std::map<std::string, std::string> kOpposites{
      {"jmpeq", "jmpneq"}, {"jmpneq", "jmpeq"}, {"jmpv", "jmpnv"}, {"jmpnv", "jmpv"},
      {"jmph", "jmpnh"},   {"jmpnh", "jmph"},   {"jmpa", "jmpna"}, {"jmpna", "jmpa"}};
  Line line = jump;
  line.words[1] = target;
  if (const auto known = kOpposites.find(jump.words[0]); known != kOpposites.end()) {
    line.words[0] = known->second;
    return line;
  }
  if (jump.words.size() != 4) return std::nullopt;
  const auto bound = constant(jump.words[3]);
  const bool less = jump.words[0] == "jmplt";
  const std::uint64_t last = less ? 0 : std::numeric_limits<std::uint64_t>::max();
  if (!bound || *bound == last || (!less && jump.words[0] != "jmpgt")) return std::nullopt;
  line.words[0] = less ? "jmpgt" : "jmplt";
  line.words[3] = std::to_string(less ? *bound - 1 : *bound + 1);
  return line;
}

// Turns "jmpX T; jmp E; T : ..." into "jmp(not X) E; T : ...".
int turn_around(Code& code) {
  int turned = 0;
  for (std::size_t i = 0; i + 2 < code.size(); ++i) {
    const Line &jump = code[i], &around = code[i + 1];
    if (!is_jump(jump) || always(jump) || !is_jump(around) || !always(around)) continue;
    if (!around.label.empty() || code[i + 2].label != jump.words[1]) continue;
    const auto turned_jump = opposite(jump, around.words[1]);
    if (!turned_jump) continue;
    code[i] = *turned_jump;
    code.erase(code.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ++turned;
  }
  return turned;
}

// Whether `at` jumps if `from` has just jumped to it; empty: unknown.
std::optional<bool> outcome(const Line& from, const Line& at) {
  if (!is_jump(at)) return std::nullopt;
  if (always(at)) return true;
  const auto compares = [](const Line& l) {
    return l.words.size() == 4 && (l.words[0] == "jmpeq" || l.words[0] == "jmpneq") &&
           constant(l.words[3]);
  };
  if (!compares(from) || !compares(at) || from.words[2] != at.words[2]) return std::nullopt;
  const bool was_equal = from.words[0] == "jmpeq", asks_equal = at.words[0] == "jmpeq";
  if (*constant(from.words[3]) == *constant(at.words[3])) return was_equal == asks_equal;
  if (was_equal) return !asks_equal;  // it equals the other number
  return std::nullopt;
}

int lead_on(Code& code) {
  std::map<std::string, std::size_t> labels;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (!code[i].label.empty()) labels[code[i].label] = i;
  }
  int led = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    std::set<std::string> been;  // stops at a loop of jumps
    while (is_jump(code[i]) && been.insert(code[i].words[1]).second) {
      const auto found = labels.find(code[i].words[1]);
      if (found == labels.end()) break;
      const Line& at = code[found->second];
      const auto jumps = outcome(code[i], at);
      if (!jumps || (!*jumps && found->second + 1 == code.size())) break;
      std::string target = at.words[1];
      if (!*jumps) {
        Line& next = code[found->second + 1];
        if (next.label.empty()) {
          next.label = "BEHIND_" + found->first;
          labels[next.label] = found->second + 1;
        }
        target = next.label;
      }
      code[i].words[1] = std::move(target);
      ++led;
    }
  }
  return led;
}

int shorten(std::vector<std::string>& list) {
  Code code;
  for (const std::string& text : list) code.push_back(line_of(text));
  const int shortened = turn_around(code) + lead_on(code);
  list.clear();
  for (const Line& line : code) list.push_back(text_of(line));
  return shortened;
}

}  // namespace

int shorten_jumps(Spec& spec) {
  int shortened = shorten(spec.instructions);
  for (SpecAction& action : spec.actions) shortened += shorten(action.instructions);
  return shortened;
}

}  // namespace ghostrank::dpdk
