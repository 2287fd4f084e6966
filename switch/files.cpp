// A switch on pcap files.
#include <algorithm>
#include <memory>
#include <optional>

#include "switch/live.h"
#include "switch/pcap_file.h"

namespace ghostrank::switchml {
namespace {

class FileTransmitter final : public Transmitter {
 public:
  explicit FileTransmitter(const std::vector<PortName>& ports) {
    for (const PortName& port : ports) {
      writers_.push_back(port.out.empty() ? nullptr : std::make_unique<PcapWriter>(port.out));
    }
  }
  std::byte* frame(int port, std::size_t bytes) override {
    PcapWriter* writer = writers_[static_cast<std::size_t>(port)].get();
    if (writer != nullptr) return writer->frame(now_ns, bytes);
    if (nowhere_.size() < bytes) nowhere_.resize(bytes);
    return nowhere_.data();
  }
  void finish() {
    for (auto& writer : writers_) {
      if (writer) writer->finish();
    }
  }

  std::uint64_t now_ns = 0;

 private:
  std::vector<std::unique_ptr<PcapWriter>> writers_;
  std::vector<std::byte> nowhere_;
};

struct Input {
  int port = 0;
  std::unique_ptr<PcapReader> reader;
  std::optional<PcapFrame> next;
};

}  // namespace

PortName port_named(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) return {{}, text.substr(0, colon), text.substr(colon + 1)};
  if (text.ends_with(".pcap")) return {{}, text, {}};
  return {text, {}, {}};
}

void run_on_files(CompiledSwitch& sw, const std::vector<PortName>& ports) {
  FileTransmitter out(ports);
  std::vector<Input> inputs;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    if (ports[p].in.empty()) continue;
    Input input{static_cast<int>(p), std::make_unique<PcapReader>(ports[p].in), {}};
    input.next = input.reader->next();
    if (input.next) inputs.push_back(std::move(input));
  }
  while (!inputs.empty()) {
    auto first = std::min_element(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) {
      return a.next->time_ns < b.next->time_ns;
    });
    out.now_ns = first->next->time_ns;
    sw.receive(first->port, first->next->bytes, out);
    first->next = first->reader->next();
    if (!first->next) inputs.erase(first);
  }
  out.finish();
}

}  // namespace ghostrank::switchml
