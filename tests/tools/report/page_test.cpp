// Pages are well-formed, hold no text of a result as markup, name nothing outside themselves, and
// leave out what a result lacks.
#include <regex>
#include <tinyxml2.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/tools/sample.h"
#include "tools/report/page/pages.h"
#include "tools/report/page/pictures.h"
#include "tools/report/page/result_page.h"
#include "tools/report/page/svg_parts.h"
#include "tools/report/stored_run.h"
#include "tools/text/svg.h"

namespace ghostrank {
namespace {

using test::contents;
using test::put;
using test::sample;
using test::Scratch;
using testing::HasSubstr;
using testing::Not;

SortedJson sample_json() { return SortedJson::parse(result_json(sample())); }

std::string page(const SortedJson& json) { return result_page({stored_run(json, "r.json")}); }

// Names of the elements under `at`, in order.
void add_elements(const tinyxml2::XMLElement* at, std::vector<std::string>& names) {
  for (; at != nullptr; at = at->NextSiblingElement()) {
    names.emplace_back(at->Name());
    add_elements(at->FirstChildElement(), names);
  }
}

std::vector<std::string> elements_of(const std::string& html) {
  tinyxml2::XMLDocument document;
  EXPECT_EQ(document.Parse(html.c_str(), html.size()), tinyxml2::XML_SUCCESS)
      << document.ErrorStr();
  std::vector<std::string> names;
  add_elements(document.FirstChildElement("html"), names);
  EXPECT_FALSE(names.empty());
  return names;
}

// Every string of a tree becomes `text`, also the keys of its config.
void poison(SortedJson& at, const std::string& text) {
  if (at.is_string()) {
    at = text;
  } else if (at.is_structured()) {
    for (SortedJson& one : at) poison(one, text);
  }
}

TEST(Page, IsWellFormedAndNeedsNothingElse) {
  const std::string html = page(sample_json());
  const std::vector<std::string> names = elements_of(html);
  for (const char* outside : {"script", "link", "img", "iframe", "object", "base", "a", "form"})
    EXPECT_THAT(names, Not(testing::Contains(outside)));
  EXPECT_THAT(names, testing::Contains("svg"));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, Not(HasSubstr("@import")));
  EXPECT_FALSE(std::regex_search(html, std::regex(" (href|src|on[a-z]+|style)=")));
  EXPECT_THAT(html, HasSubstr("faithful: this machine kept up; valid for bytes, order"));
  EXPECT_THAT(html, HasSubstr("500 ms"));  // the median step
  EXPECT_EQ(html, page(sample_json()));
}

TEST(Page, ShowsNoTextOfAResultAsMarkup) {
  const std::string evil = "\"'><script>alert(1)</script><b x=\"]]>&amp;--><!-- \x01\xff";
  SortedJson json = sample_json();
  for (const char* part : {"hosts", "collectives", "notes", "argv", "interfaces", "fidelity"})
    poison(json[part], evil);
  json["notes"] = {evil};
  json["job"] = json["interrupted"] = json["hash"] = json["version"] = evil;
  json["config"] = {{evil, evil}, {"model", evil}, {"device", {{"name", evil}}}};
  json["config"]["collectives"]["library"] = evil;
  json["config"]["fabric"]["kind"] = evil;
  json["traffic"].erase("pairs");
  json["traffic"]["pairs_file"] = evil;
  json["network"] = {{"topology", evil},
                     {"routing", evil},
                     {"model", evil},
                     {"tiers", {{{"name", evil}, {"links", 1}}}},
                     {"hottest", {{{"link", evil}, {"utilisation", 0.95}}}}};
  json["servers"] = {{{"name", evil}, {"busy", 0.99}}};
  json["switch"] = {{"target", evil}, {"address", evil}};
  json["compression"] = {{"method", evil}};
  json["training"] = {{"task", evil}, {"loss", {1, 2}}};
  json["interrupted"] = nullptr;
  for (const std::string& html :
       {page(json), result_page({stored_run(json, evil), stored_run(sample_json(), "b.json")})}) {
    for (const std::string& name : elements_of(html)) EXPECT_NE(name, "script");
    EXPECT_THAT(html, Not(HasSubstr("<script")));
    EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
    EXPECT_THAT(html, Not(HasSubstr("\x01")));
  }
}

TEST(Page, LeavesOutWhatAResultLacks) {
  const SortedJson bare = SortedJson::parse(R"({"schema": "ghostrank/result/1", "traffic": {}})");
  const std::string html = page(bare);
  elements_of(html);
  EXPECT_THAT(html, HasSubstr("not judged"));
  for (const char* absent :
       {"The step", "Collectives", "Traffic", "What limits it", "Servers", "<svg", "NaN", "n/a"})
    EXPECT_THAT(html, Not(HasSubstr(absent))) << absent;
  // Each part may be missing on its own.
  const SortedJson complete = sample_json();
  for (const auto& [key, value] : complete.items()) {
    if (key == "traffic" || key == "schema") continue;
    SortedJson json = sample_json();
    json.erase(key);
    elements_of(page(json));
  }
}

TEST(Page, SaysFirstWhatIsNotToBeTrusted) {
  SortedJson json = sample_json();
  json["fidelity"]["faithful"] = false;
  json["fidelity"]["reason"] = "the loop was busy";
  const std::string html = page(json);
  const std::size_t trust = html.find("NOT faithful: the loop was busy");
  ASSERT_NE(trust, std::string::npos);
  EXPECT_LT(trust, html.find("step time (median)"));
  EXPECT_THAT(html, HasSubstr("class=\"trust bad\""));
}

TEST(Page, OfSeveralResultsHasRatiosAndTheKeysThatDiffer) {
  SortedJson other = sample_json();
  for (SortedJson& i : other["iterations"]) i["seconds"] = i["seconds"].get<double>() * 2;
  other["step_time"]["median"] = 1.0;
  other["config"]["fabric"]["kind"] = "virtual";
  const std::string html =
      result_page({stored_run(sample_json(), "dir/a.json"), stored_run(other, "dir/b.json")});
  elements_of(html);
  EXPECT_THAT(html, HasSubstr("<td class=\"number\">x 2</td>"));
  EXPECT_THAT(html, HasSubstr("<tr><td>fabric.kind</td><td>ofi</td><td>virtual</td></tr>"));
  EXPECT_THAT(html, Not(HasSubstr("<td>model</td>")));
}

TEST(Page, OfAllToAllAmongAThousandNodesIsSmall) {
  NicPairs pairs;
  constexpr int kNodes = 1000;
  for (int a = 0; a < kNodes; ++a)
    for (int b = 0; b < kNodes; ++b)
      if (a != b && (a + b) % 7 == 0)
        pairs[{"n" + std::to_string(a) + ".nic0", "n" + std::to_string(b) + ".nic0"}] = {1e6, 3};
  const PairMap map = pair_map(pairs);
  EXPECT_EQ(map.nodes, 1000u);
  EXPECT_EQ(map.nodes_per_cell, 32u);
  EXPECT_LT(map.svg.size(), 300'000u);
  elements_of("<html>" + map.svg + "</html>");
}

TEST(Page, MapOfPairsAddsUpNicsOfANode) {
  const PairMap map = pair_map({{{"n0.nic0", "n3.nic1"}, {1024, 1}},
                                {{"n0.nic1", "n3.nic0"}, {1024, 2}},
                                {{"eth0", "n3.nic0"}, {1e9, 2}}});
  EXPECT_EQ(map.nodes, 2u);
  EXPECT_THAT(map.svg, HasSubstr("<title>n0 to n3: 2 KiB in 3 messages</title>"));
  EXPECT_TRUE(pair_map({}).svg.empty());
}

TEST(Page, DotsOfStepsThatDifferByRoundingEnd) {
  const double step = 1, next = std::nextafter(step, 2);
  elements_of("<html>" + step_dots({{"a", {step, next, next}, next, {}}}) + "</html>");
  EXPECT_TRUE(step_dots({{"a", {step, step}, step, {}}}).empty());
  EXPECT_LE(page::ticks(1, next, 5).size(), 11u);
  EXPECT_LT(svg_dots({"runs", "seconds", {{"a", {step, next}, next, {}, {}}}}).size(), 10'000u);
  EXPECT_EQ(page::ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
}

std::string refusal(const std::vector<std::string>& files) {
  try {
    page_of(files);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Page, NamesTheFilesThatItTakes) {
  const Scratch scratch;
  put(scratch / "bench.json", R"({"schema": "ghostrank/bench/1"})");
  put(scratch / "sweep.json", R"({"schema": "ghostrank/sweep/1"})");
  put(scratch / "r.json", result_json(sample()));
  EXPECT_THAT(refusal({scratch / "bench.json"}),
              HasSubstr("bench.json: schema is 'ghostrank/bench/1'; give results of 'run --json'"));
  EXPECT_THAT(refusal({scratch / "r.json", scratch / "sweep.json"}),
              HasSubstr("sweep.json: schema"));
  EXPECT_EQ(refusal({scratch / "sweep.json"}), "");
}

TEST(Page, OfABenchHasARowForEachSize) {
  const Scratch scratch;
  put(scratch / "b.json", R"({"version": 2, "errors": [], "args": ["<bench>"], "results": [
      {"size": 1024, "count": 256, "type": "float", "redop": "sum", "experiment_name": "all_reduce_perf",
       "out_of_place": {"time": 12.5, "alg_bw": 0.08, "bus_bw": 0.16, "nwrong": null},
       "ghostrank": {"modelled": true, "faithful": true, "messages": 6}},
      {"size": 2048, "count": 512, "type": "float", "redop": "sum",
       "out_of_place": {"time": 13, "alg_bw": 0.16, "bus_bw": 0.32, "nwrong": 0}}]})");
  const std::string html = page_of({scratch / "b.json"});
  EXPECT_THAT(elements_of(html), testing::Contains("svg"));
  EXPECT_THAT(html, HasSubstr("<h1>all_reduce_perf</h1>"));
  EXPECT_THAT(html, HasSubstr("modelled: virtual time"));
  EXPECT_THAT(html, HasSubstr("<td class=\"number\">12.5 µs</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"number\">0.16 GB/s</td>"));
  EXPECT_THAT(html, HasSubstr("&lt;bench&gt;"));
}

TEST(Page, OfASweepHasARowForEachPoint) {
  const Scratch scratch;
  put(scratch / "s.json",
      R"({"schema": "ghostrank/sweep/1", "job": "<j>", "grid": {"a<b": ["1", "2"]},
      "rows": [{"set": {"a<b": "1"}, "step_time_s": 0.5, "wire_bytes": 2048, "messages": 3,
                "exposed_s": null, "compute_s": 0.25, "faithful": "modelled", "version": "9.8",
                "error": "", "samples_per_s": 100},
               {"set": {"a<b": "2"}, "faithful": "", "error": "no <plan>"}]})");
  const std::string html = page_of({scratch / "s.json"});
  elements_of(html);
  EXPECT_THAT(html, HasSubstr("2 points, 1 failed"));
  EXPECT_THAT(html, HasSubstr("<th>a&lt;b</th>"));
  EXPECT_THAT(html, HasSubstr("no &lt;plan&gt;"));
  EXPECT_THAT(html, HasSubstr("500 ms"));
}

}  // namespace
}  // namespace ghostrank
