// Plays of `ghostrank` on this machine itself, as one process or as two over loopback, and what
// disturbs them: stops of a random length, a CPU quota, a program that takes the cores.
//
// Units: seconds. Threading: one thread. Errors are std::runtime_error with the process's output.
#pragma once

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <sys/types.h>
#include <vector>

#include <nlohmann/json.hpp>

namespace ghostrank::fidelity {

using nlohmann::json;

// A folder for job files and results, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Called again and again while the processes play, with their ids, until it returns false.
using Disturbance = std::function<bool(const std::vector<pid_t>& processes)>;

// Runs `ghostrank run ARGUMENTS` as so many processes and returns the JSON that process 0 wrote,
// faithful or not. `disturb`: null leaves them alone.
json play_here(const Folder& folder, int processes, const std::vector<std::string>& arguments,
               const Disturbance& disturb = nullptr);

// Stops all threads of a process for 0.3 to 5 ms, at random times about `every_ms` apart.
Disturbance stops(unsigned seed, double every_ms);

// A control group whose processes together get `share` of a core, in periods of `period_ms`.
class Quota {
 public:
  Quota(double share, double period_ms);
  ~Quota();
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  static bool possible();
  Disturbance disturbance() const;  // moves the processes into the group

 private:
  std::string folder_;
};

// Processes that take all the time they get.
class Hogs {
 public:
  explicit Hogs(int count);
  ~Hogs();
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;

 private:
  Hogs() = default;

  std::vector<pid_t> processes_;
};

}  // namespace ghostrank::fidelity
