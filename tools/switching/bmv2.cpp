#include "tools/switching/bmv2.h"

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <netinet/in.h>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "profiles/error.h"
#include "switch/bmv2/entries.h"
#include "switch/ports/fd.h"
#include "switch/ports/pcap_file.h"
#include "switch/tables.h"
#include "tools/report/files/temporary_file.h"
#include "tools/switching/child.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
using switchml::PortName;
using switchml::SwitchPlan;
using switchml::Tables;

constexpr std::chrono::seconds kPatience{20};  // for simple_switch to start
constexpr std::chrono::seconds kGrace{1};      // for the last copies to leave
constexpr int kSlotsOf256 = 4096, kSlots = 16384;

std::string program_named(const std::string& name, const std::string& from) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder) / name;
    if (access(file.c_str(), X_OK) == 0) return file.string();
  }
  throw Error("--target bmv2: there is no " + name + " on PATH; it comes with " + from,
              ErrorKind::environment);
}

std::string output_of(std::vector<std::string> words, const std::string& input = {}) {
  const std::string name = words[0];
  Child child(std::move(words), input);
  while (child.read_output()) {
  }
  std::string text = child.output();
  if (child.status() != 0) throw Error(name + " failed: " + text, ErrorKind::environment);
  return text;
}

std::string compiled_program(int elements, const TemporaryFolder& folder) {
  const std::string compiler = program_named("p4c-bm2-ss", "p4lang's p4c; or name a --program");
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& source : {fs::path(GHOSTRANK_SWITCH_PROGRAMS) / "../v1model.p4",
                                 here / "../share/ghostrank/switch/p4/v1model.p4"}) {
    if (!fs::exists(source)) continue;
    const std::string program = folder.file("program.json");
    output_of({compiler, "--std", "p4-16", "-DELEMENTS=" + std::to_string(elements),
               source.string(), "-o", program});
    return program;
  }
  throw Error("the P4 sources are missing; name a --program", ErrorKind::environment);
}

// A free TCP port, where bmv2 will take commands.
int free_port() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!bound) throw Error("no TCP port can be had on 127.0.0.1", ErrorKind::environment);
  return ntohs(address.sin_port);
}

bool listens(int port) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// bmv2 reads X_in.pcap and writes X_out.pcap for port X. Returns the X of every port.
std::vector<std::string> link_files(const std::vector<PortName>& ports,
                                    const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    names.push_back(folder.file("port" + std::to_string(p)));
    const std::string in = names.back() + "_in.pcap";
    if (ports[p].in.empty())
      PcapWriter(in).finish();
    else
      fs::create_symlink(fs::absolute(ports[p].in), in);
    if (!ports[p].out.empty())
      fs::create_symlink(fs::absolute(ports[p].out), names.back() + "_out.pcap");
  }
  return names;
}

// Time from the first frame of all files to the last.
std::chrono::nanoseconds length_of(const std::vector<PortName>& ports) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), last = 0;
  for (const PortName& port : ports) {
    if (port.in.empty()) continue;
    PcapReader reader(port.in);
    while (const auto frame = reader.next()) {
      first = std::min(first, frame->time_ns);
      last = std::max(last, frame->time_ns);
    }
  }
  return std::chrono::nanoseconds(last > first ? last - first : 0);
}

// Sets the link type to Ethernet, because bmv2 writes its files as loopback captures.
void name_link_type(const std::string& path) {
  if (path.empty()) return;
  constexpr std::streamoff kLinkType = 20;
  constexpr std::uint32_t kEthernet = 1;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kLinkType);
  file.write(reinterpret_cast<const char*>(&kEthernet), sizeof kEthernet);
  if (!file) throw Error(path + ": cannot be written", ErrorKind::environment);
}

void count_frames(const std::string& path, std::uint64_t& frames, std::uint64_t& bytes) {
  if (path.empty()) return;
  PcapReader reader(path);
  while (const auto frame = reader.next()) {
    ++frames;
    bytes += frame->bytes.size();
  }
}

class CommandLine {
 public:
  CommandLine(const TemporaryFolder& folder, int port)
      : program_(program_named("simple_switch_CLI", "p4lang's bmv2")),
        port_(std::to_string(port)),
        input_(folder.file("commands")) {}

  std::string run(const std::vector<std::string>& commands) const {
    write_lines(input_, commands);
    std::string answers = output_of({program_, "--thrift-port", port_}, input_);
    for (const char* refusal : {"Error:", "Invalid", "Could not"}) {
      if (const std::size_t at = answers.find(refusal); at != std::string::npos)
        throw Error("bmv2 refuses a command: " + answers.substr(at, answers.find('\n', at) - at));
    }
    return answers;
  }

 private:
  std::string program_, port_, input_;
};

// The tables of the plan's jobs, with their places in the program. `ours`: the program is ours.
std::vector<Tables> tables_of_jobs(const SwitchPlan& plan, int elements, bool ours) {
  switchml::Allocation allocation(elements, elements == 256 ? kSlotsOf256 : kSlots, ours);
  std::vector<Tables> jobs;
  try {
    for (const switchml::JobPlan& job : plan.jobs)
      jobs.push_back(switchml::tables_of(job, allocation.admit(job)));
  } catch (const std::invalid_argument& error) {
    throw Error(std::string("the plan does not fit the P4 program: ") + error.what());
  }
  return jobs;
}

// Reads the child's output, so that a full pipe never blocks it, until `enough` returns true. False
// when the child ended before.
template <typename Enough>
bool watch(Child& child, Enough enough) {
  while (!enough()) {
    if (!child.wait_output(std::chrono::milliseconds(50))) continue;
    if (!child.read_output()) return false;
  }
  return true;
}

}  // namespace

switchml::SwitchCounters run_on_bmv2(const std::string& program, const std::vector<PortName>& ports,
                                     const SwitchPlan& plan, const std::atomic<bool>& stop) {
  using Clock = std::chrono::steady_clock;
  const int elements = plan.jobs.empty() ? 256 : plan.jobs[0].elements;
  const TemporaryFolder folder;
  const std::vector<Tables> jobs = tables_of_jobs(plan, elements, program.empty());
  const std::vector<std::string> commands = bmv2::commands_of(plan, jobs);
  const int tcp = free_port();
  const CommandLine cli(folder, tcp);
  // simple_switch starts to read the files so long after its start; until then it takes a few
  // hundred commands per second.
  const std::chrono::seconds wait(3 + commands.size() / 200);
  std::vector<std::string> words{program_named("simple_switch", "p4lang's bmv2"), "--use-files",
                                 std::to_string(wait.count()), "--thrift-port",
                                 std::to_string(tcp)};
  const std::vector<std::string> files = link_files(ports, folder);
  for (std::size_t p = 0; p < files.size(); ++p) {
    words.push_back("-i");
    words.push_back(std::to_string(p) + "@" + files[p]);
  }
  words.push_back(program.empty() ? compiled_program(elements, folder) : program);
  const auto began = Clock::now();
  Child child(std::move(words));
  const auto ended_early = [&] {
    return Error("simple_switch ended early: " + child.output(), ErrorKind::environment);
  };
  if (!watch(child, [&] { return listens(tcp) || Clock::now() - began > kPatience; }))
    throw ended_early();
  cli.run(commands);
  if (Clock::now() > began + wait)
    throw Error(
        "bmv2 took its commands more slowly than expected and has begun without them; "
        "try again on a machine that is less busy",
        ErrorKind::environment);
  const auto end = Clock::now() + wait + length_of(ports) + kGrace;
  if (!watch(child, [&] { return stop || Clock::now() > end; })) throw ended_early();
  switchml::SwitchCounters counters =
      bmv2::counters_of(cli.run(bmv2::commands_to_count(plan, jobs)), plan, jobs);
  child.end();
  for (std::size_t p = 0; p < ports.size(); ++p) {
    switchml::PortCounters& c = counters.ports[p];
    name_link_type(ports[p].out);
    count_frames(ports[p].in, c.received, c.received_bytes);
    count_frames(ports[p].out, c.sent, c.sent_bytes);
  }
  return counters;
}

}  // namespace ghostrank
