// pcap files as the ports of a switch.
#include <algorithm>
#include <memory>
#include <string_view>

#include "switch/ports/frame_ports.h"
#include "switch/ports/pcap_file.h"

namespace ghostrank::switchml {
namespace {

struct Input {
  int port = 0;
  std::unique_ptr<PcapReader> reader;
  PcapFrame next;
};

class Files final : public FramePorts {
 public:
  // Opens all inputs first: where one cannot be read, no output has been emptied.
  explicit Files(const std::vector<PortName>& ports) {
    for (std::size_t p = 0; p < ports.size(); ++p) {
      if (ports[p].in.empty()) continue;
      Input input{static_cast<int>(p), std::make_unique<PcapReader>(ports[p].in), {}};
      if (input.reader->next(input.next)) inputs_.push_back(std::move(input));
    }
    for (const PortName& port : ports)
      writers_.push_back(port.out.empty() ? nullptr : std::make_unique<PcapWriter>(port.out));
  }

  int count() const override { return static_cast<int>(writers_.size()); }
  bool finished() const override { return inputs_.empty(); }
  std::vector<int> descriptors() const override { return {}; }

  bool next(Arrival& arrival) override {
    if (inputs_.empty()) return false;
    const auto first = std::min_element(
        inputs_.begin(), inputs_.end(),
        [](const Input& a, const Input& b) { return a.next.time_ns < b.next.time_ns; });
    now_ns_ = first->next.time_ns;
    arrival.port = first->port;
    arrival.frame = first->next.bytes;
    if (!first->reader->next(first->next)) {
      ended_.push_back(std::move(first->reader));  // arrival.frame points into its mapping
      inputs_.erase(first);
    }
    return true;
  }

  std::byte* frame(int port, std::size_t bytes) override {
    PcapWriter* writer = writers_[port].get();
    if (writer != nullptr) return writer->frame(now_ns_, bytes);
    if (nowhere_.size() < bytes) nowhere_.resize(bytes);
    return nowhere_.data();
  }

  void flush() override {}
  void finish() override {
    for (auto& writer : writers_) {
      if (writer) writer->finish();
    }
  }

 private:
  std::vector<Input> inputs_;  // each has a next frame
  std::vector<std::unique_ptr<PcapReader>> ended_;
  std::vector<std::unique_ptr<PcapWriter>> writers_;
  std::vector<std::byte> nowhere_;
  std::uint64_t now_ns_ = 0;
};

}  // namespace

PortName port_named(const std::string& text) {
  constexpr std::string_view kXdp = "xdp:";
  if (text.starts_with(kXdp)) return {text.substr(kXdp.size()), {}, {}, true};
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) return {{}, text.substr(0, colon), text.substr(colon + 1), false};
  if (text.ends_with(".pcap")) return {{}, text, {}, false};
  return {text, {}, {}, false};
}

std::unique_ptr<FramePorts> open_files(const std::vector<PortName>& ports) {
  return std::make_unique<Files>(ports);
}

}  // namespace ghostrank::switchml
