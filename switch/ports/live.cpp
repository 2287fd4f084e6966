#include "switch/ports/live.h"

#include <poll.h>

namespace ghostrank::switchml {
namespace {

constexpr int kPatienceMs = 100;      // longest wait before `stop` is checked
constexpr int kFramesAtATime = 4096;  // most frames before the watches are served, under load

}  // namespace

void serve(const std::vector<Watch>& watches) {
  for (const Watch& watch : watches) {
    pollfd polled{watch.fd, POLLIN, 0};
    if (poll(&polled, 1, 0) > 0) watch.ready();
  }
}

void wait_for(const FramePorts& ports, const std::vector<Watch>& watches) {
  std::vector<pollfd> polled;
  for (const Watch& watch : watches) polled.push_back({watch.fd, POLLIN, 0});
  for (const int fd : ports.descriptors()) polled.push_back({fd, POLLIN, 0});
  if (polled.empty() || poll(polled.data(), polled.size(), kPatienceMs) <= 0) return;
  for (std::size_t w = 0; w < watches.size(); ++w) {
    if (polled[w].revents != 0) watches[w].ready();
  }
}

void run(CompiledSwitch& sw, FramePorts& ports, const std::vector<Watch>& watches,
         const std::atomic<bool>& stop) {
  Arrival arrival;
  while (!stop && !ports.finished()) {
    int left = kFramesAtATime;
    for (; !stop && left > 0; --left) {
      if (!ports.next(arrival)) break;
      sw.receive(arrival.port, arrival.frame, ports);
    }
    ports.flush();
    if (left == 0) {
      serve(watches);
    } else if (!ports.finished()) {
      wait_for(ports, watches);
    }
  }
  ports.finish();
}

}  // namespace ghostrank::switchml
