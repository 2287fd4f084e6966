// The ghostrank command: finds the verb, catches errors once, returns the exit status.
//
//   0 ok;  1 the run failed, missed an expectation, or was not faithful;  2 usage, job or profile;
//   3 environment;  130, 143 signals
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "profiles/error.h"
#include "tools/signals.h"
#include "tools/table.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

struct Verb {
  std::string_view name, synopsis;
  int (*play)(const Argv& argv);  // null: known by name, not available yet
};

constexpr std::array kVerbs{
    Verb{"run", "play a job: real messages at the right time, or all of it in virtual time",
         verb_run},
    Verb{"plan", "say what a job would send, without sending it", verb_plan},
    Verb{"schedule", "show the messages of one rank in one collective", verb_schedule},
    Verb{"schemes", "what can play which collective, and why not", verb_schemes},
    Verb{"bench", "measure a collective over sizes as nccl-tests does, or a pattern of flows",
         verb_bench},
    Verb{"compare", "hold results side by side", verb_compare},
    Verb{"profile", "draw, check or write what is trained: models and other profiles",
         verb_profile},
    Verb{"doctor", "say what is present here, and what would make runs better", verb_doctor},
    Verb{"switch", "start a programmable switch, or talk to one", verb_switch},
    Verb{"sweep", "", nullptr},
    Verb{"calibrate", "", nullptr},
    Verb{"report", "", nullptr},
};

void print_help() {
  std::vector<Fact> lines;
  std::string reserved;
  for (const Verb& verb : kVerbs) {
    if (verb.play != nullptr) {
      lines.push_back({std::string(verb.name), std::string(verb.synopsis)});
    } else {
      reserved += (reserved.empty() ? "" : ", ") + std::string(verb.name);
    }
  }
  std::printf(
      "ghostrank: emulate the training of a large model on a few ordinary servers\n\n"
      "Usage: ghostrank VERB [ARGUMENTS]\n\n"
      "Verbs:\n%s\n"
      "Not available yet: %s\n\n"
      "Examples:\n"
      "  ghostrank run profiles/jobs/gpt2-xl-ddp.yaml\n"
      "  ghostrank run JOB.yaml -s fabric.kind=virtual -s cluster.nodes=64 --json out.json\n"
      "  ghostrank schedule allreduce --library generic --algorithm ring --ranks 4 --count 1M\n"
      "  ghostrank doctor\n\n"
      "'ghostrank VERB --help' shows the flags of a verb.\n",
      render(lines, 2).c_str(), reserved.c_str());
}

int play(const Argv& argv) {
  if (argv.size() < 2) throw Error("which verb? 'ghostrank --help' lists them");
  const std::string& name = argv[1];
  if (name == "help" && argv.size() > 2) return play({argv[0], argv[2], "--help"});
  if (name == "--help" || name == "-h" || name == "help") {
    print_help();
    return 0;
  }
  if (name == "--version" || name == "-V") {
    std::puts("ghostrank " GHOSTRANK_VERSION);
    return 0;
  }
  const auto verb =
      std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& v) { return v.name == name; });
  if (verb == kVerbs.end()) {
    throw Error("there is no verb '" + name + "'; 'ghostrank --help' lists them");
  }
  if (verb->play == nullptr) throw Error(name + " is not available yet");
  return verb->play(argv);
}

}  // namespace
}  // namespace ghostrank

int main(int argc, char** argv) {
  try {
    const int status = ghostrank::play(ghostrank::Argv(argv, argv + argc));
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw ghostrank::Error(std::string("cannot write to stdout: ") + std::strerror(errno),
                             ghostrank::ErrorKind::environment);
    }
    return status;
  } catch (const ghostrank::Error& error) {
    std::fprintf(stderr, "ghostrank: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ghostrank: unexpected: %s\n", error.what());
    return 1;
  }
}
