// A lab of hosts, each a network namespace with a veth into a bridge in a namespace of its own. The
// lab does not touch the machine's own network and removes everything at the end. Links are as fast
// as the machine, or shaped.
//
//   h0: eth0 10.77.0.1 ── port0 ┐
//   h1: eth0 10.77.0.2 ── port1 ┤ br0        sw: the switch
//   ..                          ┘
//
// Needs root (possible()). A command that must not fail throws std::runtime_error if it does.
// Threading: one thread, because the lab waits for children of its process.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ghostrank::testing {

inline constexpr int kHosts = 4;
inline constexpr int kPort = 29500;  // MASTER_PORT

// Runs a command, discards its output and returns its exit status.
int shell(const std::string& command);
std::string read_file(const std::filesystem::path& path);
// Targets of ghostrank's switch that are built: "compiled", perhaps "dpdk".
std::vector<std::string> targets();
// Whether p4lang's simple_switch and its compiler are on PATH, for target "bmv2".
bool has_bmv2();

// Shape of every link, in both directions, by the kernel's htb. The kernel counts whole Ethernet
// frames against the rate. TCP uses cubic on every route; segmentation offload stays on.
struct LinkShape {
  double bits_per_second = 0;
  int burst_bytes = 0;  // bytes that an idle link passes at once
};

class Lab {
 public:
  explicit Lab(int hosts = kHosts);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  static bool possible();
  int hosts() const { return hosts_; }

  // Shapes the links, or changes their shape. Connections made before the first call keep the
  // machine's congestion control.
  void shape(const LinkShape& link);
  // Changes the rate of shaped links, one after the other within some 50 ms. Traffic goes on.
  void change_rate(const LinkShape& link);
  // Gives new connections large TCP windows from the start, and keeps them while a connection is
  // idle. By default a window begins with ten segments, grows slowly once delays grow (on these
  // links at once), and starts anew after an idle time of one retransmission timeout. Also keeps a
  // connection from inheriting metrics of earlier ones to the same host.
  void keep_windows();
  // Moves hosts with odd numbers to a second bridge, a leaf of its own. One link joins the leaves;
  // shape() gives it the shape of the hosts' links.
  void add_leaf();
  // Adds a second interface, eth1, to every host, on a second bridge.
  void add_rail();
  // Takes the hosts' ports off the bridge: a switch of ghostrank's joins them.
  void leave_bridge();

  // `command` prefixed so that it runs on a host (by number) or in "sw".
  std::string in(int host, const std::string& command) const;
  std::string in(const std::string& where, const std::string& command) const;
  static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }
  static std::string port(int host) { return "port" + std::to_string(host); }
  // The pattern of the hosts' namespaces, for fabric.namespaces.
  std::string pattern() const { return space("h{node}"); }
  // The switch's namespace, for switch.namespace.
  std::string switch_space() const { return space("sw"); }
  // The path of a file in the lab's directory, which is removed with the lab.
  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  // Starts a shell command in its own process group; stdout and stderr go to file(output).
  pid_t start(const std::string& command, const std::string& output);
  // The same on a host, as one of `size` processes of a job, with torchrun's variables.
  pid_t start_process(int host, int size, const std::string& command);
  // The same for `ghostrank run ARGUMENTS`.
  pid_t start_host(int host, int size, const std::string& arguments);
  // Waits up to `limit`. Exit status, 128 + n for signal n, -1 when the process did not end in
  // time.
  int finish(pid_t pid, std::chrono::seconds limit);
  // True while the process runs. Keeps its exit status for finish().
  bool running(pid_t pid) const;
  // Kills the process and its process group.
  void stop(pid_t pid);
  // The output of a process that start_process() or start_host() started.
  std::string output(int host) const { return read_file(file("host" + std::to_string(host))); }

  // Bytes that a host has sent, counted with headers at its port of the bridge.
  std::uint64_t sent_by(int host) const;
  // TCP segments that the hosts have retransmitted.
  std::uint64_t segments_sent_again() const;

  std::string write_job(const std::string& rest) const;

 private:
  std::string space(const std::string& name) const;
  std::string space(int host) const { return space("h" + std::to_string(host)); }
  std::string output_of(const std::string& command) const;
  void set_routes();
  std::vector<std::string> ports() const;  // of the switches that shape() shapes
  void remove();

  const int hosts_;
  std::string directory_;
  bool two_leaves_ = false;
  int first_window_ = 0;  // initial TCP window in segments; 0: the system's
  std::set<pid_t> children_;
};

}  // namespace ghostrank::testing
