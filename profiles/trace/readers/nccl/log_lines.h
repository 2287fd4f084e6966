// The records in a line of NCCL's log, and the thread that wrote each:
//
//   host:pid:tid [dev] NCCL INFO body
//
// What the program prints may stand before a record, on its line and without a blank, and a record
// may follow another one so. Where a host's name begins then is known by its process, which has
// logged before, or by a character that no host's name has.
//
// Threading: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ghostrank {

struct NcclLogRecord {
  bool named = false;  // false: there is no host:pid:tid before it
  std::string host;
  std::int64_t pid = 0, tid = 0;
  std::string_view body;
  bool followed = false;  // by another record on the line, which may have cut this one off
};

class NcclLogLines {
 public:
  // Empty: the line is not NCCL's. Valid until the next call, and as long as `line`.
  const std::vector<NcclLogRecord>& records_in(std::string_view line);

 private:
  std::string_view host_in(std::string_view text, std::int64_t pid);

  std::vector<NcclLogRecord> records_;
  std::map<std::int64_t, std::set<std::string, std::less<>>> hosts_of_;  // by pid
};

}  // namespace ghostrank
