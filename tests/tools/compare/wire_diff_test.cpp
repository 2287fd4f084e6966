// Captures of headers, written here frame by frame: bytes that count, retransmissions, and frames
// that are left out; and ledgers compared with captures.
#include "tools/compare/wire_diff.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "tests/shell.h"
#include "tests/tools/sample.h"

namespace ghostrank {
namespace {

using test::Scratch;
using testing::HasSubstr;
using testing::Not;

std::string big(std::uint64_t value, std::size_t width) {
  std::string text;
  for (std::size_t i = width; i-- > 0;) text += static_cast<char>(value >> 8 * i & 0xff);
  return text;
}
std::string little(std::uint64_t value) {
  const std::string text = big(value, 4);
  return {text.rbegin(), text.rend()};
}

// A classic pcap file in microseconds.
class File {
 public:
  explicit File(std::uint64_t time_us = 5'000'000) : time_us_(time_us) {}
  // `headers` is all that is captured of a frame of `length` bytes.
  File& frame(const std::string& headers, std::size_t length) {
    text_ += little(time_us_ / 1'000'000) + little(time_us_ % 1'000'000) + little(headers.size()) +
             little(length) + headers;
    time_us_ += 1000;
    return *this;
  }
  std::string write(const std::string& path) const {
    std::ofstream(path, std::ios::binary) << little(0xa1b2c3d4) + std::string("\2\0\4\0", 4) +
                                                 std::string(8, '\0') + little(128) + little(1) +
                                                 text_;
    return path;
  }

 private:
  std::string text_;
  std::uint64_t time_us_;
};

std::string ethernet(unsigned type) { return std::string(12, 'm') + big(type, 2); }
std::string ipv4(int source, int target, unsigned protocol, std::size_t inside,
                 unsigned fragment = 0) {
  return ethernet(0x0800) + "\x45" + std::string(1, '\0') + big(inside ? 20 + inside : 0, 2) +
         big(0, 2) + big(fragment, 2) + "\x40" + big(protocol, 1) + big(0, 2) + "\x0a" + big(0, 2) +
         big(source, 1) + "\x0a" + big(0, 2) + big(target, 1);
}
std::string tcp(unsigned source, unsigned target, std::uint32_t sequence, unsigned flags) {
  return big(source, 2) + big(target, 2) + big(sequence, 4) + big(0, 4) + "\x50" + big(flags, 1) +
         big(0, 6);
}
constexpr unsigned kSyn = 2, kAck = 16, kFin = 17, kRst = 4;

// From 10.0.0.SOURCE port 1000 to 10.0.0.TARGET port 2000.
void add_tcp(File& file, int source, int target, std::uint32_t sequence, std::size_t payload,
             unsigned flags = kAck) {
  file.frame(ipv4(source, target, 6, 20 + payload) + tcp(1000, 2000, sequence, flags),
             54 + payload);
}
// An operation of RoCE to queue pair 7.
void add_roce(File& file, unsigned opcode, unsigned number, std::size_t extension,
              std::size_t payload, unsigned padding = 0) {
  const std::size_t inside = 8 + 12 + extension + payload + padding + 4;
  file.frame(ipv4(1, 2, 17, inside) + big(0xc123, 2) + big(4791, 2) + big(inside, 2) + big(0, 2) +
                 big(opcode, 1) + big(padding << 4, 1) + big(0xffff, 2) + big(0, 1) + big(7, 3) +
                 big(0, 1) + big(number, 3),
             34 + inside);
}

WireCapture read(const std::vector<std::string>& files, std::set<std::uint16_t> except = {}) {
  WireCapture capture(std::move(except), 2'000'000);
  capture.add(files);
  return capture;
}
WireTraffic only(const WireCapture& capture, const std::string& from = "10.0.0.1",
                 const std::string& to = "10.0.0.2") {
  const auto pairs = capture.pairs();
  const auto found = pairs.find({parse_address(from), parse_address(to)});
  return found == pairs.end() ? WireTraffic() : found->second;
}

TEST(WireCapture, CountsEveryByteOfAConnectionOnce) {
  const Scratch scratch;
  File file;
  add_tcp(file, 1, 2, 99, 0, kSyn);
  add_tcp(file, 2, 1, 499, 0, kSyn | kAck);
  add_tcp(file, 1, 2, 100, 1000);
  add_tcp(file, 1, 2, 1100, 1000);
  add_tcp(file, 1, 2, 1100, 1000);  // again
  add_tcp(file, 1, 2, 1600, 1000);  // half of it again
  add_tcp(file, 1, 2, 3600, 400);   // 1,000 bytes were not captured
  add_tcp(file, 1, 2, 4000, 0, kFin);
  const WireCapture capture = read({file.write(scratch / "a.pcap")});
  const WireTraffic traffic = only(capture);
  EXPECT_EQ(traffic.payload, 3900u);
  EXPECT_EQ(traffic.again, 1500u);
  EXPECT_EQ(traffic.packets, 5u);
  EXPECT_EQ(capture.pairs().size(), 1u) << "the way back has no payload";
  EXPECT_EQ(capture.frames(), 8u);
  EXPECT_NEAR(capture.seconds(), 0.007, 1e-9);
  EXPECT_EQ(capture.begun_before(), 0u);
  // Two frames an interval of 2 ms.
  const std::map<std::uint64_t, std::uint64_t> expected{{2501, 2000}, {2502, 500}, {2503, 1400}};
  EXPECT_EQ(traffic.over_time, expected);
}

TEST(WireCapture, TellsPacketsThatComeLateFromThoseSentAgain) {
  const Scratch scratch;
  File file;
  for (const std::uint32_t at : {0u, 3000u, 1000u, 2000u, 4500u, 4000u})
    add_tcp(file, 1, 2, at, 1000);
  add_tcp(file, 1, 2, 1500, 1000);  // again
  for (const unsigned number : {0xffffffu, 1u, 0u, 2u, 0u}) add_roce(file, 0x07, number, 0, 64);
  const WireTraffic traffic = only(read({file.write(scratch / "a.pcap")}));
  EXPECT_EQ(traffic.payload, 5500u + 4 * 64);
  EXPECT_EQ(traffic.again, 500u + 1000 + 64);
}

TEST(WireCapture, CountsNoByteForTheEndOfAConnection) {
  const Scratch scratch;
  File file;
  add_tcp(file, 1, 2, 99, 0, kSyn);
  add_tcp(file, 1, 2, 100, 50);
  add_tcp(file, 1, 2, 200, 0, kFin);  // after 50 bytes that were not captured
  add_tcp(file, 1, 2, 200, 0, kFin);  // again
  add_tcp(file, 1, 2, 201, 0, kAck);  // of the other end's FIN
  add_tcp(file, 1, 2, 2'000'000'000, 0, kRst);
  const WireTraffic traffic = only(read({file.write(scratch / "a.pcap")}));
  EXPECT_EQ(traffic.payload, 100u);
  EXPECT_EQ(traffic.again, 0u);
}

TEST(WireCapture, FollowsSequenceNumbersAroundTheirEnd) {
  const Scratch scratch;
  File file;
  std::uint32_t sequence = 0xfffffe00;
  for (int i = 0; i < 4; ++i, sequence += 1000) add_tcp(file, 1, 2, sequence, 1000);
  const WireCapture capture = read({file.write(scratch / "a.pcap")});
  EXPECT_EQ(only(capture).payload, 4000u);
  EXPECT_EQ(only(capture).again, 0u);
  EXPECT_EQ(capture.begun_before(), 1u);
}

TEST(WireCapture, TakesTheFramesLengthWhereTheHeadersHasNoRoom) {
  const Scratch scratch;
  File file;
  file.frame(ipv4(1, 2, 6, 0) + tcp(1, 2, 0, kAck), 54 + 100'000);
  EXPECT_EQ(only(read({file.write(scratch / "a.pcap")})).payload, 100'000u);
}

TEST(WireCapture, ReadsVlansAndIpv6) {
  const Scratch scratch;
  File file;
  const std::string a = std::string("\xfe\x80", 2) + std::string(13, '\0') + "\x01",
                    b = std::string("\xfe\x80", 2) + std::string(13, '\0') + "\x02";
  file.frame(ethernet(0x8100) + big(5, 2) + big(0x86dd, 2) + big(0x60000000, 4) + big(520, 2) +
                 big(6, 1) + big(64, 1) + a + b + tcp(1, 2, 0, kAck),
             18 + 40 + 520);
  EXPECT_EQ(only(read({file.write(scratch / "a.pcap")}), "fe80::1", "fe80::2").payload, 500u);
}

// 1,000 bytes behind hop-by-hop options; the first of a packet's two fragments, and the second.
TEST(WireCapture, ReadsBehindTheExtensionHeadersOfIpv6) {
  const Scratch scratch;
  File file;
  const std::string a = std::string("\xfe\x80", 2) + std::string(13, '\0') + "\x01",
                    b = std::string("\xfe\x80", 2) + std::string(13, '\0') + "\x02";
  const auto add = [&](unsigned first, const std::string& extensions, std::uint32_t sequence,
                       std::size_t payload, std::size_t stated) {
    file.frame(ethernet(0x86dd) + big(0x60000000, 4) + big(stated, 2) + big(first, 1) + big(64, 1) +
                   a + b + extensions + tcp(1, 2, sequence, kAck),
               54 + extensions.size() + 20 + payload);
  };
  const std::string hops = big(60, 1) + big(1, 1) + std::string(14, '\1'),
                    target = big(6, 1) + big(0, 1) + std::string(6, '\1');
  add(0, hops + target, 0, 1000, hops.size() + target.size() + 1020);
  add(0, big(6, 1) + big(0, 1) + "\xc2\x04" + big(100'028, 4), 1000, 100'000, 0);  // a jumbogram
  add(44, big(6, 1) + big(0, 1) + big(1, 2) + big(7, 4), 101'000, 500, 8 + 520);
  add(44, big(6, 1) + big(0, 1) + big(520 | 1, 2) + big(7, 4), 0, 500, 8 + 520);
  const WireCapture capture = read({file.write(scratch / "a.pcap")});
  EXPECT_EQ(only(capture, "fe80::1", "fe80::2").payload, 101'500u);
  EXPECT_EQ(capture.left_out().at("later fragments of IP packets"), 1u);
}

TEST(WireCapture, CountsThePayloadOfRoceOperations) {
  const Scratch scratch;
  File file;
  add_roce(file, 0x06, 0xfffffe, 16, 1024);  // write: first, middle, last
  add_roce(file, 0x07, 0xffffff, 0, 1024);
  add_roce(file, 0x08, 0, 0, 61, 3);
  add_roce(file, 0x08, 0, 0, 61, 3);    // again
  add_roce(file, 0x0b, 1, 20, 100);     // only, with immediate
  add_roce(file, 0x0c, 2, 16, 0);       // a request to read
  add_roce(file, 0x11, 2, 4, 0);        // an acknowledgement
  add_roce(file, 0x10, 3, 4, 8);        // a response to a read
  add_roce(file, 0x04, 4, 0, 32);       // send
  add_roce(file, 0xaa, 5, 4 + 16, 16);  // a write over XRC
  const WireTraffic traffic = only(read({file.write(scratch / "a.pcap")}));
  EXPECT_EQ(traffic.payload, 1024u + 1024 + 61 + 100 + 8 + 32 + 16);
  EXPECT_EQ(traffic.again, 61u);
  EXPECT_EQ(traffic.packets, 8u);
}

TEST(WireCapture, NumbersResponsesToReadsApartFromRequests) {
  const Scratch scratch;
  File file;
  for (std::uint32_t n = 0; n < 3; ++n) {
    add_roce(file, 0x0a, 100 + n, 16, 64);   // a write
    add_roce(file, 0x10, 5000 + n, 4, 256);  // a response to a read, numbered by the other end
  }
  add_roce(file, 0x10, 5002, 4, 256);  // again
  const WireTraffic traffic = only(read({file.write(scratch / "a.pcap")}));
  EXPECT_EQ(traffic.payload, 3u * (64 + 256));
  EXPECT_EQ(traffic.again, 256u);
}

TEST(WireCapture, OfSeveralPlacesCountsAConnectionOnce) {
  const Scratch scratch;
  File sender, receiver;
  for (const std::uint32_t at : {0u, 1000u, 2000u}) add_tcp(sender, 1, 2, at, 1000);
  for (const std::uint32_t at : {0u, 1000u}) add_tcp(receiver, 1, 2, at, 1000);
  add_tcp(receiver, 3, 2, 0, 77);
  const WireCapture capture =
      read({sender.write(scratch / "a.pcap"), receiver.write(scratch / "b.pcap")});
  EXPECT_EQ(only(capture).payload, 3000u);
  EXPECT_EQ(only(capture).again, 0u);
  EXPECT_EQ(only(capture, "10.0.0.3").payload, 77u);
}

TEST(WireCapture, GoesOnInTheFileThatFollows) {
  const Scratch scratch;
  File all, first, second(5'002'000);
  for (const std::uint32_t at : {0u, 1000u, 2000u, 3000u}) add_tcp(all, 1, 2, at, 1000);
  for (const std::uint32_t at : {0u, 1000u}) add_tcp(first, 1, 2, at, 1000);
  for (const std::uint32_t at : {1000u, 2000u, 3000u}) add_tcp(second, 1, 2, at, 1000);
  const std::string one = first.write(scratch / "a.pcap"), two = second.write(scratch / "b.pcap"),
                    other = all.write(scratch / "c.pcap");
  for (const auto& files :
       {std::vector{one, two}, std::vector{two, one}, std::vector{two, other, one}}) {
    const WireCapture capture = read(files);
    EXPECT_EQ(only(capture).payload, 4000u);
    EXPECT_EQ(capture.begun_before(), 1u);
    EXPECT_EQ(only(capture).again, files.size() == 2 ? 1000u : 0u);
  }
}

// Host 1 stops last, and host 2 goes on first.
TEST(WireCapture, OfSeveralPlacesGoesOnInTheFilesThatFollow) {
  const Scratch scratch;
  File first_of_1(5'000'500), first_of_2, then_of_1(5'008'000), then_of_2(5'007'500);
  for (const std::uint32_t at : {0u, 1000u}) {
    for (File* file : {&first_of_1, &first_of_2}) add_tcp(*file, 1, 2, at, 1000);
    add_tcp(first_of_1, 1, 3, at, 1000);
    for (File* file : {&then_of_1, &then_of_2}) add_tcp(*file, 1, 2, at + 2000, 1000);
    add_tcp(then_of_1, 1, 3, at + 2000, 1000);
  }
  const WireCapture capture =
      read({first_of_1.write(scratch / "a.pcap"), first_of_2.write(scratch / "b.pcap"),
            then_of_1.write(scratch / "c.pcap"), then_of_2.write(scratch / "d.pcap")});
  for (const char* target : {"10.0.0.2", "10.0.0.3"}) {
    EXPECT_EQ(only(capture, "10.0.0.1", target).payload, 4000u);
    EXPECT_EQ(only(capture, "10.0.0.1", target).again, 0u);
  }
}

TEST(WireCapture, OfSeveralPlacesCountsAConnectionOnceWhateverTheirClocksAre) {
  const Scratch scratch;
  File sender, receiver(15'000'000);
  for (File* file : {&sender, &receiver}) {
    add_tcp(*file, 1, 2, 99, 0, kSyn);
    add_tcp(*file, 1, 2, 100, 1000);
  }
  const WireTraffic traffic =
      only(read({sender.write(scratch / "a.pcap"), receiver.write(scratch / "b.pcap")}));
  EXPECT_EQ(traffic.payload, 1000u);
  EXPECT_EQ(traffic.again, 0u);
}

TEST(WireCapture, OfSeveralPlacesCountsAnOlderConnectionOnce) {
  const Scratch scratch;
  File sender, receiver;
  for (const std::uint32_t at : {0u, 1000u}) add_tcp(sender, 1, 2, at, 1000);
  add_tcp(receiver, 1, 2, 0, 1000);
  EXPECT_EQ(
      read({sender.write(scratch / "a.pcap"), receiver.write(scratch / "b.pcap")}).begun_before(),
      1u);
}

TEST(WireCapture, SaysWhatItLeavesOut) {
  const Scratch scratch;
  File file;
  file.frame(ethernet(0x0806) + std::string(28, 'a'), 60);
  file.frame(ipv4(1, 2, 1, 64), 98);
  file.frame(ipv4(1, 2, 17, 100) + big(53, 2) + big(53, 2) + big(100, 2) + big(0, 2), 134);
  file.frame(ipv4(1, 2, 6, 1000, 185), 1034);
  file.frame(ipv4(1, 2, 6, 1000) + "abc", 1034);
  file.frame("short", 1034);
  file.frame(ipv4(1, 2, 6, 10) + tcp(1, 2, 0, kAck), 64);
  add_tcp(file, 1, 2, 0, 1000);
  const WireCapture capture = read({file.write(scratch / "a.pcap")}, {2000});
  const std::map<std::string_view, std::uint64_t> expected{
      {"neither IPv4 nor IPv6", 1},   {"neither TCP nor UDP", 1},
      {"UDP that is not RoCE", 1},    {"later fragments of IP packets", 1},
      {"cut within the headers", 2},  {"headers that contradict themselves", 1},
      {"ports that are excepted", 1},
  };
  EXPECT_EQ(capture.left_out(), expected);
  EXPECT_TRUE(capture.pairs().empty());
}

TEST(WireCapture, NamesAFileThatIsNone) {
  const Scratch scratch;
  std::ofstream(scratch / "text") << std::string(100, 'x');
  std::ofstream(scratch / "cut", std::ios::binary)
      << little(0xa1b2c3d4) + std::string(16, '\0') + little(1) + std::string(20, '\1');
  for (const char* name : {"text", "cut", "missing"}) {
    try {
      read({scratch / name});
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(scratch / name));
      EXPECT_EQ(error.exit_code(), 2);
    }
  }
}

// A result whose ledger has these bytes per iteration.
using Ledger = std::map<std::pair<std::string, std::string>, double>;
std::string write_result(const std::string& path, const Ledger& ledger) {
  nlohmann::json pairs = nlohmann::json::array();
  for (const auto& [pair, bytes] : ledger)
    pairs.push_back({{"src", pair.first}, {"dst", pair.second}, {"bytes", bytes}, {"messages", 1}});
  std::ofstream(path) << nlohmann::json{{"schema", "ghostrank/result/1"},
                                        {"traffic", {{"pairs", pairs}}}};
  return path;
}

TEST(WireDiff, HoldsPairsOfHostsAgainstEachOther) {
  const Scratch scratch;
  const StoredResult result = read_result(
      write_result(scratch / "r.json", {{{"n0.nic0", "n1.nic0"}, 1000},
                                        {{"n0.nic1", "n2.nic0"}, 500},  // the same host as n1
                                        {{"n2.nic0", "n0.nic0"}, 250},
                                        {{"n1.nic0", "n2.nic0"}, 4000}}));
  File file;
  add_tcp(file, 1, 2, 0, 4800);
  add_tcp(file, 2, 1, 0, 750);
  add_tcp(file, 9, 1, 0, 60);  // of no host
  const WireCapture capture = read({file.write(scratch / "a.pcap")});
  const WireDiff diff = diff_wire(
      result, capture, {parse_wire_host("10.0.0.1=0"), parse_wire_host("10.0.0.2,10.0.0.3=1-2")},
      std::nullopt);
  EXPECT_EQ(diff.iterations, 3);
  EXPECT_TRUE(diff.iterations_guessed);
  ASSERT_EQ(diff.rows.size(), 2u);
  EXPECT_EQ(diff.rows[0].ledger, 1500);
  EXPECT_NEAR(diff.difference(diff.rows[0]), 4800. / 4500 - 1, 1e-12);
  EXPECT_EQ(diff.difference(diff.rows[1]), 0);
  EXPECT_EQ(diff.inside, 4000);
  EXPECT_EQ(diff.other_payload, 60u);
  const std::string text = wire_diff_text(diff, capture);
  for (const char* part : {"n1-2", "+6.67 %", "the number that fits best", "60 B from or to"})
    EXPECT_THAT(text, HasSubstr(part));
}

// Messages without bytes, such as those of a barrier.
TEST(WireDiff, FindsNoDifferenceWhereNothingIsSentNorCaptured) {
  const Scratch scratch;
  write_result(scratch / "r.json", {{{"n0.nic0", "n1.nic0"}, 1000}, {{"n1.nic0", "n0.nic0"}, 0}});
  File file;
  add_tcp(file, 1, 2, 0, 1000);
  const WireCapture capture = read({file.write(scratch / "a.pcap")});
  const WireDiff diff = diff_wire(read_result(scratch / "r.json"), capture, {}, std::nullopt);
  ASSERT_EQ(diff.rows.size(), 2u);
  EXPECT_EQ(diff.difference(diff.rows[1]), 0);
  EXPECT_THAT(wire_diff_text(diff, capture), Not(HasSubstr("not in the ledger")));
  EXPECT_EQ(test::shell("cd '" + (scratch / "") +
                        "' && " GHOSTRANK_BINARY " diff r.json a.pcap --within 0.01")
                .status,
            0);
}

TEST(WireDiff, QuotesHostsOfSeveralNodesInItsTable) {
  WireDiff diff;
  diff.hosts = {{"n0,n2", {}, {}}, {"n1", {}, {}}};
  diff.rows.push_back({0, 1, 0, {}});
  diff.rows.back().captured.over_time = {{7, 100}};
  EXPECT_EQ(wire_over_time_csv(diff, 0.5), "src,dst,start_s,bytes\n\"n0,n2\",n1,0,100\n");
}

TEST(WireDiff, TakesAddressesInOrderWhereTheyAreAsManyAsNodes) {
  const Scratch scratch;
  const StoredResult result =
      read_result(write_result(scratch / "r.json", {{{"n0.nic0", "n1.nic0"}, 1000}}));
  File file;
  add_tcp(file, 4, 7, 0, 1000);
  const WireDiff diff =
      diff_wire(result, read({file.write(scratch / "a.pcap")}), {}, std::optional(2.));
  EXPECT_TRUE(diff.hosts_guessed);
  EXPECT_EQ(diff.difference(diff.rows[0]), -0.5);

  add_tcp(file, 5, 7, 0, 1000);
  const WireCapture three = read({file.write(scratch / "b.pcap")});
  EXPECT_THROW(diff_wire(result, three, {}, std::nullopt), Error);
  EXPECT_THROW(diff_wire(result, three, {parse_wire_host("10.0.0.4=0")}, std::nullopt), Error);
  EXPECT_THROW(
      diff_wire(result, three, {parse_wire_host("10.0.0.4=0-1"), parse_wire_host("10.0.0.5=1")},
                std::nullopt),
      Error);
}

TEST(WireDiff, SaysWhyACaptureHasNoPayload) {
  const Scratch scratch;
  write_result(scratch / "r.json", {{{"n0.nic0", "n1.nic0"}, 1000}});
  File file;
  file.frame(ipv4(1, 2, 6, 1000) + "abc", 1034);
  file.write(scratch / "a.pcap");
  const std::string line = "cd '" + (scratch / "") + "' && " GHOSTRANK_BINARY " diff r.json ";
  EXPECT_THAT(test::shell(line + "a.pcap").text, HasSubstr("1 frame cut within the headers"));
  const test::Outcome cut =
      test::shell("cd '" + (scratch / "") +
                  "' && head -c 70 a.pcap > b.pcap && " GHOSTRANK_BINARY " diff r.json b.pcap");
  EXPECT_EQ(cut.status, 2);
  EXPECT_THAT(cut.text, HasSubstr("ends within a packet at byte 24; keep what is whole, with: head "
                                  "-c 24 "));
}

TEST(WireDiff, WritesTheOtherFileThoughOneCannotBeWritten) {
  const Scratch scratch;
  write_result(scratch / "r.json", {{{"n0.nic0", "n1.nic0"}, 1000}});
  File file;
  add_tcp(file, 1, 2, 0, 1000);
  file.write(scratch / "a.pcap");
  const test::Outcome out = test::shell(
      "cd '" + (scratch / "") +
      "' && " GHOSTRANK_BINARY " diff r.json a.pcap --csv /dev/full --json d.json && exit 9; ls");
  EXPECT_THAT(out.text, HasSubstr("cannot write /dev/full"));
  EXPECT_THAT(out.text, HasSubstr("d.json"));
}

TEST(WireDiff, OfTheCommandLine) {
  const Scratch scratch;
  write_result(scratch / "r.json",
               {{{"n0.nic0", "n1.nic0"}, 1000}, {{"n1.nic0", "n0.nic0"}, 1000}});
  File file;
  add_tcp(file, 1, 2, 0, 2000);
  add_tcp(file, 2, 1, 0, 2100);
  file.write(scratch / "a.pcap");
  const std::string line =
      "cd '" + (scratch / "") + "' && " GHOSTRANK_BINARY " diff r.json a.pcap ";
  EXPECT_EQ(test::shell(line + "--within 0.06").status, 0);
  const test::Outcome off = test::shell(line + "--within 0.04");
  EXPECT_EQ(off.status, 1);
  EXPECT_THAT(off.text, HasSubstr("n1 to n0 differs by more than 0.04"));
  const auto json = nlohmann::json::parse(test::shell(line + "--json -").text);
  EXPECT_EQ(json["schema"], "ghostrank/diff/1");
  EXPECT_EQ(json["pairs"][1]["captured_bytes"], 2100);
  EXPECT_EQ(json["pairs"][1]["ledger_bytes"], 2000);
  EXPECT_EQ(test::shell(line + "--csv - --interval 0.001").text,
            "src,dst,start_s,bytes\nn0,n1,0,2000\nn1,n0,0.001,2100\n");
  for (const char* wrong : {"--host 10.0.0.1", "--host 10.0.0=0", "--host 10.0.0.1=x",
                            "--iterations 0", "--except-port 70000", "--json a.pcap"}) {
    const test::Outcome refused = test::shell(line + wrong);
    EXPECT_EQ(refused.status, 2) << wrong << ": " << refused.text;
    EXPECT_EQ(std::count(refused.text.begin(), refused.text.end(), '\n'), 1) << refused.text;
  }
}

}  // namespace
}  // namespace ghostrank
