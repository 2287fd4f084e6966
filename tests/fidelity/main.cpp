// `fidelity [--quick] [--ranks N] [--row NAME] [--long] [CASE...]`: compares ghostrank with real
// libraries and writes the results into docs/accuracy.md. Exit 0 when every bound held, 1 when one
// did not, 2 for wrong arguments, 3 when no lab can be made.
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tests/fidelity/cases.h"

namespace ghostrank::fidelity {
namespace {

struct Case {
  std::string_view name;
  Findings (*compare)(const Options&);
  bool lab = true;
};
constexpr Case kCases[] = {{"ddp", compare_ddp},
                           {"gloo", compare_gloo},
                           {"mpi", compare_mpi},
                           {"dilation", compare_dilations},
                           {"trunk", compare_trunk},
                           {"switch", compare_switch},
                           {"time", measure_time},
                           {"auto", search_dilations},
                           {"trust", try_trust},
                           {"step-time", compare_step_times, false},
                           {"network", compare_networks, false}};
constexpr char kDocs[] = GHOSTRANK_SOURCE_DIR "/docs/accuracy.md";

int play(const Case& c, const Options& options) {
  std::fprintf(stderr, "fidelity: %s\n", c.name.data());
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  if (c.lab) end_on_signals();
  const Findings found = c.compare(options);
  std::printf("%s\n", found.markdown.c_str());
  for (const std::string& miss : found.misses) std::printf("MISSED %s\n", miss.c_str());
  std::fflush(stdout);
  if (!options.quick && options.ranks == 0 && options.row.empty())
    report::write_section(
        kDocs, "fidelity " + (found.section.empty() ? std::string(c.name) : found.section),
        found.markdown);
  return found.misses.empty() ? 0 : 1;
}

int usage() {
  std::string names;
  for (const Case& c : kCases) names += " " + std::string(c.name);
  std::fprintf(stderr, "fidelity [--quick] [--ranks N] [--row NAME] [--long] [CASE...]; cases:%s\n",
               names.c_str());
  return 2;
}

// 0 for what is no positive number.
int positive(const std::string& text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::max(number, 0) : 0;
}

int main(const std::vector<std::string>& arguments) {
  Options options;
  options.pictures = GHOSTRANK_SOURCE_DIR "/docs/pictures";
  std::vector<const Case*> chosen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto named = std::find_if(std::begin(kCases), std::end(kCases),
                                    [&](const Case& c) { return c.name == argument; });
    if (argument == "--quick")
      options.quick = true;
    else if (argument == "--ranks" && i + 1 < arguments.size() && positive(arguments[i + 1]) > 0)
      options.ranks = positive(arguments[++i]);
    else if (argument == "--row" && i + 1 < arguments.size())
      options.row = arguments[++i];
    else if (argument == "--long")
      options.longer = true;
    else if (named != std::end(kCases))
      chosen.push_back(named);
    else
      return usage();
  }
  if (chosen.empty())
    for (const Case& c : kCases) chosen.push_back(&c);
  const bool lab = std::any_of(chosen.begin(), chosen.end(), [](const Case* c) { return c->lab; });
  if (lab && !testing::Lab::possible()) {
    std::fprintf(stderr, "fidelity: needs root and network namespaces; run it as root\n");
    return 3;
  }
  int status = 0;
  for (const Case* c : chosen) status = std::max(status, play(*c, options));
  return status;
}

}  // namespace
}  // namespace ghostrank::fidelity

int main(int argc, char** argv) {
  try {
    return ghostrank::fidelity::main({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fidelity: %s\n", e.what());
    return 1;
  }
}
