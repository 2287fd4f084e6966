// ghostrank calibrate: measures what a part of this machine can do, or fits a device to measured
// steps.
#include "tools/verbs/calibrate/calibrate.h"

#include <algorithm>
#include <array>

namespace ghostrank {

std::span<const Verb> calibrate_verbs() {
  static constexpr std::array kVerbs{
      Verb{"host", "how fast this machine sums and steps weights", calibrate_host},
      Verb{"compression", "how long compression methods take on a core", calibrate_compression},
      Verb{"steps",
           "a device profile from step times of your own runs (also: calibrate --from FILE)",
           calibrate_steps},
      Verb{"ratios", "how near compression methods come to the ratio asked for", calibrate_ratios},
      Verb{"device", "a device profile from kernels measured on a GPU of this machine",
           calibrate_device},
  };
  return kVerbs;
}

int verb_calibrate(const Argv& argv) {
  const bool fits = std::any_of(argv.begin(), argv.end(), [](const std::string& word) {
    return word == "--from" || word.starts_with("--from=");
  });
  if (fits && argv[2].starts_with('-')) {
    Argv steps = argv;
    steps.insert(steps.begin() + 2, "steps");
    return play_verb_of(calibrate_verbs(), steps, "");
  }
  return play_verb_of(calibrate_verbs(), argv,
                      "What this machine can do, measured; devices from measured steps.");
}

}  // namespace ghostrank
