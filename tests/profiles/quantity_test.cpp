#include "profiles/input/quantity.h"

#include <gtest/gtest.h>

namespace ghostrank {
namespace {

TEST(Rates, AreDecimal) {
  EXPECT_EQ(parse_rate("400Gbps"), 400e9);
  EXPECT_EQ(parse_rate("2.5 Gbps"), 2.5e9);
  EXPECT_EQ(parse_rate("100Mbps"), 100e6);
  EXPECT_EQ(parse_rate("1.6Tbps"), 1.6e12);
  EXPECT_EQ(parse_rate("0"), 0);
  EXPECT_EQ(parse_rate("unlimited"), 0);
}

TEST(Rates, NeedAUnit) {
  for (const char* text : {"400", "400GB", "-1Gbps", "Gbps", "", "400Gbps ", "nan", "infGbps"})
    EXPECT_FALSE(parse_rate(text)) << text;
}

TEST(Sizes, ArePowersOf1024) {
  EXPECT_EQ(parse_size("8"), 8u);
  EXPECT_EQ(parse_size("4K"), 4096u);
  EXPECT_EQ(parse_size("512KiB"), 512u * 1024);
  EXPECT_EQ(parse_size("128M"), 128u << 20);
  EXPECT_EQ(parse_size("8GiB"), 8ull << 30);
  EXPECT_EQ(parse_size("1.5K"), 1536u);
}

TEST(Sizes, RefuseWhatIsNotAWholeNumberOfBytes) {
  for (const char* text : {"", "K", "-1", "0.3", "4KB", "1e3", "99999999999T", "1.0001K"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Quantities, ReadBackAsTheyWereWritten) {
  for (const double rate : {0.0, 1e-30, 1.0, 1e3, 1e40, 25e9, 400e9, 1.6e12, 123456789.0, 1e9 / 3})
    EXPECT_EQ(parse_rate(rate_text(rate)), rate) << rate_text(rate);
  for (const std::uint64_t size : {0ull, 1ull, 1023ull, 1024ull, 65536ull, 3ull << 20, 1ull << 40})
    EXPECT_EQ(parse_size(size_text(size)), size) << size_text(size);
  for (const double number : {0.0, 25.0, 0.1, 1e-9, 1.0 / 3, 123456789012.0})
    EXPECT_EQ(parse_number(number_text(number)), number) << number_text(number);
}

TEST(Quantities, AreWrittenTheWayPeopleDo) {
  EXPECT_EQ(rate_text(400e9), "400Gbps");
  EXPECT_EQ(rate_text(3600e9), "3600Gbps");
  EXPECT_EQ(rate_text(0), "unlimited");
  EXPECT_EQ(measured_rate_text(160'312'345.6), "160.312Mbps");
  EXPECT_EQ(measured_rate_text(1.14260349e12), "1142.6Gbps");
  EXPECT_EQ(measured_rate_text(0.25), "0.25bps");
  EXPECT_EQ(size_text(512 << 10), "512KiB");
  EXPECT_EQ(number_text(25), "25");
  EXPECT_EQ(number_text(0.4), "0.4");
}

TEST(Numbers, MustBeFiniteAndWhole) {
  EXPECT_FALSE(parse_number("nan"));
  EXPECT_FALSE(parse_number("inf"));
  EXPECT_FALSE(parse_number("1x"));
  EXPECT_FALSE(parse_integer("1.0"));
  EXPECT_FALSE(parse_integer("9223372036854775808"));
}

}  // namespace
}  // namespace ghostrank
