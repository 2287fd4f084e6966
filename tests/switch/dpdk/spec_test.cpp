// The loader of .spec files: the programs that it reads, and those that it refuses because DPDK
// would misplay them silently.
#include "switch/dpdk/spec.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ghostrank::dpdk {
namespace {

using testing::HasSubstr;

constexpr const char* kSpec = R"(
struct ethernet_t {
	bit<48> dst
	bit<48> src
	bit<16> type
}
header ethernet instanceof ethernet_t
struct forward_arguments {
	bit<32> port
}
struct meta_t {
	bit<32> in
	bit<32> out
}
metadata instanceof meta_t
regarray seen size 0x100 initval 0

action forward args instanceof forward_arguments {
	mov m.out t.port
	return
}
action toss args none {
	drop
	return
}
table forwarding {
	key {
		h.ethernet.dst exact
		h.ethernet.type wildcard
	}
	actions {
		forward @tableonly
		toss
	}
	default_action toss args none const
	size 0x40
}
apply {
	rx m.in
	extract h.ethernet
	jmpeq HERE h.ethernet.type 0x800
	regadd seen m.in 1
	HERE :	table forwarding
	emit h.ethernet
	tx m.out
}
)";

std::string why(std::string_view from, std::string_view to) {
  std::string text = kSpec;
  text.replace(text.find(from), from.size(), to);
  try {
    parse_spec(text, "x.spec");
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(Spec, IsReadAsWritten) {
  const Spec spec = parse_spec(kSpec, "x.spec");
  ASSERT_EQ(spec.structs.size(), 3u);
  EXPECT_EQ(spec.find_struct("ethernet_t")->bytes(), 14u);
  EXPECT_EQ(spec.headers.at(0).type, "ethernet_t");
  EXPECT_EQ(spec.metadata, "meta_t");
  EXPECT_EQ(spec.registers.at(0).size, 256u);
  ASSERT_EQ(spec.actions.size(), 2u);
  EXPECT_EQ(spec.actions[0].type, "forward_arguments");
  EXPECT_EQ(spec.actions[0].instructions, (std::vector<std::string>{"mov m.out t.port", "return"}));
  const SpecTable& table = *spec.find_table("forwarding");
  ASSERT_EQ(table.keys.size(), 2u);
  EXPECT_EQ(table.keys[1].match, SpecMatch::wildcard);
  EXPECT_FALSE(table.actions.at(0).as_default);
  EXPECT_TRUE(table.default_is_const);
  EXPECT_EQ(table.size, 64u);
  EXPECT_EQ(spec.instructions.at(4), "HERE : table forwarding");
}

TEST(Spec, RefusesWhatThePipelineGetsWrongSilently) {
  std::string wide = "struct meta_t {\n";
  for (int i = 0; i < 32; ++i) wide += "bit<64> f" + std::to_string(i) + "\n";
  EXPECT_THAT(why("struct meta_t {\n", wide), HasSubstr("metadata 'meta_t' has 264 bytes"));
  wide.replace(0, 15, "struct ethernet_t {");
  EXPECT_THAT(why("struct ethernet_t {\n", wide),
              HasSubstr("x.spec:39: header 'ethernet_t' has 270 bytes"));
  std::string many = "regarray seen size 0x100 initval 0\n";
  for (int i = 0; i < 256; ++i) many += "regarray r" + std::to_string(i) + " size 1 initval 0\n";
  EXPECT_THAT(why("regarray seen size 0x100 initval 0\n", many),
              HasSubstr("more than 256 register arrays"));
  EXPECT_THAT(why("regadd seen m.in 1", "compl m.in"),
              HasSubstr("no instruction 'compl'; write the P4 program without ~"));
  EXPECT_THAT(why("bit<16> type", "bit<12> type"), HasSubstr("x.spec:5: field 'type' has 12 bits"));
  EXPECT_THAT(why("bit<16> type", "bit<128> type"), HasSubstr("at most 64 bits"));
  EXPECT_THAT(why("h.ethernet.type wildcard", "m.in wildcard"), HasSubstr("lie in one header"));
  std::string headers = "header ethernet instanceof ethernet_t\n";
  for (int i = 0; i < 64; ++i)
    headers += "header h" + std::to_string(i) + " instanceof ethernet_t\n";
  EXPECT_THAT(why("header ethernet instanceof ethernet_t\n", headers),
              HasSubstr("more than 64 headers"));
  std::string words = "emit";
  for (int i = 0; i < 16; ++i) words += " h.ethernet";
  EXPECT_THAT(why("emit h.ethernet", words), HasSubstr("at most 16 words"));
  const std::string name(300, 'n');
  EXPECT_THAT(why("emit h.ethernet", "emit h." + name), HasSubstr("at most 255 characters"));
  EXPECT_THAT(why("regarray seen", "regarray " + name), HasSubstr("a name has 1 to 63 characters"));
  EXPECT_THAT(why("struct forward_arguments", "struct ethernet_t"),
              HasSubstr("there are two structs 'ethernet_t'"));
}

TEST(Spec, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(why("rx m.in", "rx m.in"), "");
  EXPECT_THAT(why("header ethernet instanceof ethernet_t", "header ethernet instanceof nothing"),
              HasSubstr("x.spec:7: there is no struct 'nothing'"));
  EXPECT_THAT(why("regarray seen", "metarray seen"), HasSubstr("'metarray' is not supported"));
  EXPECT_THAT(why("size 0x100", "size 0"), HasSubstr("1 to 2^30 cells"));
  EXPECT_THAT(why("size 0x100", "size many"), HasSubstr("'many' is not a number"));
  EXPECT_THAT(why("forward @tableonly", "backward"), HasSubstr("there is no action 'backward'"));
  EXPECT_THAT(why("	size 0x40\n", ""), HasSubstr("needs actions, a default action and a size"));
  EXPECT_THAT(why("metadata instanceof meta_t", ""), HasSubstr("there is no metadata"));
  EXPECT_THAT(why("	tx m.out\n}", ""), HasSubstr("the file ends within instructions"));
  EXPECT_THAT(why("exact", "range"), HasSubstr("exact, wildcard or lpm"));
  for (std::size_t size = 0; size < std::string_view(kSpec).size() - 2; size += 7) {
    EXPECT_THROW(parse_spec(std::string_view(kSpec).substr(0, size), "x"), std::runtime_error)
        << size;
  }
}

}  // namespace
}  // namespace ghostrank::dpdk
