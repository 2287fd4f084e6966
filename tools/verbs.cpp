// See verbs.h.
#include "tools/verbs.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "profiles/error.h"
#include "profiles/load/variables.h"
#include "tools/text/table.h"
#include "tools/version.h"

namespace ghostrank {
namespace {

const Verb* find_verb(std::span<const Verb> verbs, const std::string& name) {
  const auto found =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.name == name; });
  return found == verbs.end() ? nullptr : &*found;
}

std::string names_of(std::span<const Verb> verbs) {
  std::string text;
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    text += i == 0 ? "" : i + 1 == verbs.size() ? " and " : ", ";
    text += verbs[i].name;
  }
  return text;
}

std::string synopses(std::span<const Verb> verbs) {
  std::vector<Fact> lines;
  for (const Verb& verb : verbs)
    lines.push_back({std::string(verb.name), std::string(verb.synopsis)});
  return render(lines, 2);
}

void print_help() {
  std::printf(
      "ghostrank: emulate the training of a large model on a few ordinary servers\n\n"
      "Usage: ghostrank VERB [ARGUMENTS]\n\n"
      "Verbs:\n%s\n"
      "Examples:\n"
      "  ghostrank run profiles/jobs/gpt2-xl-ddp.yaml\n"
      "  ghostrank run JOB.yaml -s fabric.kind=virtual -s cluster.nodes=64 --json out.json\n"
      "  ghostrank schedule allreduce --library generic --algorithm ring --ranks 4 --count 1M\n"
      "  ghostrank doctor\n\n"
      "'ghostrank VERB --help' shows the flags of a verb.\n",
      synopses(all_verbs()).c_str());
}

void print_version() {
  const BuildFacts build = build_facts();
  std::printf("ghostrank " GHOSTRANK_VERSION "\ncommit %s, compiler %s, %s\n", build.commit.c_str(),
              build.compiler.c_str(), build.type.c_str());
}

}  // namespace

std::span<const Verb> all_verbs() {
  static const std::array verbs{
      Verb{"run", "play a job: real messages at the right time, or all of it in virtual time",
           verb_run},
      Verb{"plan", "show what a job would send, without sending it", verb_plan},
      Verb{"schedule", "show the messages of one rank in one collective", verb_schedule},
      Verb{"schemes", "list what can play each collective, and why the rest cannot", verb_schemes},
      Verb{"bench", "measure a collective over sizes as nccl-tests does, or a pattern of flows",
           verb_bench},
      Verb{"compare", "compare results, or play variants of a job in turn (A/B)", verb_compare},
      Verb{"sweep", "play every point of a grid of settings: a CSV row each, and a picture",
           verb_sweep},
      Verb{"adapt", "adapt what compression sends to a network that changes, against fixed ratios",
           verb_adapt},
      Verb{"report", "write a page about results: one file, to open, print or send", verb_report},
      Verb{"diagnose", "say what limits the step of a result, and what to do about it",
           verb_diagnose},
      Verb{"diff", "compare a result's bytes with packet captures of a real run", verb_diff},
      Verb{"profile", "show, check or write models and other profiles", verb_profile,
           profile_verbs()},
      Verb{"doctor", "show what this machine has, and what would improve runs", verb_doctor},
      Verb{"place", "find where nodes should lie, on real hosts or on a fabric, to send little far",
           verb_place},
      Verb{"topology", "show the switches and cables of a modelled network", verb_topology,
           topology_verbs()},
      Verb{"switch", "start a programmable switch, or talk to one", verb_switch, switch_verbs()},
      Verb{"nccl", "compare NCCL's log or graph dump with what is played here", verb_nccl,
           nccl_verbs()},
      Verb{"calibrate", "measure this machine, or fit a device to measured steps", verb_calibrate,
           calibrate_verbs()},
      Verb{"help", "show the flags of a verb, its man page, or completion for a shell", verb_help},
  };
  return verbs;
}

int play_verb(const Argv& argv) {
  if (argv.size() < 2) throw Error("which verb? 'ghostrank --help' lists them");
  const std::string& name = argv[1];
  if (name == "--help" || name == "-h" || (name == "help" && argv.size() == 2)) {
    print_help();
    return 0;
  }
  if (name == "--version" || name == "-V") {
    print_version();
    return 0;
  }
  const Verb* const verb = find_verb(all_verbs(), name);
  if (verb == nullptr) {
    for (const Verb& parent : all_verbs())
      if (find_verb(parent.verbs, name) != nullptr)
        throw Error("there is no verb '" + name + "'; write  ghostrank " +
                    std::string(parent.name) + " " + name);
    throw Error("there is no verb '" + name + "'; 'ghostrank --help' lists them");
  }
  check_variables();
  return verb->play(argv);
}

int play_verb_of(std::span<const Verb> verbs, const Argv& argv, std::string_view intro) {
  const std::string parent = argv.at(1), name = argv.size() > 2 ? argv[2] : "";
  if (name == "--help" || name == "-h") {
    std::printf("%s\n\nUsage: ghostrank %s VERB [ARGUMENTS]; each VERB has --help\n\n%s",
                std::string(intro).c_str(), parent.c_str(), synopses(verbs).c_str());
    return 0;
  }
  const std::string known = "known are " + names_of(verbs);
  if (name.empty()) throw Error(parent + " what? " + known);
  const Verb* const verb = find_verb(verbs, name);
  if (verb == nullptr) throw Error("there is no '" + parent + " " + name + "'; " + known);
  Argv rest = argv;
  rest.erase(rest.begin() + 1);
  return verb->play(rest);
}

}  // namespace ghostrank
