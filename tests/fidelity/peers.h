// The two sides of a comparison on one lab: PyTorch over gloo, told what to do while it lives, and
// ghostrank, started anew for every play. Both run as one process per host.
//
// Units: seconds, bytes. Threading: one thread. What goes wrong is thrown as std::runtime_error
// with what the process said.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/lab/lab.h"

namespace ghostrank::fidelity {

using nlohmann::json;

// Layers whose compute is a sleep; times in microseconds, as ghostrank's `kind: layers` has them.
struct SleepingLayer {
  std::vector<int> parameters;
  double forward_us = 0, backward_us = 0;
};
struct SleepingModel {
  std::vector<SleepingLayer> layers;
  double optimizer_us = 0;
  double bucket_cap_mb = 25;
};
json to_json(const SleepingModel& model);  // what torch_worker.py reads; layers as a job has them

// PyTorch processes on hosts 0 .. size-1, training the model under DistributedDataParallel.
class TorchGroup {
 public:
  TorchGroup(testing::Lab& lab, int size, const SleepingModel& model);
  ~TorchGroup();
  TorchGroup(const TorchGroup&) = delete;
  TorchGroup& operator=(const TorchGroup&) = delete;

  int size() const { return size_; }
  const json& hello() const { return hello_; }  // of rank 0: torch, buckets
  // One of torch_worker.py's commands; the answers of all ranks.
  std::vector<json> ask(const std::string& command);

 private:
  std::string replies(int host) const { return lab_.file("replies" + std::to_string(host)); }
  std::vector<json> await(std::size_t line);

  testing::Lab& lab_;
  const int size_;
  std::size_t answered_ = 0;
  std::vector<int> orders_;  // file descriptors
  std::vector<pid_t> processes_;
  json hello_;
};

// Where ghostrank's processes meet: PyTorch's hold testing::kPort all the while.
inline constexpr int kPlayPort = testing::kPort + 1;

// `ghostrank VERB ARGUMENTS --json ..` on hosts 0 .. size-1, or on host 0 alone with size 1: what
// process 0 wrote.
json play(testing::Lab& lab, int size, const std::string& arguments);

// TCP payload acknowledged so far, by (source, target) host, without that of the port `except`,
// where processes meet. Waits until what was sent has been acknowledged.
using Bytes = std::map<std::pair<int, int>, double>;
Bytes payload_sent(testing::Lab& lab, int size, int except = testing::kPort);

double median(std::vector<double> values);

}  // namespace ghostrank::fidelity
