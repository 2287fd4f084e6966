// Compares the ledger of a result with captures of a real run of the same job: payload bytes by
// pair of hosts.
//
// Errors are Error(usage). Threading: pure functions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/compare/wire_capture.h"
#include "tools/report/result_json.h"

namespace ghostrank {

// A machine of the real run: its addresses, and the emulated nodes whose work it did.
struct WireHost {
  std::string name;                   // "n0", "n0-3"
  std::vector<NetAddress> addresses;  // one per NIC
  std::set<int> nodes;
};
WireHost parse_wire_host(const std::string& text);  // "10.0.0.1,10.1.0.1=0-3"

struct WireDiffRow {
  std::size_t source = 0, target = 0;  // into hosts
  double ledger = 0;                   // bytes per iteration
  WireTraffic captured;                // of all iterations
};

struct WireDiff {
  std::vector<WireHost> hosts;
  bool hosts_guessed = false;  // addresses in order are nodes in order
  double iterations = 0;       // in the capture
  bool iterations_guessed = false;
  std::vector<WireDiffRow> rows;    // pairs of hosts that the ledger or the capture has
  double inside = 0;                // ledger's bytes per iteration between nodes of one host
  std::uint64_t other_payload = 0;  // captured bytes from or to addresses of no host

  // captured / (ledger x iterations) - 1; 0 where nothing is in either.
  double difference(const WireDiffRow& row) const;
  WireDiffRow total() const;
};

// Without hosts, the sorted addresses that exchange payload are taken for the nodes in order; there
// must be as many. Without iterations, takes the nearest whole number of them.
WireDiff diff_wire(const StoredResult& result, const WireCapture& capture,
                   std::vector<WireHost> hosts, std::optional<double> iterations);

std::string wire_diff_text(const WireDiff& diff, const WireCapture& capture);
std::string wire_diff_json(const WireDiff& diff, const WireCapture& capture,
                           const std::string& result);  // ghostrank/diff/1
// source,target,start_s,bytes: payload in intervals of `interval_s` of the capture's clock.
std::string wire_over_time_csv(const WireDiff& diff, double interval_s);

}  // namespace ghostrank
