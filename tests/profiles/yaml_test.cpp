#include "profiles/input/yaml.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

YamlValue parse(const std::string& text) {
  return parse_yaml(text, std::make_shared<Source>(Source{"a.yaml", "a.yaml", true}));
}

std::string error(const std::string& text) {
  return test::error_of([&] { parse(text); });
}

TEST(Yaml, KeepsKeysInOrderWithTheirPlaces) {
  const YamlValue root = parse("b: 1\na:\n  - x\n  - {c: 'q'}\n");
  ASSERT_EQ(root.children.size(), 2u);
  EXPECT_EQ(root.children[0].key, "b");
  EXPECT_EQ(root.children[1].key, "a");
  const YamlValue& item = root.children[1].children[1].children[0];
  EXPECT_EQ(item.text, "q");
  EXPECT_TRUE(item.quoted);
  EXPECT_EQ(location(item.key_mark), "a.yaml:4:6");
  EXPECT_EQ(location(item.mark), "a.yaml:4:9");
  EXPECT_EQ(origin(item.mark), "a.yaml:4");
}

TEST(Yaml, ReadsJson) {
  const YamlValue root = parse("{\"a\": [1, 2.5, true, null], \"b\": {\"c\": \"1\"}}");
  EXPECT_EQ(root.find("a")->children[1].text, "2.5");
  EXPECT_EQ(root.find("a")->children[3].kind, YamlValue::Kind::null);
  EXPECT_TRUE(root.find("b")->find("c")->quoted);
}

TEST(Yaml, WritesAliasesOut) {
  const YamlValue root = parse("a: &x {n: 1}\nb: *x\n");
  EXPECT_EQ(root.find("b")->find("n")->text, "1");
}

TEST(Yaml, NamesThePlaceOfASyntaxError) {
  EXPECT_EQ(error("a: 1\nb: [1, 2\n").substr(0, 33), "a.yaml:3:1: not valid YAML (end o");
  EXPECT_EQ(error("a: b: c\n").substr(0, 27), "a.yaml:1:5: not valid YAML ");
}

// As editors of Windows save it, with and without a byte order mark.
TEST(Yaml, RefusesTextThatIsNotUtf8) {
  const std::string refused =
      "a.yaml:1:1: not UTF-8 but UTF-16 or UTF-32, or no text; save it as UTF-8";
  const std::string plain = "a: {n: 1}\n";
  std::string little, big;
  for (const char c : plain) {
    little += c, little += '\0';
    big += '\0', big += c;
  }
  EXPECT_EQ(error("\xff\xfe" + little), refused);
  EXPECT_EQ(error("\xfe\xff" + big), refused);
  EXPECT_EQ(error(little), refused);
  EXPECT_EQ(error(big), refused);
  EXPECT_EQ(error("\xef\xbb\xbf" + plain), "");  // the mark of UTF-8
}

TEST(Yaml, RefusesAKeyGivenTwice) {
  EXPECT_EQ(error("a: 1\nb: 2\na: 3\n"),
            "a.yaml:3:1: the key 'a' is given twice; remove one of them");
}

TEST(Yaml, RefusesKeysThatAreNotNames) {
  const std::string text =
      "a key must be a plain name; write 'name: value', and close the bracket that opens here";
  EXPECT_EQ(error("{[1]: 2}"), "a.yaml:1:2: " + text);
  EXPECT_EQ(error("? {a: 1}\n: 2\n"), "a.yaml:1:3: " + text);
  EXPECT_EQ(error("{\"a\": {\"b\": 1},\n"), "a.yaml:1:1: " + text);
}

TEST(Yaml, RefusesTagsAndFurtherDocuments) {
  EXPECT_EQ(error("a: !!binary aGk=\n"),
            "a.yaml:1:4: the tag 'tag:yaml.org,2002:binary' has no meaning here; remove it");
  EXPECT_EQ(error("a: 1\n---\nb: 2\n"), "a.yaml:3:1: a second document begins; keep one per file");
}

TEST(Yaml, BoundsNesting) {
  const auto nested = [](int depth) {
    std::string text;
    text.append(static_cast<std::size_t>(depth), '[');
    text.append(static_cast<std::size_t>(depth), ']');
    return text;
  };
  EXPECT_EQ(error(nested(kMaxYamlDepth)), "");
  EXPECT_EQ(error(nested(kMaxYamlDepth + 1)),
            "a.yaml:1:33: lists and mappings are nested deeper than 32 levels; flatten the file");
  EXPECT_NE(error(std::string(1'000'000, '[')), "");  // not closed
  EXPECT_NE(error(std::string(1'000'000, '{')), "");  // the first key is no name
  std::string dashes;
  for (int i = 0; i < 100'000; ++i) dashes += "- ";
  EXPECT_NE(error(dashes).find("nested deeper than 32"), std::string::npos);
}

TEST(Yaml, BoundsNestingThroughAliases) {
  std::string text = "a0: &a0 [1]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    text += "a" + n + ": &a" + n + " [*a" + before + "]\n";
  }
  EXPECT_NE(error(text).find("nested deeper than 32 levels"), std::string::npos);
}

TEST(Yaml, BoundsWhatAliasesStandFor) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    text += "a" + n + ": &a" + n + " [";
    for (int k = 0; k < 10; ++k) text += (k ? ", *a" : "*a") + before;
    text += "]\n";
  }
  EXPECT_NE(error(text).find("grows beyond 500000 values"), std::string::npos);
}

TEST(Yaml, BoundsTheTextThatAliasesStandFor) {
  std::string text = "a: &a " + std::string(1 << 20, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) text += i ? ", *a" : "*a";
  EXPECT_NE(error(text + "]\n").find("grows beyond"), std::string::npos);
}

TEST(Yaml, RefusesAnAliasInsideItself) {
  EXPECT_EQ(error("a: &a [1, *a]\n"),
            "a.yaml:1:11: an alias stands inside the value it refers to; write the value out");
}

TEST(Yaml, BoundsTheSizeOfAFile) {
  EXPECT_EQ(error(std::string(kMaxYamlBytes + 1, ' ')),
            "a.yaml:1:1: larger than 64 MiB; make it smaller");
}

TEST(Yaml, TakesAnEmptyFileAsNothing) {
  EXPECT_EQ(parse("").kind, YamlValue::Kind::null);
  EXPECT_EQ(parse("# only a comment\n").kind, YamlValue::Kind::null);
}

TEST(Yaml, KeepsMessagesPrintable) {
  EXPECT_EQ(quote("a\nb\x01"), "'a?b?'");
  EXPECT_EQ(quote("0123456789012345678901234567890123456789012345678901234567890"),
            "'012345678901234567890123456789012345678901234567890123456789…'");
}

}  // namespace
}  // namespace ghostrank
