#include "tests/lab/capture.h"

#include <filesystem>
#include <signal.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ghostrank::testing {
namespace {

using std::chrono::milliseconds;

// tcpdump drops packets that it has not yet read when it is told to end, so wait until its files
// have not grown for a second.
void wait_until_written(const std::vector<std::string>& paths) {
  std::uintmax_t size = 0;
  for (int same = 0, i = 0; same < 20 && i < 600; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    std::uintmax_t now = 0;
    for (const std::string& path : paths) now += std::filesystem::file_size(path);
    same = now == size ? same + 1 : 0;
    size = now;
  }
}

}  // namespace

bool Capture::possible() { return shell("command -v tcpdump") == 0; }

Capture::Capture(Lab& lab, int host, const std::string& protocol)
    : lab_(lab),
      file_(lab.file("pcap" + std::to_string(host))),
      log_("tcpdump" + std::to_string(host)) {
  std::filesystem::remove(lab.file(log_));  // left by an earlier capture
  tcpdump_ =
      lab.start(lab.in("sw", "tcpdump -Z root -i " + Lab::port(host) + " -s 96 -B 65536 -w " +
                                 file_ + " " + protocol + " and src host " + Lab::address(host)),
                log_);
  const auto listening = [&] {
    return read_file(lab_.file(log_)).find("listening on") != std::string::npos;
  };
  for (int i = 0; i < 500 && !listening() && lab_.running(tcpdump_); ++i)
    std::this_thread::sleep_for(milliseconds(10));
  if (!listening())
    throw std::runtime_error("tcpdump does not listen; it said: " + read_file(lab_.file(log_)));
}

bool Capture::stop() {
  wait_until_written({file_});
  return end();
}

bool Capture::stop_all(std::deque<Capture>& captures) {
  std::vector<std::string> files;
  for (const Capture& capture : captures) files.push_back(capture.file_);
  wait_until_written(files);
  bool complete = true;
  for (Capture& capture : captures) complete &= capture.end();
  return complete;
}

bool Capture::end() {
  kill(tcpdump_, SIGINT);
  lab_.finish(tcpdump_, std::chrono::seconds(5));
  return read_file(lab_.file(log_)).find("\n0 packets dropped by kernel") != std::string::npos;
}

}  // namespace ghostrank::testing
