// See net_table.h. After two heading lines the table has a line of 16 numbers per device:
//
//     eth0:  bytes packets errs drop fifo frame compressed multicast   bytes packets errs drop …
//            received                                                  sent
#include "emulator/host/net_table.h"

#include <array>
#include <sstream>
#include <string_view>

namespace ghostrank {

Counters NetTable::of(const std::string& device) {
  constexpr std::array<std::string_view, 16> kColumns{
      "rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "", "", "", "",
      "tx_bytes", "tx_packets", "tx_errors", "tx_dropped", "", "", "", ""};
  file_.clear();
  file_.seekg(0);
  for (std::string line; std::getline(file_, line);) {
    const std::size_t colon = line.find(':'), begin = line.find_first_not_of(' ');
    if (colon == std::string::npos || line.compare(begin, colon - begin, device) != 0) continue;
    Counters counters;
    std::istringstream numbers(line.substr(colon + 1));
    for (const std::string_view name : kColumns) {
      std::uint64_t value = 0;
      if (numbers >> value && !name.empty()) counters.emplace(name, value);
    }
    return counters;
  }
  return {};
}

}  // namespace ghostrank
