// PMIx: what the launcher (Open MPI's mpirun, srun --mpi=pmix) tells a process, and a text that
// process 0 can give the others before any connection exists. Only these two files know PMIx; a
// build without it finds no server.
//
// Threading: one thread, before the job starts.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ghostrank {

// The version of the library at build time; empty: built without it.
std::string pmix_version();

// True if this process's launcher runs a PMIx server and this build has PMIx.
bool pmix_present();

// A process's membership of its launcher's job; at most one at a time. Every process of the job
// makes one and calls share() once.
class PmixSession {
 public:
  // Throws Error(environment) if the server does not answer.
  explicit PmixSession(std::chrono::seconds timeout);
  ~PmixSession();
  PmixSession(const PmixSession&) = delete;
  PmixSession& operator=(const PmixSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool one_host() const { return local_size_ == size_; }
  const std::string& name() const { return name_; }  // of the job, unique at its launcher

  // The hosts of all processes but `rank`, by the launcher's names, each once.
  std::vector<std::string> other_hosts() const;

  // Returns process 0's `text` on every process; the others' texts are ignored. A barrier. Throws
  // Error(environment) if the server reports a failure or takes longer than `timeout`.
  std::string share(const std::string& text) const;

 private:
  std::chrono::seconds timeout_;
  std::string name_;
  int rank_ = 0, size_ = 1, local_size_ = 1;
};

}  // namespace ghostrank
