// Files, environment and errors for the tests of profiles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profiles/job/job.h"
#include "profiles/load/load.h"
#include "profiles/model/model.h"

namespace ghostrank::test {

// A folder for one test; the destructor removes it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const;  // returns the path
  std::string path(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::string root_;
};

// The text of the Error that `action` throws, in full; "" if it throws nothing.
std::string error_of(const std::function<void()>& action);

// Loads a job from text. load_error also plans it, and returns the error without the folder's path.
LoadedJob load_text(const std::string& text, const std::vector<std::string>& overrides = {});
std::string load_error(const std::string& text, const std::vector<std::string>& overrides = {});

Model shipped_model(const std::string& name);
Model model_from(const std::string& yaml);

std::string read_file(const std::string& path);

// The folder of test data (tests/README.md), else the one beside the checkout. May be missing.
std::string data_folder();

}  // namespace ghostrank::test
