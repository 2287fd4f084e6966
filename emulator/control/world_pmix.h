// PMIx: what the launcher (Open MPI's mpirun, srun --mpi=pmix) tells a process, and a way to tell
// the others something before any connection exists. The only place, with world_pmix.cpp, that
// knows PMIx; a build without it finds no server.
//
// Threading: one thread, before the job starts.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ghostrank {

// The version of the library this was built with; empty: built without.
std::string pmix_version();

// True when the launcher of this process runs a PMIx server and this build can speak to it.
bool pmix_present();

// A process's membership of its launcher's job; at most one at a time. All processes of the job
// make one and call share() once.
class PmixSession {
 public:
  // Throws Error(environment) when the server does not answer.
  explicit PmixSession(std::chrono::seconds timeout);
  ~PmixSession();
  PmixSession(const PmixSession&) = delete;
  PmixSession& operator=(const PmixSession&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool one_host() const { return local_size_ == size_; }
  const std::string& name() const { return name_; }  // of the job, unique at the launcher

  // As the launcher calls the hosts of the processes other than `rank`, each once.
  std::vector<std::string> other_hosts() const;

  // Gives `text` of process 0 to everybody; the others' is not looked at. A barrier; throws
  // Error(environment) when the server says that it failed or took longer than `timeout`.
  std::string share(const std::string& text) const;

 private:
  std::chrono::seconds timeout_;
  std::string name_;
  int rank_ = 0, size_ = 1, local_size_ = 1;
};

}  // namespace ghostrank
