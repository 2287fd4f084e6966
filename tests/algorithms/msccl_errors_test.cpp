// Wrong MSCCL files: each is refused with the line and the reason, whatever its bytes are.
#include <random>

#include <gtest/gtest.h>

#include "collectives/check/checker.h"
#include "profiles/error.h"
#include "tests/algorithms/support.h"

namespace ghostrank {
namespace {

using testing::all_pairs_xml, testing::fused_ring_xml;

std::string error_of(const std::string& xml) {
  try {
    const auto algorithm = testing::parsed(xml);
    prove_msccl(algorithm, "test.xml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string changed(std::string xml, const std::string& what, const std::string& into) {
  const std::size_t at = xml.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return xml.replace(at, what.size(), into);
}

void expect_error(const std::string& xml, const std::string& begin, const std::string& part) {
  const std::string error = error_of(xml);
  EXPECT_TRUE(error.starts_with(begin)) << error;
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(WrongMscclFile, IsRefusedWithItsLine) {
  const std::string ring = fused_ring_xml(3, 2);
  expect_error("", "test.xml:1: ", "not XML");
  expect_error("<algo", "test.xml:1: ", "not XML");
  expect_error("<model/>", "test.xml:1: ", "expected <algo>");
  expect_error(changed(ring, "coll=\"allreduce\"", ""), "test.xml:1: ", "no attribute 'coll'");
  expect_error(changed(ring, "allreduce", "teleport"), "test.xml:1: ", "known are allreduce");
  expect_error(changed(ring, "Simple", "Fancy"), "test.xml:1: ", "known are Simple, LL and LL128");
  expect_error(changed(ring, "ngpus=\"3\"", "ngpus=\"3x\""), "test.xml:1: ", "a whole number");
  expect_error(changed(ring, "ngpus=\"3\"", "ngpus=\"4\""), "test.xml:1: ", "no <gpu> with id 3");
  expect_error(changed(ring, "gpu id=\"1\"", "gpu id=\"0\""), "test.xml:8: ", "second <gpu>");
  expect_error(changed(ring, "i_chunks=\"2\"", "i_chunks=\"5\""), "test.xml:2: ", "5 chunks");
  expect_error(changed(ring, "chan=\"0\"", "chan=\"1\""), "test.xml:3: ", "chan is '1'");
  expect_error(changed(ring, "send=\"1\"", "send=\"0\""), "test.xml:3: ", "its own peer");
  expect_error(changed(ring, "send=\"1\"", "send=\"-1\""), "test.xml:4: ", "a step that sends");
  expect_error(changed(ring, "type=\"s\"", "type=\"z\""), "test.xml:4: ", "known are s, r, rcs");
  expect_error(changed(ring, "s=\"1\" type", "s=\"7\" type"), "test.xml:5: ", "numbered from 0");
  expect_error(changed(ring, "srcbuf=\"i\"", "srcbuf=\"q\""), "test.xml:4: ", "known are i, o and");
  expect_error(changed(ring, "cnt=\"2\"", "cnt=\"3\""), "test.xml:4: ", "ends at chunk 3");
  expect_error(changed(ring, "depid=\"-1\"", "depid=\"4\""), "test.xml:4: ", "no such <tb>");
  expect_error(changed(ring, "depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"9\""),
               "test.xml:4: ", "has 2 steps");
  expect_error(changed(all_pairs_xml(4, true), "send=\"2\" recv=\"2\"", "send=\"1\" recv=\"2\""),
               "test.xml:", "has this peer on this channel");
}

TEST(WrongMscclFile, IsRefusedWithWhatTheCheckerFound) {
  const std::string pairs = all_pairs_xml(3, true);
  // Rank 0 adds before the other threadblock has received.
  expect_error(changed(pairs, "depid=\"1\" deps=\"1\"", "depid=\"-1\" deps=\"-1\""),
               "test.xml:7: the algorithm is wrong: rank 0 actor 0 step 3", "while actor 1");
  expect_error(changed(pairs, "type=\"re\"", "type=\"cpy\""),
               "test.xml:", "ends with wrong content");
  expect_error(changed(pairs, "depid=\"1\" deps=\"1\"", "depid=\"1\" deps=\"4\""),
               "test.xml:", "deadlock");
  expect_error(changed(pairs, "inplace=\"1\"", "inplace=\"0\""),
               "test.xml:", "writes its input buffer");
  expect_error(changed(fused_ring_xml(3, 2), "cnt=\"2\"", "cnt=\"1\""),
               "test.xml:", "elements from rank 0, which sent");
  expect_error(changed(fused_ring_xml(3, 2), "type=\"s\"", "type=\"nop\""),
               "test.xml:", "deadlock");
}

// One fixed seed, so that a failure can be reproduced.
TEST(WrongMscclFile, NeverCrashesOrGetsThroughWithWrongResults) {
  const std::vector<std::string> seeds{all_pairs_xml(3, true), all_pairs_xml(2, false),
                                       fused_ring_xml(3, 2)};
  const std::string letters = "0123456789-\"<>/ =siorectb&;!x";
  std::mt19937 random(20'261'121);
  const auto draw = [&](std::size_t n) { return random() % n; };
  int refused = 0, accepted = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string xml = seeds[draw(seeds.size())];
    for (std::size_t m = 1 + draw(3); m > 0 && !xml.empty(); --m) {
      const std::size_t at = draw(xml.size());
      switch (draw(5)) {
        case 0:
          xml[at] = letters[draw(letters.size())];
          break;
        case 1:
          xml.erase(at, 1 + draw(40));
          break;
        case 2:
          xml.insert(at, xml.substr(draw(xml.size()), draw(120)));
          break;
        case 3:
          xml.resize(at + 1);
          break;
        default: {  // another number
          const std::size_t digit = xml.find_first_of("0123456789", at);
          if (digit != std::string::npos) xml[digit] = static_cast<char>('0' + draw(10));
        }
      }
    }
    try {
      const auto algorithm = testing::parsed(xml);
      prove_msccl(algorithm, "test.xml");
      ++accepted;
      const Collective c{algorithm->func, static_cast<int>(algorithm->ranks.size()), 24, 4,
                         algorithm->root};
      EXPECT_TRUE(check(*msccl_schedule(algorithm, c, {})).ok) << xml;
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(std::string(error.what()).starts_with("test.xml:")) << error.what();
    }
  }
  EXPECT_GT(refused, 3000);
  EXPECT_GT(accepted, 50);
}

TEST(WrongMscclFile, IsBoundedInSizeAndDepth) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<algo>";
  expect_error(deep, "test.xml:", "not XML");
  expect_error(changed(fused_ring_xml(3, 2), "s_chunks=\"0\"", "s_chunks=\"99999999\""),
               "test.xml:2: ", "a whole number from 0");
  expect_error(changed(fused_ring_xml(3, 2), "ngpus=\"3\"", "ngpus=\"1000000\""),
               "test.xml:1: ", "to 4096");
}

}  // namespace
}  // namespace ghostrank
