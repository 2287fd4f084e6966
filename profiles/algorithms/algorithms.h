// Resolves an algorithm's name to its row, for every verb and for the emulator. A name is one of
//
//   ring                 a row of the library asked for; "auto": its first row
//   mine/my-ring         a row of the named library, which may be a plugin's
//   my-ring.xml          an MSCCL file: the path as given, else in the job's folder
//
// Files and plugins are loaded and proved here before anything may use them. Errors are
// Error(usage), with file and line where there is one.
//
// Threading: one thread loads; any number may read the loaded rows.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/compressor.h"
#include "collectives/congestion_control.h"
#include "collectives/routing.h"
#include "collectives/schedule.h"
#include "collectives/server_placement.h"

namespace ghostrank {

// Returns `path` if that file exists, else `folder`/`path`. Throws Error if neither exists.
std::string find_file(const std::string& path, const std::string& folder);

class Algorithms {
 public:
  Algorithms() = default;
  Algorithms(Algorithms&&) = default;  // no copies: rows refer to keys of files_

  static bool names_file(std::string_view name) { return name.ends_with(".xml"); }

  // Loads and proves the rows of a shared object (collectives/plugin.h), which stays loaded until
  // the process ends.
  void load_plugin(const std::string& path, const std::string& folder);
  // Loads and proves an MSCCL file under the name as given; does nothing if it is loaded already.
  void load_file(const std::string& name, const std::string& folder);

  // Null if there is no such row, or the file is not loaded.
  const Algorithm* find(std::string_view library, Func func, std::string_view name) const;
  // Like find(), but loads a file if necessary; throws Error with the known names if there is no
  // such row.
  const Algorithm& resolve(const std::string& library, Func func, const std::string& name,
                           const std::string& folder = ".");

  // The built-in rows, then those of plugins.
  std::vector<const Compressor*> compressors() const;
  std::vector<const Routing*> routings() const;
  std::vector<const CongestionControl*> congestion_controls() const;
  std::vector<const ServerPlacement*> placements() const;

  bool is_plugin(std::string_view library) const;
  // The libraries that have rows, the built-in ones first.
  std::vector<std::string> libraries() const;
  // "auto" and the names that `find` knows.
  std::vector<std::string> names(std::string_view library, Func func) const;

  // One line per file and plugin with a hash of its content, because all processes of a job must
  // agree on it.
  const std::string& contents() const { return contents_; }

 private:
  void note_content(const std::string& name, std::string_view content);

  std::vector<Algorithm> plugin_rows_;
  std::vector<const Compressor*> plugin_compressors_;
  std::vector<const Routing*> plugin_routings_;
  std::vector<const CongestionControl*> plugin_controls_;
  std::vector<const ServerPlacement*> plugin_placements_;
  std::map<std::string, Algorithm, std::less<>> files_;  // by name as given
  std::string contents_;
};

}  // namespace ghostrank
