// The messages to a controller that SwitchML publishes: their bytes, and bytes that are no message.
#include <gtest/gtest.h>

#include "switch/controller/messages.h"

namespace ghostrank::switchml {
namespace {

TEST(SwitchmlController, IsToldOfAWorkerInTheseBytes) {
  const SessionRequest request{300, 2, 8, {2, 0, 0, 0, 0, 1}, 0x0a000003, 256};
  const std::string bytes = message_of(fields_of(request));
  // Fields 1 to 5 and 7, each a tag (number times 8) and a number of seven bits a byte, low first.
  const std::string expected(
      "\x08\xac\x02"
      "\x10\x02"
      "\x18\x08"
      "\x20\x81\x80\x80\x80\x80\x40"
      "\x28\x83\x80\x80\x50"
      "\x38\x03",
      21);
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(fields_of({.elements = 64}).at(7), 1u);
}

TEST(SwitchmlController, AnswersWithTheSwitchesAddresses) {
  // A field of bytes, one of eight and one of four bytes, which nobody knows, are passed over.
  const std::string bytes = message_of({{1, 300}, {2, 0x0200'0000'ff01}}) +
                            std::string(
                                "\x4a\x02xy"
                                "\x51"
                                "12345678"
                                "\x5d"
                                "1234") +
                            message_of({{3, 0x0a0000fe}});
  const auto fields = read_message(bytes);
  ASSERT_TRUE(fields);
  const SessionAnswer answer = answer_of(*fields);
  EXPECT_EQ(answer.session, 300u);
  EXPECT_EQ(answer.mac, (Mac{2, 0, 0, 0, 0xff, 1}));
  EXPECT_EQ(answer.ip, 0x0a0000feu);
  EXPECT_EQ(answer_of({}).ip, 0u) << "a field that is 0 may be left out";
}

TEST(SwitchmlController, AnswersNothingWithWhatIsNoMessage) {
  for (const char* bad : {"\x08", "\x08\xff", "\x4a\x05xy", "\x0b", "\x02",
                          "\x51"
                          "1234",
                          "\xff"})
    EXPECT_FALSE(read_message(bad)) << bad;
  EXPECT_FALSE(read_message(std::string(11, '\xff')));
  EXPECT_TRUE(read_message(""));
}

}  // namespace
}  // namespace ghostrank::switchml
