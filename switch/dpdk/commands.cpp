#include "switch/dpdk/commands.h"

#include <sstream>
#include <stdexcept>

namespace ghostrank::dpdk {
namespace {

// Sets cells [first, first + count) to `value`.
struct Fill {
  std::string name;
  std::uint32_t first = 0, count = 1;
  std::uint64_t value = 0;
};

Fill fill_of(std::istringstream& words, bool clear, const std::string& line) {
  Fill fill;
  words >> fill.name >> fill.first;
  if (clear)
    words >> fill.count;
  else
    words >> fill.value;
  if (!words)
    throw std::runtime_error("'" + line + "' is not of the form " +
                             (clear ? "clear NAME FIRST COUNT" : "register NAME INDEX VALUE"));
  return fill;
}

}  // namespace

void obey(const std::vector<std::string>& lines, Pipeline& pipeline) {
  std::vector<TableEntry> entries;
  std::vector<Fill> fills;
  for (const std::string& line : lines) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    if (word == "register" || word == "clear") {
      fills.push_back(fill_of(words, word == "clear", line));
      continue;
    }
    TableEntry entry{word, {}, word == "delete"};
    if (entry.remove) words >> entry.table;
    std::getline(words, entry.text);
    entries.push_back(std::move(entry));
  }
  pipeline.drain();
  if (!entries.empty()) pipeline.change(entries);
  for (const Fill& fill : fills) {
    for (std::uint32_t i = 0; i < fill.count; ++i)
      pipeline.write_register(fill.name, fill.first + i, fill.value);
  }
}

}  // namespace ghostrank::dpdk
