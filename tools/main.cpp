// The ghostrank command: finds the verb, catches errors once, returns the exit status.
//
//   0 ok;  1 the run failed, missed an expectation, or was not faithful;  2 usage, job or profile;
//   3 environment;  130, 143 signals
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "profiles/error.h"
#include "profiles/load/variables.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/watch/signals.h"

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
  check_variables();
  return verb->play(argv);
}

// Given back when memory has run out, so that there is some to say so with, in whatever thread.
std::atomic<void*> reserve{nullptr};
constexpr std::size_t kReserveBytes = 8u << 20;  // of address space: it is not touched

void give_reserve_back() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

void keep_memory_for_the_end() {
  reserve = std::malloc(kReserveBytes);
  std::set_new_handler(give_reserve_back);
}

}  // namespace
}  // namespace ghostrank

int main(int argc, char** argv) {
  ghostrank::keep_memory_for_the_end();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails, and says so
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
  } catch (const std::bad_alloc&) {
    std::fputs("ghostrank: out of memory: ask for less, or give this machine more\n", stderr);
    return static_cast<int>(ghostrank::ErrorKind::environment);
  } catch (const std::system_error& error) {
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(stderr, "ghostrank: %s: %s\n",
                 no_thread ? "a thread cannot be started" : "unexpected", error.what());
    return no_thread ? static_cast<int>(ghostrank::ErrorKind::environment) : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ghostrank: unexpected: %s\n", error.what());
    return 1;
  }
}
