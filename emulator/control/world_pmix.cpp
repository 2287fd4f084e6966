#include "emulator/control/world_pmix.h"

#include <algorithm>
#include <cstdlib>

#include "profiles/error.h"

#ifdef GHOSTRANK_WITH_PMIX
#include <pmix.h>

namespace ghostrank {
namespace {

constexpr char kMeetKey[] = "ghostrank.meet";

[[noreturn]] void throw_failed(const char* what, pmix_status_t status) {
  throw Error("the launcher's PMIx server does not " + std::string(what) + ": " +
                  PMIx_Error_string(status) +
                  "; start with a launcher that has PMIx, or set RANK, WORLD_SIZE, MASTER_ADDR and "
                  "MASTER_PORT for every process",
              ErrorKind::environment);
}

pmix_proc_t process(const std::string& name, pmix_rank_t rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, name.c_str(), rank);
  return proc;
}

// The server's value of `key` for `proc`; a null pointer if it has none.
class Value {
 public:
  Value(const pmix_proc_t& proc, const char* key) {
    if (PMIx_Get(&proc, key, nullptr, 0, &value_) != PMIX_SUCCESS) value_ = nullptr;
  }
  ~Value() {
    if (value_) PMIX_VALUE_RELEASE(value_);
  }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  std::string text() const {
    return value_ && value_->type == PMIX_STRING && value_->data.string ? value_->data.string : "";
  }
  int count(int otherwise) const {
    return value_ && value_->type == PMIX_UINT32 ? static_cast<int>(value_->data.uint32)
                                                 : otherwise;
  }

 private:
  pmix_value_t* value_ = nullptr;
};

}  // namespace

std::string pmix_version() {
  const std::string text = PMIx_Get_version();  // "OpenPMIx 4.2.2 (PMIx Standard: 4.2, …"
  return text.substr(0, std::min(text.find(" ("), text.find(',')));
}

bool pmix_present() { return std::getenv("PMIX_NAMESPACE") && std::getenv("PMIX_RANK"); }

PmixSession::PmixSession(std::chrono::seconds timeout) : timeout_(timeout) {
  pmix_proc_t self;
  if (const auto status = PMIx_Init(&self, nullptr, 0); status != PMIX_SUCCESS)
    throw_failed("answer", status);
  name_ = self.nspace;
  rank_ = static_cast<int>(self.rank);
  const pmix_proc_t all = process(name_, PMIX_RANK_WILDCARD);
  size_ = Value(all, PMIX_JOB_SIZE).count(0);
  local_size_ = Value(all, PMIX_LOCAL_SIZE).count(1);
  if (size_ > rank_) return;
  PMIx_Finalize(nullptr, 0);
  throw_failed("tell the number of processes", PMIX_ERR_NOT_FOUND);
}

PmixSession::~PmixSession() { PMIx_Finalize(nullptr, 0); }

std::vector<std::string> PmixSession::other_hosts() const {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const pmix_proc_t other = process(name_, static_cast<pmix_rank_t>(rank));
    std::string host = Value(other, PMIX_HOSTNAME).text();
    if (!host.empty() && std::find(hosts.begin(), hosts.end(), host) == hosts.end())
      hosts.push_back(std::move(host));
  }
  return hosts;
}

std::string PmixSession::share(const std::string& text) const {
  if (rank_ == 0) {
    pmix_value_t value;
    PMIX_VALUE_LOAD(&value, text.c_str(), PMIX_STRING);
    const auto status = PMIx_Put(PMIX_GLOBAL, kMeetKey, &value);
    PMIX_VALUE_DESTRUCT(&value);
    if (status != PMIX_SUCCESS) throw_failed("take the address of process 0", status);
  }
  if (const auto status = PMIx_Commit(); status != PMIX_SUCCESS)
    throw_failed("take the address of process 0", status);
  const bool collect = true;
  const auto seconds = static_cast<int>(timeout_.count());
  pmix_info_t* wishes = nullptr;
  PMIX_INFO_CREATE(wishes, 2);
  PMIX_INFO_LOAD(&wishes[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  PMIX_INFO_LOAD(&wishes[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
  const pmix_proc_t all = process(name_, PMIX_RANK_WILDCARD);
  const auto met = PMIx_Fence(&all, 1, wishes, 2);
  PMIX_INFO_FREE(wishes, 2);
  if (met != PMIX_SUCCESS) throw_failed("bring all processes together", met);
  if (rank_ == 0) return text;
  std::string found = Value(process(name_, 0), kMeetKey).text();
  if (found.empty()) throw_failed("give the address of process 0", PMIX_ERR_NOT_FOUND);
  return found;
}

}  // namespace ghostrank

#else

namespace ghostrank {

std::string pmix_version() { return ""; }
bool pmix_present() { return false; }
PmixSession::PmixSession(std::chrono::seconds timeout) : timeout_(timeout) {
  throw Error("this build has no PMIx; install libpmix-dev and build again",
              ErrorKind::environment);
}
PmixSession::~PmixSession() = default;
std::vector<std::string> PmixSession::other_hosts() const { return {}; }
std::string PmixSession::share(const std::string& text) const { return text; }

}  // namespace ghostrank

#endif
