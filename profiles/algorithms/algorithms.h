// From an algorithm's name to its row, for every verb and for the emulator. A name is one of
//
//   ring                 a row of the library that is asked for; "auto": its first
//   mine/my-ring         a row of the library that is named, "mine" perhaps being a plugin's
//   my-ring.xml          an MSCCL file: as given, or else in the folder of the job
//
// Files and plugins are loaded and proved here, before anything may use them. Errors are
// Error(usage), with file and line where there is one.
//
// Threading: loading is for one thread; what is loaded may be read by any number.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/compressor.h"
#include "collectives/routing.h"
#include "collectives/schedule.h"
#include "collectives/server_placement.h"

namespace ghostrank {

// A path as given or, where there is no such file, in `folder`. Throws Error.
std::string find_file(const std::string& path, const std::string& folder);

class Algorithms {
 public:
  Algorithms() = default;
  Algorithms(Algorithms&&) = default;  // no copies: rows are named by the keys of a map

  static bool names_file(std::string_view name) { return name.ends_with(".xml"); }

  // What a shared object brings (collectives/plugin.h). It stays for the process's life.
  void load_plugin(const std::string& path, const std::string& folder);
  // An MSCCL file, under the name that was given. A second time does nothing.
  void load_file(const std::string& name, const std::string& folder);

  // Null when there is no such row, or the file was not loaded.
  const Algorithm* find(std::string_view library, Func func, std::string_view name) const;
  // The same, but a file is loaded if need be, and what is missing is an Error with what there is.
  const Algorithm& resolve(const std::string& library, Func func, const std::string& name,
                           const std::string& folder = ".");

  // Those that are built in, and then plugins'.
  std::vector<const Compressor*> compressors() const;
  std::vector<const Routing*> routings() const;
  std::vector<const ServerPlacement*> placements() const;

  bool is_plugin(std::string_view library) const;
  // The libraries with rows here, the built-in ones first.
  std::vector<std::string> libraries() const;
  // "auto" and the names that `find` knows.
  std::vector<std::string> names(std::string_view library, Func func) const;

  // One line for every file and plugin, with a hash of its content: all processes of a job must
  // agree on it.
  const std::string& contents() const { return contents_; }

 private:
  void note_content(const std::string& name, std::string_view content);

  std::vector<Algorithm> plugin_rows_;
  std::vector<const Compressor*> plugin_compressors_;
  std::vector<const Routing*> plugin_routings_;
  std::vector<const ServerPlacement*> plugin_placements_;
  std::map<std::string, Algorithm, std::less<>> files_;  // by name as given
  std::string contents_;
};

}  // namespace ghostrank
