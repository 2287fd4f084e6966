#include "switch/dpdk/entries.h"

#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "switch/tables.h"

namespace ghostrank::dpdk {
namespace {

using switchml::Mac;
using switchml::Receiver;
using switchml::SwitchPlan;
using switchml::Tables;

constexpr int kMostPorts = 8;
constexpr std::uint32_t kNowhere = 63;  // the mirroring session that drops

std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t number_of(const Mac& mac) {
  std::uint64_t n = 0;
  for (const std::uint8_t b : mac) n = n << 8 | b;
  return n;
}

class Writer {
 public:
  explicit Writer(const SwitchPlan& plan) : plan_(plan) {}

  void source(const Tables::Source& s) {
    text_ << "source_sources match " << hex(static_cast<std::uint64_t>(s.port)) << " " << hex(s.ip)
          << " " << hex(static_cast<std::uint64_t>(s.slot)) << " action ";
    if (s.upper) {
      text_ << "source_upper_0 all " << hex(s.all) << "\n";
      return;
    }
    const std::uint32_t mark = 1u << s.worker;
    text_ << "source_worker_0 mark " << hex(mark) << " others " << hex(~mark) << " last "
          << s.workers - 1 << " offset " << hex(s.offset) << " all " << hex(s.all) << " again "
          << hex(s.again) << "\n";
  }

  void group(const Tables::Group& g) {
    for (std::size_t i = 0; i < g.receivers.size(); ++i) {
      const Receiver& r = g.receivers[i];
      const bool last = i + 1 == g.receivers.size();
      const std::string port = hex(static_cast<std::uint64_t>(r.port));
      receiver(g.number, i, 0, last ? "last_1 port " + port : "one_of_several session " + port, r);
      if (!last) receiver(g.number, i, 1, "pass_over", r);
      const std::uint16_t lost = loss_at(r.port).egress;
      if (lost == 0) continue;
      text_ << "loss_out match " << hex(g.number) << " " << hex(i) << " action lose_at port "
            << port << " probability " << hex(lost) << " seed "
            << hex(switchml::loss_seed(plan_.seed, r.port, switchml::Way::egress)) << "\n";
    }
  }

  void resume(const Tables::Resume& r) {
    text_ << "resume match " << hex(r.ip) << " " << hex(static_cast<std::uint64_t>(r.slot))
          << " action next_receiver group " << hex(r.group) << " index " << hex(r.index) << "\n";
  }

  void losses() {
    for (int p = 0; p < plan_.ports; ++p) {
      const std::uint16_t lost = loss_at(p).ingress;
      if (lost == 0) continue;
      text_ << "loss_in match " << hex(static_cast<std::uint64_t>(p)) << " action lose probability "
            << hex(lost) << " seed "
            << hex(switchml::loss_seed(plan_.seed, p, switchml::Way::ingress)) << "\n";
    }
  }

  void forwarding() {
    for (const switchml::Forward& f : plan_.forward) {
      text_ << "forwarding match " << hex(number_of(f.mac)) << " action forward port "
            << hex(static_cast<std::uint64_t>(f.port)) << "\n";
    }
    for (int in = 0; in < plan_.ports; ++in) {
      text_ << "flooding match " << hex(static_cast<std::uint64_t>(in)) << " action flood";
      for (int p = 0; p < kMostPorts; ++p) {
        const bool copy = p < plan_.ports && p != in;
        text_ << " s" << p << " " << hex(copy ? static_cast<std::uint64_t>(p) : kNowhere);
      }
      text_ << " nowhere " << hex(static_cast<std::uint64_t>(plan_.ports)) << "\n";
    }
  }

  std::string text() const { return text_.str(); }

 private:
  switchml::PortLoss loss_at(int port) const {
    const auto p = static_cast<std::size_t>(port);
    return p < plan_.loss.size() ? plan_.loss[p] : switchml::PortLoss{};
  }

  void receiver(std::uint32_t group, std::size_t index, int lost, const std::string& action,
                const Receiver& r) {
    text_ << "receivers match " << hex(group) << " " << hex(index) << " " << lost << " action "
          << action << " mac " << hex(number_of(r.mac)) << " ip " << hex(r.ip) << " udp "
          << hex(r.udp) << " own_mac " << hex(number_of(plan_.mac)) << " own_ip " << hex(plan_.ip)
          << "\n";
  }

  const SwitchPlan& plan_;
  std::ostringstream text_;
};

}  // namespace

int register_slots(int elements) { return elements == 256 ? 4096 : 16384; }

std::string entries_of(const SwitchPlan& plan, int elements) {
  if (plan.ports > kMostPorts)
    throw std::invalid_argument("the P4 program has at most " + std::to_string(kMostPorts) +
                                " ports, not " + std::to_string(plan.ports));
  const Tables tables = switchml::tables_of(plan, elements, register_slots(elements));
  Writer writer(plan);
  for (const auto& s : tables.sources) writer.source(s);
  for (const auto& g : tables.groups) writer.group(g);
  for (const auto& r : tables.resume) writer.resume(r);
  writer.losses();
  writer.forwarding();
  return writer.text();
}

}  // namespace ghostrank::dpdk
