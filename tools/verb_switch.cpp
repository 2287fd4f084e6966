// ghostrank switch: starts a programmable switch on named interfaces or pcap files, and talks to
// one that runs.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "profiles/yaml.h"
#include "tools/humane.h"
#include "tools/result_json.h"
#include "tools/signals.h"
#include "tools/switch_control.h"
#include "tools/switch_dpdk.h"
#include "tools/switch_plan.h"
#include "tools/table.h"
#include "tools/verbs.h"

namespace ghostrank {
namespace {

using switchml::CompiledSwitch;
using switchml::PortName;

struct RunFlags {
  std::string plan, target = "compiled", program, entries, socket, json;
  std::vector<std::string> ports;
};

std::atomic<bool> stop_requested{false};

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::string number(std::uint64_t n) { return std::to_string(n); }

void report(const CompiledSwitch& sw, double seconds, double processor) {
  const Paint paint = paint_for(STDOUT_FILENO);
  double packets = 0, bytes = 0;
  Table ports{{{"port", Align::right},
               {"in", Align::right},
               {"out", Align::right},
               {"malformed", Align::right},
               {"of no job", Align::right},
               {"lost on purpose", Align::right},
               {"no such address", Align::right}},
              {}};
  for (int p = 0; p < sw.plan().ports; ++p) {
    const switchml::PortCounters& c = sw.port(p);
    packets += static_cast<double>(c.received);
    bytes += static_cast<double>(c.received_bytes);
    ports.rows.push_back({number(static_cast<std::uint64_t>(p)), number(c.received), number(c.sent),
                          number(c.malformed), number(c.strangers), number(c.lost),
                          number(c.unknown)});
  }
  Table jobs{{{"job"},
              {"workers", Align::right},
              {"elements", Align::right},
              {"chunks in", Align::right},
              {"sums", Align::right},
              {"repeated", Align::right},
              {"copies out", Align::right}},
             {}};
  for (const switchml::JobPlan& job : sw.plan().jobs) {
    const switchml::JobCounters& c = *sw.counters(job.name);
    jobs.rows.push_back({job.name, number(job.workers.size()),
                         number(static_cast<std::uint64_t>(job.elements)), number(c.received),
                         number(c.broadcasts), number(c.duplicates + c.retransmissions),
                         number(c.sent)});
  }
  std::printf("%s\n%s\n%s\n", paint.bold("compiled switch").c_str(), render(ports, 2).c_str(),
              render(jobs, 2).c_str());
  std::printf(
      "%s packets (%s) in %s, payload summed and copied; %s of processor time: %s "
      "packets/s per core\n",
      humane_count(packets).c_str(), humane_bytes(bytes).c_str(), humane_seconds(seconds).c_str(),
      humane_seconds(processor).c_str(),
      humane_count(processor > 0 ? packets / processor : 0).c_str());
}

bool read_run_flags(const Argv& argv, RunFlags& flags) {
  CLI::App app("Start a programmable switch.", "ghostrank switch run");
  app.add_option("--target", flags.target, "compiled: C++; dpdk: the P4 program on DPDK")
      ->capture_default_str();
  app.add_option("--plan", flags.plan, "addresses, forwarding and jobs (docs/switch.md)")
      ->type_name("FILE.yaml");
  app.add_option("--program", flags.program, "dpdk: another pipeline than ours")
      ->type_name("FILE.spec");
  app.add_option("--entries", flags.entries, "dpdk: its table entries, in place of a plan")
      ->type_name("FILE");
  app.add_option("--ports", flags.ports, "interfaces, or IN.pcap:OUT.pcap, in the order of ports")
      ->required()
      ->delimiter(',')
      ->type_name("PORT,PORT,...");
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

// Files or interfaces, not both.
bool on_files(const std::vector<PortName>& ports) {
  std::size_t files = 0;
  for (const PortName& port : ports) files += port.interface.empty();
  if (files != 0 && files != ports.size())
    throw Error("--ports names interfaces and files; a switch has one or the other");
  return files != 0;
}

void stop_on_signal(int) { stop_requested = true; }

void check_target(const RunFlags& flags) {
  if (flags.target == "bmv2")
    throw Error("--target bmv2 is not available yet; use compiled or dpdk");
  const bool dpdk = flags.target == "dpdk";
  if (!dpdk && flags.target != "compiled")
    throw Error("there is no target '" + flags.target + "'; known are compiled and dpdk");
  if (!dpdk && (!flags.program.empty() || !flags.entries.empty()))
    throw Error("--program and --entries belong to --target dpdk");
  if (dpdk && !flags.socket.empty())
    throw Error(
        "--socket belongs to --target compiled; the DPDK switch takes its jobs from the plan");
  if (flags.plan.empty() && flags.entries.empty())
    throw Error("which jobs? name a plan with --plan (docs/switch.md)");
}

int run_dpdk_switch(const RunFlags& flags) {
  std::optional<switchml::SwitchPlan> plan;
  if (flags.entries.empty())
    plan = read_switch_plan(flags.plan, static_cast<int>(flags.ports.size()));
  const std::string counters =
      run_on_dpdk({flags.program, flags.entries, flags.ports}, plan ? &*plan : nullptr);
  if (flags.json != "-") {
    const auto json = nlohmann::ordered_json::parse(counters);
    Table table{{{"port", Align::right},
                 {"in", Align::right},
                 {"out", Align::right},
                 {"cut short", Align::right}},
                {}};
    for (const auto& port : json.at("ports")) {
      table.rows.push_back({port.at("port").dump(), port.at("received").dump(),
                            port.at("sent").dump(), port.at("short").dump()});
    }
    std::printf("%s\n%s", paint_for(STDOUT_FILENO).bold("P4 switch on DPDK").c_str(),
                render(table, 2).c_str());
  }
  if (!flags.json.empty()) write_whole(flags.json, counters);
  return 0;
}

int run_switch(const Argv& argv) {
  RunFlags flags;
  if (!read_run_flags(argv, flags)) return 0;
  check_target(flags);
  std::vector<PortName> ports;
  for (const std::string& text : flags.ports) ports.push_back(switchml::port_named(text));
  const bool files = on_files(ports);
  if (files && !flags.socket.empty())
    throw Error("--socket is for a switch on interfaces; on files it ends with the files");
  if (flags.target == "dpdk") return run_dpdk_switch(flags);
  CompiledSwitch sw(read_switch_plan(flags.plan, static_cast<int>(ports.size())));

  const auto began = std::chrono::steady_clock::now();
  const double processor = processor_seconds();
  try {
    const auto frames = files ? open_files(ports) : open_interfaces(ports);
    struct sigaction action {};
    action.sa_handler = stop_on_signal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    std::optional<SwitchControl> control;
    if (!flags.socket.empty()) control.emplace(flags.socket, sw, stop_requested);
    run(sw, *frames, control ? std::vector{control->watch()} : std::vector<switchml::Watch>{},
        stop_requested);
  } catch (const std::system_error& error) {
    throw Error(error.what(), ErrorKind::environment);
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  if (flags.json != "-") report(sw, wall.count(), processor_seconds() - processor);
  if (!flags.json.empty()) write_whole(flags.json, switch_counters(sw) + "\n");
  return 0;
}

// A request to a running switch; prints its answer.
int ask(const Argv& argv, const std::string& verb) {
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
  if (verb == "admit") request["job"] = read_text(argument);
  const std::string answer = ask_switch(socket, request.dump());
  const auto json = nlohmann::ordered_json::parse(answer, nullptr, false);
  if (!json.is_object() || !json.value("ok", false)) {
    throw Error("the switch refused: " + (json.is_object() ? json.value("error", answer) : answer));
  }
  std::puts(answer.c_str());
  return 0;
}

}  // namespace

int verb_switch(const Argv& argv) {
  const std::string verb = argv.size() > 2 ? argv[2] : "--help";
  Argv rest{argv.front()};
  rest.insert(rest.end(), argv.begin() + std::min<std::ptrdiff_t>(2, std::ssize(argv)), argv.end());
  if (verb == "run") return run_switch(rest);
  for (const char* known : {"admit", "remove", "reset", "counters", "stop"}) {
    if (verb == known) return ask(rest, verb);
  }
  const std::string usage =
      "ghostrank switch run | admit | remove | reset | counters | stop; each has a --help";
  if (verb != "--help" && verb != "-h")
    throw Error("there is no 'switch " + verb + "'; known are: " + usage);
  std::puts(usage.c_str());
  return 0;
}

}  // namespace ghostrank
