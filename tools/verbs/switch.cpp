// ghostrank switch: starts a programmable switch on named interfaces or pcap files, and talks to
// one that runs.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <net/if.h>
#include <optional>
#include <set>
#include <stdexcept>
#include <sys/prctl.h>
#include <system_error>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "profiles/input/files_read.h"
#include "profiles/input/input_file.h"
#include "profiles/input/yaml.h"
#include "tools/report/files/output_files.h"
#include "tools/switching/control.h"
#include "tools/switching/cores.h"
#include "tools/switching/plan.h"
#include "tools/switching/report.h"
#include "tools/switching/show.h"
#include "tools/switching/targets/bmv2.h"
#include "tools/switching/targets/compiled.h"
#include "tools/switching/targets/dpdk.h"
#include "tools/text/humane.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/watch/signals.h"

namespace ghostrank {
namespace {

using switchml::CompiledSwitch;
using switchml::PortName;

struct SwitchRunFlags {
  std::string plan, target = "compiled", program, compiled, entries, socket, json;
  std::vector<std::string> ports;
  bool in_order = false, as_written = false, with_parent = false;
  int cores = 1;
};

std::atomic<bool> stop_requested{false};

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool read_run_flags(const Argv& argv, SwitchRunFlags& flags) {
  CLI::App app("Start a programmable switch.", "ghostrank switch run");
  app.add_option("--target", flags.target,
                 "compiled: C++; dpdk: the P4 program on DPDK; bmv2: on simple_switch")
      ->capture_default_str();
  app.add_option("--plan", flags.plan, "addresses, forwarding and jobs (docs/switch.md)")
      ->type_name("FILE.yaml");
  app.add_option("--program", flags.program,
                 "another program than ours: .p4, or what p4c makes of it, a .spec (dpdk) or JSON "
                 "(bmv2)")
      ->type_name("FILE");
  app.add_option("--entries", flags.entries,
                 "its table entries (dpdk) or commands (bmv2), in place of a plan")
      ->type_name("FILE");
  app.add_option("--ports", flags.ports,
                 "interfaces (dpdk: also xdp:IF), or IN.pcap:OUT.pcap, in the order of ports")
      ->required()
      ->delimiter(',')
      ->type_name("PORT,PORT,...");
  app.add_flag(
      "--in-order", flags.in_order,
      "dpdk: one frame in the pipeline at a time, so that what leaves is in order; slower");
  app.add_flag("--as-written", flags.as_written,
               "dpdk: plays every instruction of the program, without shortening sums and jumps");
  app.add_option("--cores", flags.cores, "not bmv2; on interfaces: slots are dealt out to so many")
      ->capture_default_str()
      ->check(between(1, 64));
  app.add_option("--compiled", flags.compiled,
                 "what p4c has made of the program, so that it is not compiled again")
      ->type_name("FILE")
      ->group("");  // for a run that starts several switches
  app.add_flag("--with-parent", flags.with_parent,
               "end when the process that started it ends, however it ends");
  app.add_option("--socket", flags.socket, "control socket, with interfaces")->type_name("PATH");
  app.add_option("--json", flags.json, "all counters at the end; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank switch run --plan switch.yaml --ports eth1,eth2 --socket /run/switch.sock\n"
      "  ghostrank switch run --plan switch.yaml --ports a.pcap:a-out.pcap,b.pcap:b-out.pcap");
  return parse(app, argv);
}

// Checks that no output is also an input or another port's output, and that each interface is one
// port.
void check_ports(const std::vector<PortName>& ports) {
  std::set<std::filesystem::path> in, out;
  std::vector<std::string> interfaces;
  // An interface may have several names.
  const auto same = [](const std::string& a, const std::string& b) {
    const unsigned number = if_nametoindex(a.c_str());
    return a == b || (number != 0 && number == if_nametoindex(b.c_str()));
  };
  const auto plain = [](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file));
  };
  for (const PortName& port : ports) {
    if (!port.in.empty()) in.insert(plain(port.in));
    if (port.interface.empty()) continue;
    const std::string& name = port.interface;
    const auto known = std::find_if(interfaces.begin(), interfaces.end(),
                                    [&](const std::string& one) { return same(one, name); });
    if (known != interfaces.end())
      throw Error("--ports: " + name +
                  (*known == name ? " is named twice" : " is another name of " + *known) +
                  "; a frame would come in by both: name each interface once");
    interfaces.push_back(name);
  }
  for (const PortName& port : ports) {
    if (port.out.empty() || std::filesystem::is_character_file(port.out)) continue;
    if (in.contains(plain(port.out)))
      throw Error("--ports: " + port.out + " is both read and written; name another OUT");
    if (!out.insert(plain(port.out)).second)
      throw Error("--ports: " + port.out + " is written by two ports; name another OUT");
  }
}

// Files or interfaces, not both.
bool on_files(const std::vector<PortName>& ports) {
  std::size_t files = 0;
  for (const PortName& port : ports) files += port.interface.empty();
  if (files != 0 && files != ports.size())
    throw Error("--ports names interfaces and files; a switch has one or the other");
  check_ports(ports);
  return files != 0;
}

// Checks that no output is an input of this command, and that no two are one file.
void check_files(const SwitchRunFlags& flags, const std::vector<PortName>& ports) {
  for (const std::string& read : {flags.plan, flags.program, flags.entries, flags.compiled})
    if (!read.empty()) note_read(read);
  std::vector<Output> outputs{{"--json", flags.json}};
  for (const PortName& port : ports) {
    if (!port.in.empty()) note_read(port.in);
    outputs.push_back({"--ports", port.out});
  }
  check_outputs(outputs);
}

void check_xdp(const std::vector<PortName>& ports, const std::string& target, int cores) {
  const auto xdp = std::count_if(ports.begin(), ports.end(), [](const auto& p) { return p.xdp; });
  if (xdp == 0) return;
  if (target != "dpdk")
    throw Error("--ports: xdp: is DPDK's; use --target dpdk, or the interface's bare name");
  if (cores > 1)
    throw Error("--cores deals packets out by packet sockets; leave out xdp:, or --cores");
  if (xdp != std::ssize(ports))
    throw Error("--ports: all of a switch's interfaces are xdp: or none is");
}

void stop_on_signal(int) { stop_requested = true; }

void check_target(const SwitchRunFlags& flags) {
  const bool dpdk = flags.target == "dpdk", bmv2 = flags.target == "bmv2";
  if (!dpdk && !bmv2 && flags.target != "compiled")
    throw Error("there is no target '" + flags.target + "'; known are compiled, dpdk and bmv2");
  if (!dpdk && !bmv2 && !flags.entries.empty())
    throw Error("--entries belongs to --target dpdk and bmv2");
  if (!dpdk && flags.as_written) throw Error("--as-written belongs to --target dpdk");
  if (!dpdk && !bmv2 && !flags.program.empty())
    throw Error("--program belongs to --target dpdk and bmv2");
  if (!flags.plan.empty() && !flags.entries.empty())
    throw Error("--entries is in place of a plan; leave out --plan or --entries");
  if (flags.cores > 1 && bmv2) throw Error("--cores belongs to --target compiled and dpdk");
  if (flags.cores > 1 && flags.in_order)
    throw Error("--in-order is of one core; leave out --cores");
  if (flags.cores > 1 && flags.plan.empty())
    throw Error("--cores deals out SwitchML's slots; it needs a --plan");
  if (flags.plan.empty() && flags.entries.empty())
    throw Error("which jobs? name a plan with --plan (docs/switch.md)");
}

void write_counters(const SwitchRunFlags& flags, const std::string& title, RunningSwitch& sw,
                    const SwitchTime& time) {
  const switchml::SwitchCounters counters = sw.counters();
  if (flags.json != "-") {
    const std::string bold = paint_for(STDOUT_FILENO).bold(title);
    std::fputs(switch_report(bold, sw.plan(), counters, time).c_str(), stdout);
  }
  if (!flags.json.empty()) write_whole(flags.json, switch_json(counters) + "\n");
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// The control socket, if --socket names one.
class ControlSocket {
 public:
  ControlSocket(const SwitchRunFlags& flags, RunningSwitch& sw) {
    if (!flags.socket.empty()) control_.emplace(flags.socket, sw);
  }
  std::vector<switchml::Watch> watches() {
    return control_ ? std::vector{control_->watch()} : std::vector<switchml::Watch>{};
  }

 private:
  std::optional<SwitchControl> control_;
};

// Returns the error if an interface that is gone ended play(): the counters can still be shown.
std::optional<Error> play_until_gone(const std::function<void()>& play) {
  try {
    play();
  } catch (const std::system_error& error) {
    return Error(error.what(), ErrorKind::environment);
  }
  return std::nullopt;
}

void run_dpdk_switch(const SwitchRunFlags& flags) {
  std::optional<switchml::SwitchPlan> plan;
  if (flags.entries.empty())
    plan = read_switch_plan(flags.plan, static_cast<int>(flags.ports.size()));
  if (flags.cores > 1) {
    if (const std::string why = reason_against_cores(*plan); !why.empty()) throw Error(why);
  }
  const auto began = std::chrono::steady_clock::now();
  DpdkSwitch sw({flags.program, flags.compiled, flags.entries, flags.ports, flags.cores,
                 flags.in_order, flags.as_written},
                std::move(plan));
  ControlSocket control(flags, sw);
  const std::optional<Error> ended =
      play_until_gone([&] { sw.run(control.watches(), stop_requested); });
  sw.counters();
  // On xdp: the runner polls, so its processor time says nothing of the packets.
  const bool spins = switchml::port_named(flags.ports[0]).xdp;
  write_counters(flags, "P4 switch on DPDK", sw,
                 {seconds_since(began), spins ? 0 : sw.processor_seconds()});
  if (ended) throw Error(*ended);
}

void run_compiled_switch(const SwitchRunFlags& flags, const std::vector<PortName>& ports,
                         bool files) {
  CompiledSwitch sw(read_switch_plan(flags.plan, static_cast<int>(ports.size())));
  RunningCompiled running(sw, stop_requested);
  const auto began = std::chrono::steady_clock::now();
  const double processor = processor_seconds();
  std::optional<Error> ended;
  try {
    const auto frames = files ? open_files(ports) : open_interfaces(ports);
    ControlSocket control(flags, running);
    ended = play_until_gone([&] { run(sw, *frames, control.watches(), stop_requested); });
  } catch (const std::system_error& error) {
    throw Error(error.what(), ErrorKind::environment);
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
  write_counters(flags, "compiled switch", running,
                 {seconds_since(began), processor_seconds() - processor});
  if (ended) throw Error(*ended);
}

void run_on_cores(const SwitchRunFlags& flags, const std::vector<PortName>& ports) {
  const auto began = std::chrono::steady_clock::now();
  const double processor = processor_seconds();
  const switchml::SwitchPlan plan = read_switch_plan(flags.plan, static_cast<int>(ports.size()));
  try {
    SwitchOnCores sw(plan, ports, flags.cores, stop_requested);
    ControlSocket control(flags, sw);
    const std::optional<Error> ended = play_until_gone([&] { sw.run(control.watches()); });
    write_counters(flags, "compiled switch on " + std::to_string(flags.cores) + " cores", sw,
                   {seconds_since(began), processor_seconds() - processor});
    if (ended) throw Error(*ended);
  } catch (const std::system_error& error) {
    throw Error(error.what(), ErrorKind::environment);
  } catch (const std::invalid_argument& error) {
    throw Error(error.what());
  }
}

void run_bmv2_switch(const SwitchRunFlags& flags, const std::vector<PortName>& ports) {
  std::optional<switchml::SwitchPlan> plan;
  if (flags.entries.empty()) plan = read_switch_plan(flags.plan, static_cast<int>(ports.size()));
  const auto began = std::chrono::steady_clock::now();
  Bmv2Switch sw({flags.program, flags.compiled, flags.entries, ports}, std::move(plan));
  ControlSocket control(flags, sw);
  const std::optional<Error> ended =
      play_until_gone([&] { sw.run(control.watches(), stop_requested); });
  write_counters(flags, "P4 switch on bmv2", sw, {seconds_since(began), 0});
  if (ended) throw Error(*ended);
}

int run_switch(const Argv& argv) {
  SwitchRunFlags flags;
  if (!read_run_flags(argv, flags)) return 0;
  check_target(flags);
  std::vector<PortName> ports;
  for (const std::string& text : flags.ports) {
    if (text.starts_with("ethdev:"))
      throw Error(
          "--ports: NICs through DPDK's own drivers are not available yet; name an "
          "interface, or xdp: and its name");
    ports.push_back(switchml::port_named(text));
  }
  const bool files = on_files(ports);
  check_files(flags, ports);
  check_xdp(ports, flags.target, flags.cores);
  if (files && !flags.socket.empty())
    throw Error("--socket is for a switch on interfaces; on files it ends with the files");
  struct sigaction action {};
  action.sa_handler = stop_on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigset_t awaited;  // unblocked, because the parent process may have blocked them
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGINT);
  sigaddset(&awaited, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &awaited, nullptr);
  if (flags.with_parent) prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (files && flags.cores > 1)
    throw Error("--cores is for interfaces; the frames of files are in one order, for one core");
  if (flags.target == "dpdk")
    run_dpdk_switch(flags);
  else if (flags.cores > 1)
    run_on_cores(flags, ports);
  else if (flags.target == "bmv2")
    run_bmv2_switch(flags, ports);
  else
    run_compiled_switch(flags, ports, files);
  return 0;
}

int show(const Argv& argv) {
  std::vector<std::string> names;
  std::size_t most = 100;
  CLI::App app("What went into a switch on pcap files and what came out, frame by frame.",
               "ghostrank switch show");
  app.add_option("--ports", names, "IN.pcap:OUT.pcap, in the order of ports")
      ->required()
      ->delimiter(',')
      ->type_name("PORT,PORT,...");
  app.add_option("--most", most, "lines at most")->capture_default_str();
  if (!parse(app, argv)) return 0;
  std::vector<PortName> ports;
  for (const std::string& name : names) {
    ports.push_back(switchml::port_named(name));
    if (!ports.back().interface.empty())
      throw Error("--ports: '" + name + "' is no file; name IN.pcap:OUT.pcap");
  }
  try {
    std::fputs(switch_show(ports, most).c_str(), stdout);
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
  return 0;
}

// Sends a request to a running switch and prints its answer.
int ask(const Argv& argv) {
  const std::string& verb = argv.at(1);
  std::string socket, argument;
  CLI::App app("Talk to a running switch.", "ghostrank switch " + verb);
  app.add_option("--socket", socket, "its control socket")->required()->type_name("PATH");
  const bool names_job = verb == "remove" || verb == "reset";
  if (verb == "admit") {
    app.add_option("job", argument, "the job, as in a plan")->required()->type_name("FILE.yaml");
  } else if (names_job) {
    app.add_option("job", argument, "the job's name")->required();
  }
  if (!parse(app, argv)) return 0;
  nlohmann::ordered_json request{{"do", verb}};
  if (names_job) request["job"] = argument;
  if (verb == "admit") request["job"] = read_input(argument);
  const std::string answer =
      ask_switch(socket, request.dump(), verb == "stop" ? Until::stopped : Until::answered);
  const auto json = nlohmann::ordered_json::parse(answer, nullptr, false);
  if (!json.is_object() || !json.value("ok", false)) {
    throw Error("the switch refused: " + (json.is_object() ? json.value("error", answer) : answer));
  }
  std::puts(answer.c_str());
  return 0;
}

}  // namespace

std::span<const Verb> switch_verbs() {
  static constexpr std::array kVerbs{
      Verb{"run", "start one, on interfaces or on pcap files", run_switch},
      Verb{"show", "what went in and came out on pcap files, frame by frame", show},
      Verb{"admit", "one that runs: take in a job", ask},
      Verb{"remove", "one that runs: forget a job", ask},
      Verb{"reset", "one that runs: forget a job's sums", ask},
      Verb{"counters", "one that runs: those of jobs and ports, as JSON", ask},
      Verb{"stop", "one that runs: end it", ask},
  };
  return kVerbs;
}

int verb_switch(const Argv& argv) {
  return play_verb_of(switch_verbs(), argv,
                      "A programmable switch that sums what passes through it (docs/switch.md).");
}

}  // namespace ghostrank
