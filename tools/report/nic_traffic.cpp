#include "tools/report/nic_traffic.h"

#include <algorithm>
#include <map>

#include "tools/report/result_json.h"
#include "tools/text/humane.h"

namespace ghostrank {

std::vector<NicTraffic> nic_traffic(std::span<const PairTraffic> pairs) {
  std::map<Nic, NicTraffic> by_nic;
  for (const PairTraffic& pair : pairs) {
    NicTraffic& source = by_nic[pair.source_nic];
    source.tx_bytes += pair.bytes;
    source.tx_messages += pair.messages;
    NicTraffic& target = by_nic[pair.target_nic];
    target.rx_bytes += pair.bytes;
    target.rx_messages += pair.messages;
  }
  std::vector<NicTraffic> list;
  for (auto& [nic, traffic] : by_nic) {
    traffic.nic = nic;
    list.push_back(traffic);
  }
  return list;
}

std::string nic_line(std::span<const NicTraffic> nics, int nics_per_node) {
  double bytes = 0, senders = 0;
  for (const NicTraffic& nic : nics) {
    bytes += nic.tx_bytes;
    senders += nic.tx_messages > 0 ? 1 : 0;
  }
  if (senders == 0) return "";
  const auto busiest = std::max_element(
      nics.begin(), nics.end(),
      [](const NicTraffic& a, const NicTraffic& b) { return a.tx_bytes < b.tx_bytes; });
  return humane_count(senders, "NIC") + " send " + humane_bytes(bytes / senders) +
         " on average, the busiest (" + nic_name(busiest->nic, nics_per_node) + ") " +
         humane_bytes(busiest->tx_bytes);
}

}  // namespace ghostrank
