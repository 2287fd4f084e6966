// Sums in registers: those that are shortened, and those that must stay.
#include "switch/dpdk/sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ghostrank::dpdk {
namespace {

using testing::ElementsAre;

// Shortens a program of these instructions between rx and tx.
std::vector<std::string> with_shorter_sums(const std::string& body, int sums) {
  Spec spec = parse_spec(
      "struct h_t {\n bit<32> a\n bit<32> b\n bit<64> wide\n}\nheader h instanceof h_t\n"
      "struct m_t {\n bit<32> port\n bit<32> at\n bit<32> old\n bit<64> wide\n}\n"
      "metadata instanceof m_t\nregarray r size 16 initval 0\n"
      "apply {\nrx m.port\n" +
          body + "tx m.port\n}\n",
      "x.spec");
  EXPECT_EQ(shorten_sums(spec), sums);
  return {spec.instructions.begin() + 1, spec.instructions.end() - 1};
}

constexpr const char* kCollect = "regrd m.old r m.at\nadd m.old h.h.a\nregwr r m.at m.old\n";
constexpr const char* kAdd = "regrd m.old r m.at\nadd h.h.a m.old\nregwr r m.at h.h.a\n";

TEST(ShortenSums, AddsInTheRegisterWhereNobodyLooks) {
  EXPECT_THAT(with_shorter_sums(kCollect, 1), ElementsAre("regadd r m.at h.h.a"));
}

TEST(ShortenSums, ReadsTheSumBackWhereTheFieldGetsIt) {
  EXPECT_THAT(with_shorter_sums(kAdd, 1), ElementsAre("regadd r m.at h.h.a", "regrd h.h.a r m.at"));
}

TEST(ShortenSums, LeavesAValueThatIsReadLater) {
  for (const char* reader :
       {"mov h.h.b m.old\n", "add h.h.b m.old\n", "jmpeq L m.old 0x0\nL : mov m.at 0x1\n",
        "mov m.at 0x1\nregwr r m.at m.old\n", "add m.old 0x1\n"}) {
    with_shorter_sums(std::string(kCollect) + reader, 0);
    with_shorter_sums(std::string(kAdd) + reader, 0);
    with_shorter_sums(std::string(reader) + kCollect, 0);
  }
}

TEST(ShortenSums, IsNotStoppedByAValueThatIsWrittenFirst) {
  with_shorter_sums(std::string(kCollect) + "mov m.old 0x1\nmov h.h.b m.old\n", 1);
  with_shorter_sums(std::string(kCollect) + kAdd, 2);
}

TEST(ShortenSums, DoesNotTrustAWriteThatAJumpMayPass) {
  with_shorter_sums(
      std::string(kCollect) + "jmpeq L m.at 0x0\nmov m.old 0x1\nL : mov h.h.b m.old\n", 0);
}

TEST(ShortenSums, LeavesWhatIsJumpedInto) {
  with_shorter_sums(
      "jmpeq L m.at 0x0\nregrd m.old r m.at\nL : add m.old h.h.a\nregwr r m.at m.old\n", 0);
}

TEST(ShortenSums, LeavesOtherCellsAndOtherFields) {
  with_shorter_sums("regrd m.old r m.at\nadd m.old h.h.a\nregwr r m.port m.old\n", 0);
  with_shorter_sums("regrd m.old r m.at\nadd m.old m.old\nregwr r m.at m.old\n", 0);
  with_shorter_sums("regrd m.old r m.old\nadd m.old h.h.a\nregwr r m.old m.old\n", 0);
  with_shorter_sums("regrd m.old r m.at\nadd m.old 0x1\nregwr r m.at m.old\n", 0);
}

// A cell holds 64 bits, so a wider field would see the carry.
TEST(ShortenSums, LeavesRegistersThatFieldsOfSeveralWidthsSee) {
  with_shorter_sums(std::string(kCollect) + "regrd m.wide r m.at\n", 0);
  with_shorter_sums("regrd m.old r m.at\nadd m.old h.h.wide\nregwr r m.at m.old\n", 0);
}

}  // namespace
}  // namespace ghostrank::dpdk
