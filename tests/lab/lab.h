// Hosts that each are a network namespace with a veth into a bridge that has a namespace of its
// own: nothing of the machine's own network is touched, and everything is removed at the end. Links
// are as fast as the machine, or shaped.
//
//   h0: eth0 10.77.0.1 ── port0 ┐
//   h1: eth0 10.77.0.2 ── port1 ┤ br0        sw: the switch
//   ..                          ┘
//
// Needs root (possible()). Commands that must not fail throw std::runtime_error. Threading: one
// thread, since children are those of the process.
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

// Exit status of a command whose output nobody wants.
int shell(const std::string& command);
std::string read_file(const std::filesystem::path& path);

// Shape of every link, in both directions, by the kernel's htb. Rates are those of whole Ethernet
// frames as the kernel accounts them. TCP is cubic on every route, segmentation offload stays on.
struct LinkShape {
  double bits_per_second = 0;
  int burst_bytes = 0;  // what an idle link lets through at once
};

class Lab {
 public:
  explicit Lab(int hosts = kHosts);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  static bool possible();
  int hosts() const { return hosts_; }

  // Shapes the links, or changes their shape; connections made before the first time keep the
  // machine's congestion control.
  void shape(const LinkShape& link);
  // TCP's windows are large from the start, and stay so while a connection rests. Left alone they
  // begin with ten segments, stop growing fast when delays grow, which on these links is at once,
  // and start anew after a retransmission time-out of silence. No connection learns from those to
  // the same host before it, either. For connections made from now on.
  void keep_windows();
  // A second interface of every host, eth1, on a bridge of its own.
  void add_rail();

  // `command` as it runs at a host, by number, or in "sw".
  std::string in(int host, const std::string& command) const;
  std::string in(const std::string& where, const std::string& command) const;
  static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }
  static std::string port(int host) { return "port" + std::to_string(host); }
  // The hosts' namespaces, as fabric.namespaces wants them.
  std::string pattern() const { return space("h{node}"); }
  // A file that is removed with the lab.
  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  // Starts a shell command, in a process group of its own; stdout and stderr go to file(output).
  pid_t start(const std::string& command, const std::string& output);
  // The same at a host, as one of `size` processes of a job, with torchrun's variables.
  pid_t start_process(int host, int size, const std::string& command);
  // `ghostrank run ARGUMENTS` likewise.
  pid_t start_host(int host, int size, const std::string& arguments);
  // Exit status, 128 + n for signal n, -1 when it did not end in time.
  int finish(pid_t pid, std::chrono::seconds limit);
  // Whether what was started has not ended; finish() still tells how it did.
  bool running(pid_t pid) const;
  // Ends what was started and all that it started.
  void stop(pid_t pid);
  // What start_process() and start_host() printed.
  std::string output(int host) const { return read_file(file("host" + std::to_string(host))); }

  // Bytes that host's port of the bridge took in, headers included.
  std::uint64_t sent_by(int host) const;
  // TCP segments that the hosts have sent once more.
  std::uint64_t segments_sent_again() const;

  std::string write_job(const std::string& rest) const;

 private:
  std::string space(const std::string& name) const;
  std::string space(int host) const { return space("h" + std::to_string(host)); }
  std::string output_of(const std::string& command) const;
  void set_routes();
  void remove();

  const int hosts_;
  std::string directory_;
  int first_window_ = 0;  // of TCP connections, in segments; 0: the system's
  std::set<pid_t> children_;
};

}  // namespace ghostrank::testing
