// ghostrank-dpdk: plays a .spec on pcap files or interfaces, with DPDK's SWX pipeline. Started by
// `ghostrank switch run --target dpdk`, so that the command itself does not carry DPDK.
//
//   ghostrank-dpdk SPEC ENTRIES PORT...
//
// ENTRIES: lines "TABLE match ... action ..." (# begins a comment). A port is as for `switch run`.
// Prints one line of JSON: counters by port. Exit status as the command's.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "switch/dpdk/pipeline.h"
#include "switch/frame_ports.h"
#include "switch/live.h"

namespace ghostrank::dpdk {
namespace {

std::atomic<bool> stop_requested{false};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<TableEntry> entries_of(const std::string& path) {
  std::vector<TableEntry> all;
  std::istringstream lines(text_of(path));
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    std::istringstream words(line);
    TableEntry entry;
    if (!(words >> entry.table)) continue;
    std::getline(words, entry.text);
    all.push_back(std::move(entry));
  }
  return all;
}

void start_dpdk() {
  std::vector<std::string> words{"ghostrank-dpdk",
                                 "-l",
                                 "0",
                                 "--no-huge",
                                 "-m",
                                 "256",
                                 "--no-shconf",
                                 "--no-pci",
                                 "--no-telemetry",
                                 "--iova-mode=va",
                                 "--log-level=critical"};
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0)
    throw std::system_error(rte_errno, std::generic_category(), "DPDK cannot be started");
}

void print_counters(const PortSet& ports) {
  std::printf("{\"ports\":[");
  for (int p = 0; p < ports.count(); ++p) {
    const PortCounters& c = ports.counters[static_cast<std::size_t>(p)];
    std::printf("%s{\"port\":%d,\"received\":%llu,\"sent\":%llu,\"short\":%llu,\"overlong\":%llu}",
                p == 0 ? "" : ",", p, static_cast<unsigned long long>(c.received),
                static_cast<unsigned long long>(c.sent),
                static_cast<unsigned long long>(c.short_frames),
                static_cast<unsigned long long>(c.overlong));
  }
  std::printf("]}\n");
}

// One round: as many instructions as some packets take.
constexpr std::uint32_t kInstructions = 100'000;

int play(const std::string& spec, const std::string& entries,
         const std::vector<std::string>& names) {
  std::vector<switchml::PortName> wanted;
  for (const std::string& name : names) wanted.push_back(switchml::port_named(name));
  const bool files = wanted.front().interface.empty();
  const Spec program = parse_spec(text_of(spec), spec);
  const auto frames = files ? open_files(wanted) : open_interfaces(wanted);
  start_dpdk();
  PortSet ports(*frames);
  Pipeline pipeline(program, ports);
  pipeline.add(entries_of(entries));
  // What is inside when nothing more comes needs one more round to get out.
  for (int rounds_left = 2; !stop_requested && rounds_left > 0;) {
    pipeline.run(kInstructions);
    if (frames->finished() && ports.idle_polls() > ports.count()) --rounds_left;
    frames->flush();
    if (!frames->finished() && ports.idle_polls() > ports.count()) wait_for(*frames, {});
  }
  frames->finish();
  print_counters(ports);
  return 0;
}

void stop_on_signal(int) { stop_requested = true; }

}  // namespace
}  // namespace ghostrank::dpdk

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: ghostrank-dpdk SPEC ENTRIES PORT...\n");
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = ghostrank::dpdk::stop_on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  try {
    return ghostrank::dpdk::play(argv[1], argv[2], {argv + 3, argv + argc});
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "ghostrank: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ghostrank: %s\n", error.what());
    return 2;
  }
}
