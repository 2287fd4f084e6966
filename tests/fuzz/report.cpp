// The report of a segment that processes send each other, with all its parts, damaged. A blob that
// decodes must encode to as many bytes, and these must decode to the same report.
#include "emulator/segment.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::string sample() {
  using namespace ghostrank;
  SegmentReport report;
  report.host = {Host(1), "node1", "net", "tcp-cubic", 8, 1 << 20, 0.5};
  report.end = {1000, 10};
  report.rows.emplace_back().calls = 2;
  report.rows.back().bytes = 200;
  report.rows.back().total.add(500'000'000'000);
  for (int i = 0; i < 2; ++i) report.rows.back().seconds.add(0.25, i);
  report.ledger.push_back({{Nic(1), Nic(2), 3}, {400, 4}});
  report.spilled_by_nic.resize(4);
  report.spill_paths = {"pairs.csv.0", "pairs.csv.1"};
  report.interfaces.emplace_back().device = "eth0";
  report.interfaces.back().tx_bytes = 10;
  report.interfaces.back().iterations.push_back({5, std::nullopt});
  report.interfaces.back().counters.emplace_back("rx_dropped", 3);
  report.spans.push_back({WorldRank(1), Host(1), 0, 1, "bucket 0", 10, 20, 4096});
  return report.to_blob();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const std::string whole = sample();
  const std::string blob = fuzz::damaged(whole, data, size);
  if (const auto report = SegmentReport::from_blob(blob)) {
    const std::string once = report->to_blob();
    fuzz::require(once.size() == blob.size());
    const auto again = SegmentReport::from_blob(once);
    fuzz::require(again && again->to_blob() == once);
    ++fuzz::accepted;
  }
  return 0;
}
