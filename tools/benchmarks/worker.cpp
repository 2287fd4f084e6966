// A worker of SwitchML, sender and receiver, from memory to memory: one all-reduce after another of
// two nodes, one core, no kernel. Every packet that the worker sends is encoded, and comes back at
// once as its own result, so a packet costs reading and quantising its elements, the frame, and the
// same on the way back; what the other workers and the switch cost is not in it.
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "collectives/schemes/switchml.h"
#include "collectives/wire_format.h"
#include "tools/benchmarks/found.h"

namespace ghostrank::bench {
namespace {

constexpr GroupParty kWorker = 0, kSwitch = 2;  // the other node's is 1
constexpr int kFrames = 128;                    // a worker has as many slots

class Gradients final : public Tensor {
 public:
  Gradients(DataType type, std::uint64_t bytes) : element_(bytes_of(type)), bytes_(bytes) {
    if (type == DataType::float32)
      for (std::size_t i = 0; i < bytes / 4; ++i) {
        const float value = static_cast<float>(i % 1000) * 1e-3F - 0.5F;
        std::memcpy(bytes_.data() + 4 * i, &value, 4);
      }
  }
  std::span<const std::byte> read(std::uint64_t first, std::uint64_t elements) override {
    return std::span(bytes_).subspan(first * element_, elements * element_);
  }
  void write(std::uint64_t first, std::span<const std::byte> elements) override {
    std::memcpy(bytes_.data() + first * element_, elements.data(), elements.size());
  }
  bool nonzero(std::uint64_t, std::uint64_t) override { return true; }

 private:
  std::size_t element_;
  std::vector<std::byte> bytes_;
};

// Frames that were sent and have not come back: a ring of buffers, as a NIC has.
class Wire final : public Io {
 public:
  Wire(const Ends& ends, DataType type, std::uint64_t bytes)
      : ends_(ends), gradients_(type, bytes) {}

  bool send(std::span<const GroupParty> to, const Note& note, Carriage) override {
    if (to.front() != kSwitch) return true;
    if (sent_ - back_ == kFrames) return false;
    Frame& frame = frames_[sent_++ % kFrames];
    frame.bytes = note_bytes(note, ends_.overhead_bytes());
    ends_.wire_format()->encode(note, std::span(frame.buffer).first(frame.bytes));
    return true;
  }
  void arm(std::uint32_t, Picoseconds) override {}
  void disarm(std::uint32_t) override {}
  void spend(Picoseconds) override {}
  void done(std::uint32_t) override { done_ = true; }
  Tensor& tensor(std::uint32_t) override { return gradients_; }

  // Plays a call; returns its packets, 0 where the worker waits for something else.
  std::uint64_t play(Agent& worker, const Call& call) {
    done_ = false;
    worker.on_call(*this, call);
    const std::uint64_t before = back_;
    while (back_ < sent_) {
      const Frame& frame = frames_[back_++ % kFrames];
      const auto note =
          ends_.wire_format()->decode(std::span(frame.buffer).first(frame.bytes), store_);
      if (note) worker.on_note(*this, kSwitch, *note);
    }
    return done_ ? back_ - before : 0;
  }

 private:
  struct Frame {
    std::size_t bytes = 0;
    std::array<std::byte, 1500> buffer;
  };

  const Ends& ends_;
  Gradients gradients_;
  std::vector<Frame> frames_{kFrames};
  std::vector<std::byte> store_;
  std::uint64_t sent_ = 0, back_ = 0;  // frames so far
  bool done_ = false;
};

// Arguments: elements of a packet, MiB of the tensor.
void play(benchmark::State& state, DataType type) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(state.range(1)) << 20;
  const auto ends =
      switchml_ends(2, {.slots = kFrames, .elements = static_cast<int>(state.range(0))});
  const auto worker = ends->agent(kWorker);
  Wire wire(*ends, type, bytes);
  Call call;
  call.collective = {.func = Func::all_reduce, .count = bytes / bytes_of(type)};
  call.type = type;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    const std::uint64_t played = wire.play(*worker, call);
    if (played == 0) return state.SkipWithError("the call did not end");
    packets += played;
    ++call.number;
  }
  state.counters["packets"] =
      benchmark::Counter(static_cast<double>(packets), benchmark::Counter::kIsRate);
}

void Int32(benchmark::State& state) { play(state, DataType::int32); }
void Float32(benchmark::State& state) { play(state, DataType::float32); }
BENCHMARK(Int32)->Args({64, 16})->Args({256, 16})->Args({256, 1})->Repetitions(5);
BENCHMARK(Float32)->Args({64, 16})->Args({256, 16})->Args({256, 1})->Repetitions(5);

report::Row rates(const Found& found, const std::string& type, const std::string& name) {
  report::Row row{type};
  for (const char* arguments : {"/64/16", "/256/16", "/256/1"})
    row.push_back(figure(found.median(name + arguments, "packets"), 2, 1e6) + " M");
  row.push_back("2 M");
  return row;
}

}  // namespace

Section section(const Found& found) {
  return {
      "Packets that a worker sends, and as many that it receives, per second of processor time; "
      "medians of 5.\n\n" +
          report::markdown_table({{"", "64 elements, 16 MiB a call", "256 elements, 16 MiB",
                                   "256 elements, 1 MiB", "aim, of 256"},
                                  rates(found, "int32", "Int32"),
                                  rates(found, "float32, with exponents", "Float32")}),
      {}};
}

}  // namespace ghostrank::bench
