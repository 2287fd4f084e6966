// Pickles: the plain values in them, and what is refused. The dumps of the Flight Recorder are
// such.
#include "profiles/trace/pickle.h"

#include <sstream>

#include <gtest/gtest.h>

#include "tests/trace/traces.h"

namespace ghostrank {
namespace {

using std::string_literals::operator""s;

std::string bytes(std::uint64_t value, int count) {
  std::string out;
  for (; count > 0; --count, value >>= 8) out += static_cast<char>(value & 255);
  return out;
}
// Writes values as PyTorch's C++ does: protocol 2, texts and containers remembered.
std::string text(const std::string& value) {
  return "X" + bytes(value.size(), 4) + value + "q\x01";
}
std::string integer(std::int64_t value) {
  return "\x8a\x08" + bytes(static_cast<std::uint64_t>(value), 8);
}
std::string list(const std::string& items) { return "](" + items + "e"; }
std::string dictionary(const std::string& items) { return "}(" + items + "u"; }
std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

std::string json_of(const JsonTape& tape, const JsonNode& node) {
  switch (node.kind) {
    case JsonNode::Kind::null:
      return "null";
    case JsonNode::Kind::boolean:
      return node.integer != 0 ? "true" : "false";
    case JsonNode::Kind::integer:
      return std::to_string(node.integer);
    case JsonNode::Kind::number:
      return (std::ostringstream() << node.number).str();
    case JsonNode::Kind::string:
      return '"' + std::string(node.text) + '"';
    case JsonNode::Kind::array:
    case JsonNode::Kind::object:
      break;
  }
  const bool keys = node.kind == JsonNode::Kind::object;
  std::string out;
  std::uint32_t children = 0;
  for (const JsonNode& child : tape.children(node)) {
    if (children++ > 0) out += ',';
    if (keys) out += '"' + std::string(child.key) + "\":";
    out += json_of(tape, child);
  }
  EXPECT_EQ(node.size, children);
  return keys ? '{' + out + '}' : '[' + out + ']';
}
std::string json_of_whole(const std::string& whole, const std::string& unread = "") {
  const JsonTape tape = json_of_pickle(whole, "p", unread);
  return json_of(tape, tape.root());
}
std::string json_of(const std::string& value) { return json_of_whole(pickle(value)); }

TEST(Pickle, HasPlainValues) {
  EXPECT_EQ(json_of(dictionary(text("a") + "N" + text("b") + "\x88" + text("c") + "\x89")),
            R"({"a":null,"b":true,"c":false})");
  EXPECT_EQ(json_of(list("K\xff" + "M\x00\x01"s + "J\xff\xff\xff\xff" + integer(-5) + "\x8a\x00"s +
                         integer(1724779239936775119) + "G\x40\x04\x00\x00\x00\x00\x00\x00"s)),
            "[255,256,-1,-5,0,1724779239936775119,2.5]");
  EXPECT_EQ(json_of(list("]" + text("x") + text("y") + "\x86" + ")}")), R"([[],["x","y"],[],{}])");
  EXPECT_EQ(json_of("(K\x01K\x02K\x03K\x04t"), "[1,2,3,4]");
  EXPECT_EQ(json_of(text("a\"\\\n")), "\"a\"\\\n\"");
  EXPECT_EQ(json_of(list("]q\x07(K\x01"
                         "eh\x07h\x07")),
            "[[1],[1],[1]]");  // one list in three places
  EXPECT_EQ(json_of(dictionary("K\x03" + text("a"))), R"({"3":"a"})");
  EXPECT_EQ(json_of("\x8b\x02\x00\x00\x00\xfe\xff"s), "-2");
  const std::string zeros(7, '\0');
  EXPECT_EQ(json_of(list("\x8a\x09" + zeros + "\x80\x00"s + "\x8a\x09" + zeros + "\x00\xff"s)),
            "[9.22337e+18,-1.84467e+19]");  // 2^63, -2^64
}

// As Python writes a dump that it has read: protocol 4 has frames and shorter instructions.
TEST(Pickle, MayBeOfALaterProtocol) {
  EXPECT_EQ(json_of_whole("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
                          "a\x94]\x94(K\x01h\x01"s
                          "es."),
            R"({"a":[1,"a"]})");
}

TEST(Pickle, IsNotRun) {
  const auto refused = [](const std::string& whole) {
    return test::error_of([&] { json_of_pickle(whole, "p"); });
  };
  EXPECT_EQ(
      refused(pickle("cos\nsystem\n(X\x04\x00\x00\x00lleRt"s)),
      "p: byte 2: a pickle's instruction 99 that makes no plain value, and nothing of a pickle "
      "is run here; dump JSON");
  EXPECT_EQ(refused("\x80\x02X\xff\x00\x00\x00"s
                    "abc"),
            "p: byte 2: the pickle is cut off");
  EXPECT_EQ(refused("\x80\x02]"), "p: byte 3: the pickle is cut off");
  EXPECT_EQ(refused(pickle("]]")), "p: byte 4: the pickle ends without its one value");
  EXPECT_EQ(refused(pickle("K\x01K\x02"
                           "a")),
            "p: byte 6: items of something that is no list or dictionary");
  EXPECT_EQ(refused(pickle("}(K\x01u")), "p: byte 6: a key without a value");
  EXPECT_EQ(refused(pickle("h\x05")), "p: byte 2: value 5 is not known");
  EXPECT_EQ(refused(pickle("]q\x00h\x00"s
                           "a")),  // a list that has itself
            "p: byte 2: values nested more than 64 deep; no dump is");
  EXPECT_EQ(refused(pickle("](NN}(]Nue")),
            "p: byte 8: a key that is neither text nor integer; dump JSON");
  EXPECT_EQ(refused(pickle("N") + "x"), "p: byte 4: data behind the end of the pickle; remove it");
  EXPECT_EQ(refused(pickle("Nr\xff\xff\xff\xff"s)),
            "p: byte 3: value 4294967295 to remember of fewer");
}

// A value that is used in several places counts in each.
TEST(Pickle, HasAsManyValuesAsItsBytesAllow) {
  const auto refused = [](const std::string& whole) {
    return test::error_of([&] { json_of_pickle(whole, "p"); });
  };
  std::string twice = "(]q\x00"s;  // each list has the one before it twice
  for (char i = 0; i < 40; ++i) twice += "](h"s + i + "h"s + i + "eq"s + static_cast<char>(i + 1);
  EXPECT_NE(refused(pickle(twice + "t")).find(": more than 65"), std::string::npos);
  const auto shared = [](const std::string& one, int times) {
    std::string out = one + "q\x00"s;
    for (int i = 0; i < times; ++i) out += "h\x00"s;
    return pickle(list(out));
  };
  const std::string frames = list(std::string(100, 'N'));
  EXPECT_EQ(refused(shared(frames, 500)), "");
  const std::string whole = shared(frames, 5000);
  EXPECT_EQ(refused(whole), "p: byte 97: more than " + std::to_string(65536 + whole.size() / 2) +
                                " values, those used in several places counted in each, in a "
                                "pickle of " +
                                std::to_string(whole.size()) + " bytes; dump JSON");
  EXPECT_EQ(refused(shared("N", 200'000)), "");  // two bytes each
  EXPECT_NE(refused(pickle(list(std::string(200'000, 'N')))), "");

  EXPECT_EQ(refused(shared(text(std::string(10'000, 'a')), 400)), "");
  EXPECT_EQ(
      refused(shared(text(std::string(10'000, 'a')), 1000)),
      "p: byte 4: texts that are used so often make more than 16 times the pickle; dump JSON");
}

// Entries of a dump share the frames of their stacks.
TEST(Pickle, LeavesOutWhatIsNotRead) {
  const std::string frame = "]q\x05("s + std::string(100, 'N') + "e";
  const std::string whole = pickle(list(dictionary(text("a") + "K\x01" + text("frames") + frame +
                                                   text("b") + "h\x05" + text("c") + "K\x02") +
                                        dictionary(text("frames") + "h\x05")));
  EXPECT_EQ(json_of_whole(whole, "frames").substr(0, 14), R"([{"a":1,"b":[n)");
  EXPECT_TRUE(json_of_whole(whole, "frames").ends_with(R"(],"c":2},{}])"));
}

// A dump that a process writes when a call times out.
TEST(Pickle, IsReadAsADumpOfTheFlightRecorder) {
  const std::string sizes = list(list("K\x04K\x08")), types = list(text("Float"));
  const std::string entry = dictionary(
      text("record_id") + "K\x00"s + text("process_group") + text("0") + text("default_pg") +
      "\x86" + text("collective_seq_id") + "K\x01" + text("p2p_seq_id") + "K\x00"s +
      text("profiling_name") + text("nccl:all_reduce") + text("time_created_ns") +
      integer(1724779239936775119) + text("input_sizes") + sizes + text("input_dtypes") + types +
      text("output_sizes") + sizes + text("output_dtypes") + types + text("state") +
      text("completed") + text("time_discovered_started_ns") + "N" + text("is_p2p") + "\x89");
  const std::string group = dictionary(text("name") + text("0") + text("desc") +
                                       text("default_pg") + text("ranks") + text("[0, 1]"));
  const std::string dump =
      pickle(dictionary(text("version") + text("2.10") + text("pg_config") +
                        dictionary(text("0") + group) + text("entries") + list(entry)));
  const test::Folder folder;
  const Trace trace = import_trace({folder.write("nccl_trace_rank_1", dump)}, "", 0);
  EXPECT_EQ(trace.format, "flight-recorder");
  EXPECT_EQ(trace.ranks, 2);
  EXPECT_EQ(trace.given.front().rank, WorldRank(1));
  EXPECT_EQ(summary_of(trace, 2).stated,
            (std::map<std::string, std::uint64_t>{{"allreduce", 128}}));
}

}  // namespace
}  // namespace ghostrank
