// An error about a key by code that does not know where the job gives it: who has the job adds the
// place.
//
// Threading: as Error.
#pragma once

#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/job/job.h"

namespace ghostrank {

class KeyError : public Error {
 public:
  KeyError(std::string key, const std::string& text, ErrorKind kind = ErrorKind::usage)
      : Error(text, kind), key_(std::move(key)) {}
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

// Returns what `act` returns. A KeyError becomes an Error that begins with the key's place.
template <typename Act>
auto with_source(const JobSpec& spec, const Act& act) {
  try {
    return act();
  } catch (const KeyError& error) {
    throw Error(spec.source_of(error.key()) + ": " + error.what(),
                static_cast<ErrorKind>(error.exit_code()));
  }
}

}  // namespace ghostrank
