// Keys that a job gives but that have no effect in it: nothing is silently ignored. The columns of
// a key's row (load/keys/) say where it has an effect:
//
// clang-format off
//   of another framework or library                    refused
//   of another fabric, or beside another key's value   refused if that is a default that nobody
//                                                      chose; a note if the job chose it, because
//                                                      one file is played on several fabrics, and
//                                                      with and without the feature of a setting
// clang-format on
//
// A key with its default value is always accepted. Threading: pure functions.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/job/job.h"

namespace ghostrank {

// Names of the schemes that play some function in some group; views of the names of `spec`'s rows.
std::set<std::string_view> named_schemes(const CollectiveSpec& spec);

// Returns notes for JobSpec::notes. `spec` must have its framework and collectives; `schemes` are
// those that play its collectives. Throws Error(usage).
std::vector<std::string> idle_keys(const Settings& in, const JobSpec& spec,
                                   const std::set<std::string_view>& schemes);

// Returns the notes for a plan or result: spec.notes, then for each job the algorithms that it
// names for calls that it never makes, which numbers of its captured model are measured, and what
// its FLOPs count where the kernels compute much less.
std::vector<std::string> notes_of(const JobSpec& spec, const Workload& workload);

}  // namespace ghostrank
