// What processes send each other as bytes: values, and the report of a segment.
#include "emulator/common/blob.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/segment.h"

namespace ghostrank {
namespace {

TEST(Blob, GivesBackWhatWasPutAndNeverReadsPastItsEnd) {
  BlobWriter w;
  w.put(42);
  w.put(std::string("text"));
  w.put(std::vector<double>{1.5, 2.5});
  const std::string bytes = w.bytes();
  int number = 0;
  std::string text;
  std::vector<double> values;
  BlobReader r(bytes);
  r.get(number), r.get(text), r.get(values);
  EXPECT_FALSE(r.bad());
  EXPECT_EQ(number, 42);
  EXPECT_EQ(text, "text");
  EXPECT_EQ(values, (std::vector<double>{1.5, 2.5}));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    BlobReader shorter(std::string_view(bytes).substr(0, cut));
    shorter.get(number), shorter.get(text), shorter.get(values);
    EXPECT_TRUE(shorter.bad()) << cut;
  }
}

TEST(Blob, OfTextIsItsLengthAndItsBytesWhateverHoldsIt) {
  const std::string wanted("\4\0\0\0text", 8);
  EXPECT_EQ(BlobWriter().put("text").bytes(), wanted);
  EXPECT_EQ(BlobWriter().put(std::string("text")).bytes(), wanted);
  EXPECT_EQ(BlobWriter().put(std::string_view("text")).bytes(), wanted);
  EXPECT_EQ(BlobReader(wanted).get<std::string>(), "text");
}

TEST(Blob, TakesNoMemoryForWhatItsLengthsClaim) {
  constexpr std::uint32_t kClaimed = ~0u;  // a reader that believed it would take 4 to 128 GiB
  for (const std::string& behind : {std::string(), std::string(100, 'x')}) {
    const std::string claim = BlobWriter().put(kClaimed).bytes() + behind;
    std::string text = "before";
    std::vector<double> values;
    std::vector<std::string> texts;
    const auto goes_bad = [&](auto& into) {
      BlobReader r(claim);
      r.get(into);
      EXPECT_TRUE(r.bad());
      EXPECT_FALSE(r.complete());
      EXPECT_TRUE(into.empty());
      EXPECT_LE(into.capacity(), 100u);
      EXPECT_EQ(r.template get<std::uint8_t>(), 0)
          << "bytes behind what was malformed are not read";
    };
    goes_bad(text), goes_bad(values), goes_bad(texts);
  }
  // Two texts, the second of which has no length.
  std::vector<std::string> texts;
  BlobReader r(std::string_view("\2\0\0\0\1\0\0\0\1\0\0\0", 12));
  r.get(texts);
  EXPECT_TRUE(r.bad());
}

TEST(Blob, ReadsNoTruthButZeroAndOne) {
  for (const int byte : {0, 1, 2, 255}) {
    const std::string bytes(1, static_cast<char>(byte));
    BlobReader r(bytes);
    EXPECT_EQ(r.get<bool>(), byte == 1);
    EXPECT_EQ(r.bad(), byte > 1);
  }
}

TEST(SegmentReport, SurvivesItsJourney) {
  SegmentReport report;
  report.host = {Host(3), "node3", "net", "tcp-cubic", 32, 1000, 1.5};
  report.lateness_ns.add(17);
  report.end = {5, 6};
  report.checked = 7;
  report.rows.push_back({2, 200, {0, kPicosPerSecond / 2}, {}});
  for (int i = 0; i < 2; ++i) report.rows.back().seconds.add(0.25, i);
  report.rows.back().without_lateness.add(0.125, 0);
  report.held_up = 0.03;
  report.throttled = -1;
  report.ledger.push_back({{Nic(1), Nic(2), 3}, {400, 4}});
  report.interfaces.push_back(
      {Host(3), "gr3", "eth0", 10, std::nullopt, true, {{5, std::nullopt}}, {{"rx_dropped", 3}}});
  report.spilled = 1;
  report.spilled_by_nic = {{{100, 1}, {200, 2}}};
  report.spill_paths = {"pairs.csv.0", "pairs.csv.1"};
  report.gaps = {{{1, 2}, {3, kEndless}}, {}};
  report.spans.push_back({WorldRank(1), Host(3), 0, 1, "bucket 0", 10, 20, 4096});
  const SegmentReport copy = SegmentReport::from_blob(report.to_blob()).value();
  EXPECT_EQ(copy.host.hostname, "node3");
  EXPECT_EQ(copy.lateness_ns.max(), 17u);
  EXPECT_EQ(copy.lateness_ns.quantile(0.5), 17u);
  EXPECT_EQ(copy.end.slip, 6);
  EXPECT_EQ(copy.held_up, report.held_up);
  EXPECT_EQ(copy.throttled, -1);
  EXPECT_EQ(copy.rows.at(0).without_lateness.values(), (std::vector{0.125f}));
  EXPECT_EQ(copy.rows.at(0).seconds.values(), (std::vector{0.25f, 0.25f}));
  EXPECT_EQ(copy.ledger.at(0).count.bytes, 400u);
  EXPECT_EQ(copy.interfaces.at(0).tx_bytes, 10u);
  EXPECT_FALSE(copy.interfaces.at(0).rx_bytes.has_value());
  EXPECT_EQ(copy.interfaces.at(0).network_namespace, "gr3");
  EXPECT_TRUE(copy.interfaces.at(0).loopback);
  EXPECT_EQ(copy.interfaces.at(0).iterations.at(0).tx_bytes, 5u);
  EXPECT_EQ(copy.interfaces.at(0).counters.at(0).second, 3u);
  EXPECT_EQ(copy.spilled, 1u);
  EXPECT_EQ(copy.spilled_by_nic.at(Nic(0)).received.bytes, 200u);
  EXPECT_EQ(copy.spill_paths.at(1), "pairs.csv.1");
  EXPECT_EQ(copy.gaps.at(0).at(1).from, 3);
  EXPECT_EQ(copy.spans.at(0).label, "bucket 0");
}

TEST(SegmentReport, IsOfTheJobOnlyIfAllThatItNumbersIsThere) {
  const JobSizes job{.rows = 2, .nics = 4, .parties = 6};
  const auto could_be = [&](const auto& change) {
    SegmentReport report;
    report.ledger.push_back({{Nic(3), Nic(0), 1}, {400, 4}});
    report.intra.resize(2);
    report.helpers.push_back({WorldParty(5)});
    change(report);
    return report.could_be_of(job);
  };
  EXPECT_TRUE(could_be([](SegmentReport&) {}));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.ledger[0].key.row = 2; }));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.ledger[0].key.source_nic = Nic(4); }));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.ledger[0].key.target_nic = Nic(-1); }));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.rows.resize(3); }));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.intra.resize(3); }));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.spilled_by_nic.resize(5); }));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.helpers[0].party = WorldParty(6); }));
  EXPECT_FALSE(could_be([](SegmentReport& r) { r.helpers[0].party = WorldParty(-1); }));
}

}  // namespace
}  // namespace ghostrank
