// ghostrank doctor: what this machine has, and what would improve runs.
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "tools/doctor/findings.h"
#include "tools/report/files/output_files.h"
#include "tools/text/table.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

Findings look() {
  Findings all;
  for (Findings (*look_at)() : {look_at_fabric, look_at_timing, look_at_cores, look_at_network,
                                look_at_limits, look_at_switches, look_at_programs}) {
    for (Finding& finding : look_at()) all.push_back(std::move(finding));
  }
  return all;
}

std::string text_of(const Findings& findings, const Paint& paint) {
  std::string text, area, remedies;
  std::vector<Fact> facts;
  const auto flush = [&] {
    if (!facts.empty()) text += paint.bold(area) + "\n" + render(facts, 2) + "\n";
    facts.clear();
  };
  for (const Finding& f : findings) {
    if (f.area != area) flush();
    area = f.area;
    facts.push_back({(f.weak ? "! " : (f.chosen ? "* " : "  ")) + f.name, f.value});
    if (f.weak) remedies += "  " + f.name + ": " + f.remedy + "\n";
  }
  flush();
  return text + (remedies.empty() ? "Nothing weak was found.\n"
                                  : paint.bold("what would make runs better") + "\n" + remedies);
}

}  // namespace

int verb_doctor(const Argv& argv) {
  std::string json;
  CLI::App app("Say what is present here, and what would make runs better.", "ghostrank doctor");
  app.add_option("--json", json, "the same as JSON; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  if (!parse(app, argv)) return 0;
  check_outputs({{"--json", json}});
  const Findings findings = look();
  const int unwritten =
      write_each(std::vector<TextFile>{{json, [&] { return findings_json(findings); }}});
  if (json != "-") std::fputs(text_of(findings, paint_for(STDOUT_FILENO)).c_str(), stdout);
  return unwritten;
}

}  // namespace ghostrank
