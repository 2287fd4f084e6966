// ghostrank calibrate: measures what a part of this machine can do.
#include "tools/verbs/calibrate.h"

#include <array>

namespace ghostrank {

std::span<const Verb> calibrate_verbs() {
  static constexpr std::array kVerbs{
      Verb{"host", "how fast this machine sums and steps weights", calibrate_host},
      Verb{"compression", "how long compression methods take on a core", calibrate_compression},
      Verb{"ratios", "how near compression methods come to the ratio asked for", calibrate_ratios},
      Verb{"device", "", nullptr},
  };
  return kVerbs;
}

int verb_calibrate(const Argv& argv) {
  return play_verb_of(calibrate_verbs(), argv, "What this machine can do, measured.");
}

}  // namespace ghostrank
