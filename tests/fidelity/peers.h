// The two sides of a comparison on one lab: a real library (PyTorch over gloo, or Open MPI), which
// lives on and takes orders, and ghostrank, started anew for every play. Both run one process per
// host.
//
// Units: seconds, bytes. Threading: one thread. Errors are std::runtime_error with the process's
// output.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/lab/lab.h"

namespace ghostrank::fidelity {

using nlohmann::json;

// Layers whose compute is a sleep; times in microseconds, as in ghostrank's `kind: layers`.
struct SleepingLayer {
  std::vector<int> parameters;
  double forward_us = 0, backward_us = 0;
};
struct SleepingModel {
  std::vector<SleepingLayer> layers;
  double optimizer_us = 0;
  double bucket_cap_mb = 25;
};
json to_json(const SleepingModel& model);  // for torch_worker.py; "layers" has a job's form

// Real processes, one on each of the hosts 0 .. size-1. They take orders line by line and answer
// each with a line of JSON; before the first order each sends a hello.
class Workers {
 public:
  // `launch` starts the processes, which read from orders() and write to replies().
  Workers(testing::Lab& lab, int size, const std::function<std::vector<pid_t>()>& launch);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  static std::string orders(testing::Lab& lab, int host);   // a pipe
  static std::string replies(testing::Lab& lab, int host);  // a file

  int size() const { return size_; }
  const json& hello() const { return hello_; }  // of rank 0
  // The answers of all ranks to one order.
  std::vector<json> ask(const std::string& order);

 private:
  std::vector<json> await(std::size_t line);

  testing::Lab& lab_;
  const int size_;
  std::size_t answered_ = 0;
  std::vector<int> orders_;  // file descriptors
  std::vector<pid_t> processes_;
  json hello_;
};

// PyTorch training the model under DistributedDataParallel: torch_worker.py, whose hello has
// `torch` and `buckets`.
Workers torch_workers(testing::Lab& lab, int size, const SleepingModel& model);
// Open MPI, started by its own mpirun, over TCP with every message eager: mpi_worker.cpp, whose
// hello has `version`. Throws std::runtime_error when mpi_worker was not built.
Workers mpi_workers(testing::Lab& lab, int size);

// The port where ghostrank's processes meet, because PyTorch's hold testing::kPort all the while.
inline constexpr int kPlayPort = testing::kPort + 1;

// Runs `ghostrank ARGUMENTS --json ..` on hosts 0 .. size-1 (size 1: as one process on host 0) and
// returns the JSON that process 0 wrote.
inline constexpr std::chrono::seconds kLongestPlay{120};
json play(testing::Lab& lab, int size, const std::string& arguments,
          std::chrono::seconds longest = kLongestPlay);

// TCP payload acknowledged so far, by (source, target) host, without connections of the port
// `except`, where processes meet. Waits until all bytes sent have been acknowledged.
using Bytes = std::map<std::pair<int, int>, double>;
Bytes payload_sent(testing::Lab& lab, int size, int except = testing::kPort);

// From now on SIGINT and SIGTERM make waits for a process throw, so that the lab is removed.
void end_on_signals();

double median(std::vector<double> values);  // throws where there are none

}  // namespace ghostrank::fidelity
