#include "tools/cuda/repeat.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "tools/cuda/check.h"
#include "tools/cuda/memory.h"

namespace ghostrank::cuda {
namespace {

constexpr int kWarmUp = 3;     // kernels
constexpr int kLeastRuns = 3;  // of which the median counts
constexpr int kMostRuns = 15;
constexpr double kRun = 2e-3;      // seconds of kernels in a run
constexpr int kMostRepeats = 256;  // of a run: the driver queues about a thousand launches
constexpr double kMargin = 50e-6;  // seconds by which the host is ahead of the GPU

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "an event"); }
  double seconds_since(const Event& earlier) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "the time between events");
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

double host_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

GhostrankCudaTime repeat(const Repetition& what) {
  GhostrankCudaTime out{};
  Event begin, end;
  double host = 20e-6;  // a launch by the host; the first ones load the kernel
  std::vector<double> hosts;
  const auto run = [&](int repeats) {
    keep_busy(kMargin + 2 * host * repeats, what.stream);
    begin.record(what.stream);
    const double began = host_now();
    for (int i = 0; i < repeats; ++i) what.launch();
    hosts.push_back((host_now() - began) / repeats);
    end.record(what.stream);
    check(cudaGetLastError(), "launching a kernel");
  };
  const auto finish = [&] {
    check(cudaStreamSynchronize(what.stream), "a kernel");
    return end.seconds_since(begin);
  };
  run(kWarmUp);
  finish();
  run(kWarmUp);
  const double each = finish() / kWarmUp;
  host = hosts.back();
  out.repeats = static_cast<int>(std::clamp(std::ceil(kRun / each), 1., double{kMostRepeats}));
  out.runs = static_cast<int>(std::clamp(std::floor(what.seconds / (each * out.repeats)),
                                         double{kLeastRuns}, double{kMostRuns}));
  std::vector<double> times;
  hosts.clear();
  for (int i = 0; i < out.runs; ++i) {
    run(out.repeats);
    if (i + 1 == out.runs) out.sm_mhz = what.mhz();  // while the GPU works
    const double took = finish();
    times.push_back(took / out.repeats);
    std::this_thread::sleep_for(std::chrono::duration<double>(what.rest * took));
  }
  out.seconds = median(times);
  out.host_seconds = median(hosts);
  return out;
}

}  // namespace ghostrank::cuda
