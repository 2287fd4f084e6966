// Members of process groups in Kineto's traces. An event lists them as "[0, 1]", but of a long list
// only the first 30: "[0, 1, ..., 29, ...]". All of them stand in the trace's distributedInfo:
//
//   {"rank": 0, "world_size": 64, "pg_config": [{"pg_name": "0", "ranks": [0, 1, ...]}, ...]}
//
// Threading: a value; methods that are const are pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiles/trace/json_stream.h"

namespace ghostrank {

struct NumberList {
  std::vector<std::int64_t> numbers;
  bool cut = false;  // it ends in "..."
};

// A list of numbers, or one as text. Nothing: it is no such list, or has a negative number.
std::optional<NumberList> number_list(const JsonTape& json, const JsonNode& value);

class KinetoGroups {
 public:
  // Takes what distributedInfo says. Lists that are cut short there, too, are not taken.
  void take_info(const JsonTape& json);

  // The members of the group `name` of `size` ranks, of which `first` are the first. A group that
  // distributedInfo does not list, of as many ranks as the job, is the whole job. Nothing: the
  // members are not known, or not as `first` and `size` say.
  std::optional<std::vector<std::int64_t>> members(const std::string& name,
                                                   const std::vector<std::int64_t>& first,
                                                   std::int64_t size) const;

 private:
  std::map<std::string, std::vector<std::int64_t>> ranks_of_;  // by name
  std::int64_t world_ = 0;                                     // ranks of the job; 0: not said
};

}  // namespace ghostrank
