// ghostrank-dpdk: plays a .spec on pcap files or interfaces with DPDK's SWX pipeline.
// `ghostrank switch run --target dpdk` starts it, so that the command itself does not need DPDK.
//
//   ghostrank-dpdk [--in-order] [--as-written] [--cores=N] [--control] [--show=REGISTERS]...
//                  [--include=FOLDER]... SPEC ENTRIES PORT...
//
//   ENTRIES         a file of commands (commands.h)
//   PORT            as for `switch run`
//   --in-order      one packet in the pipeline at a time
//   --as-written    do not shorten sums and jumps
//   --include       where files are that SPEC includes (expand.h)
//   --cores         one pipeline per core; packet sockets only
//   --control       descriptor 3 is a control line to the process that started this (control.h)
//
// At the end it prints one line of JSON: counters by port, the register arrays to show, the
// processor time since the first packet, and the part of it outside the kernel. Exit status as the
// command's. With --control, a failure prints "error WHAT" instead of that line.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <sstream>
#include <stdexcept>
#include <sys/resource.h>
#include <system_error>

#include <nlohmann/json.hpp>

#include "switch/dpdk/control.h"
#include "switch/dpdk/cores.h"
#include "switch/dpdk/expand.h"
#include "switch/dpdk/jumps.h"
#include "switch/dpdk/sums.h"
#include "switch/dpdk/xdp_ports.h"
#include "switch/ports/frame_ports.h"

namespace ghostrank::dpdk {
namespace {

using Json = nlohmann::ordered_json;

std::atomic<bool> stop_requested{false};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> all;
  std::istringstream text(text_of(path));
  for (std::string line; std::getline(text, line);) all.push_back(line);
  return all;
}

// Memory in MiB: for DPDK itself, for a pipeline with its registers and tables, for the frames of
// an interface.
constexpr int kBaseMegabytes = 128, kPipelineMegabytes = 128, kInterfaceMegabytes = 16;

// Starts DPDK. It would bind this thread, and the threads that this thread starts, to one core, so
// their CPUs are restored afterwards.
void start_dpdk(int megabytes, const std::vector<std::string>& more) {
  std::array<cpu_set_t, 8> allowed{};  // 8192 CPUs, the most that Linux supports
  sched_getaffinity(0, sizeof allowed, allowed.data());
  std::size_t core = 0;
  while (core + 1 < 8 * sizeof allowed && !CPU_ISSET_S(core, sizeof allowed, allowed.data()))
    ++core;
  std::vector<std::string> words{"ghostrank-dpdk",
                                 "-l",
                                 std::to_string(core),
                                 "--no-huge",
                                 "-m",
                                 std::to_string(megabytes),
                                 "--no-shconf",
                                 "--no-pci",
                                 "--no-telemetry",
                                 "--iova-mode=va",
                                 "--log-level=critical"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0)
    throw std::system_error(rte_errno, std::generic_category(), "DPDK cannot be started");
  sched_setaffinity(0, sizeof allowed, allowed.data());
}

Json ports_json(const std::vector<PortCounters>& ports) {
  Json list = Json::array();
  for (std::size_t p = 0; p < ports.size(); ++p) {
    const PortCounters& c = ports[p];
    list.push_back({{"port", p},
                    {"received", c.received},
                    {"received_bytes", c.received_bytes},
                    {"sent", c.sent},
                    {"sent_bytes", c.sent_bytes},
                    {"short", c.short_frames},
                    {"overlong", c.overlong}});
  }
  return list;
}

// {"NAME": [cells]}
Json registers_json(const std::vector<SpecRegisters>& shown, Cores& cores) {
  Json json = Json::object();
  for (const SpecRegisters& r : shown) json[r.name] = cores.cells(r);
  return json;
}

std::vector<SpecRegisters> registers_named(const std::vector<std::string>& names,
                                           const Spec& program) {
  std::vector<SpecRegisters> found;
  for (const std::string& name : names) {
    for (const SpecRegisters& r : program.registers) {
      if (r.name == name) found.push_back(r);
    }
  }
  return found;
}

// Seconds of the processor: all, and those outside the kernel.
struct Spent {
  double processor = 0, user = 0;
};

Spent spent() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double user = seconds(usage.ru_utime);
  return {user + seconds(usage.ru_stime), user};
}

constexpr int kControlFd = 3;

struct Arguments {
  bool in_order = false, as_written = false, control = false;
  int cores = 1;
  std::vector<std::string> show, include;
  std::string spec, entries;
  std::vector<std::string> ports;
};

int play(const Arguments& wanted) {
  std::vector<switchml::PortName> names;
  for (const std::string& name : wanted.ports) names.push_back(switchml::port_named(name));
  const bool files = names.front().interface.empty();
  Spec program = parse_spec(expand_spec(wanted.spec, wanted.include), wanted.spec);
  if (!wanted.as_written) {
    shorten_sums(program);
    shorten_jumps(program);
  }
  const bool xdp = names.front().xdp;
  std::vector<std::unique_ptr<switchml::FramePorts>> frames;
  const int megabytes = kBaseMegabytes + kPipelineMegabytes * wanted.cores;
  if (xdp)
    start_dpdk(megabytes + kInterfaceMegabytes * static_cast<int>(names.size()),
               arguments_for_xdp(names));
  if (files || xdp)
    frames.push_back(files ? open_files(names) : open_xdp(names));
  else if (wanted.cores == 1)
    frames.push_back(open_interfaces(names));
  else
    frames = open_interfaces(names, wanted.cores);
  if (!xdp) start_dpdk(megabytes, {});
  Cores cores(program, std::move(frames), wanted.in_order);
  cores.obey(lines_of(wanted.entries));
  const Spent began = spent();
  const auto shown = registers_named(wanted.show, program);
  const auto counters = [&] {
    const Spent now = spent();
    return Json{{"processor_seconds", now.processor - began.processor},
                {"user_seconds", now.user - began.user},
                {"ports", ports_json(cores.counters())},
                {"registers", registers_json(shown, cores)}}
        .dump();
  };
  // Without --control the descriptor is another file's, such as a capture's.
  std::optional<Control> control;
  if (wanted.control)
    control.emplace(
        kControlFd, [&](const auto& lines) { cores.obey(lines); }, counters,
        [] { stop_requested = true; });
  const auto serve = [&] {
    if (control) control->serve();
  };
  cores.run(stop_requested, control ? control->fd() : -1, serve);
  std::printf("%s\n", counters().c_str());
  return 0;
}

void stop_on_signal(int) { stop_requested = true; }

// Reports to the process that started this, else to the user.
int report(const Arguments& wanted, const std::exception& error, int status) {
  if (wanted.control)
    std::printf("error %s\n", error.what());
  else
    std::fprintf(stderr, "ghostrank: %s\n", error.what());
  return status;
}

}  // namespace
}  // namespace ghostrank::dpdk

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  ghostrank::dpdk::Arguments wanted;
  for (; !words.empty() && words[0].starts_with("--"); words.erase(words.begin())) {
    wanted.in_order = wanted.in_order || words[0] == "--in-order";
    wanted.as_written = wanted.as_written || words[0] == "--as-written";
    wanted.control = wanted.control || words[0] == "--control";
    if (words[0].starts_with("--cores="))
      wanted.cores = std::max(1, std::atoi(words[0].c_str() + 8));
    if (words[0].starts_with("--show=")) wanted.show.push_back(words[0].substr(7));
    if (words[0].starts_with("--include=")) wanted.include.push_back(words[0].substr(10));
  }
  if (words.size() < 3) {
    std::fprintf(stderr,
                 "usage: ghostrank-dpdk [--in-order] [--as-written] [--cores=N] [--control] "
                 "[--show=REGISTERS] [--include=FOLDER] SPEC ENTRIES PORT...\n");
    return 2;
  }
  wanted.spec = words[0];
  wanted.entries = words[1];
  wanted.ports.assign(words.begin() + 2, words.end());
  struct sigaction action {};
  action.sa_handler = ghostrank::dpdk::stop_on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  try {
    return ghostrank::dpdk::play(wanted);
  } catch (const std::system_error& error) {
    return ghostrank::dpdk::report(wanted, error, 3);
  } catch (const std::exception& error) {
    return ghostrank::dpdk::report(wanted, error, 2);
  }
}
