// What an artifact evaluator needs of a comparison, in one folder:
//
//   README.txt        what is what, and how to redraw and repeat it
//   compare.json      schema ghostrank/compare/1: seeds, settings, every run, what follows
//   runs.csv          one row a run
//   report.txt, picture.svg
//   jobs/NAME.json    each variant's job with every key resolved; a job file again
//   results/*.json    what each run wrote (schema ghostrank/result/1), its log beside it
//   environment.json  machine, kernel, version, GHOSTRANK_ variables
//   redraw.sh         draws report.txt and picture.svg again from compare.json
//
// Errors are Error. Threading: main thread.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/ab/comparison.h"

namespace ghostrank {

class Bundle {
 public:
  // Makes the folder. Throws Error(usage) when it exists and is not empty.
  explicit Bundle(std::string folder);

  const std::string& folder() const { return folder_; }
  // The file of a variant's run in a block, relative to the folder: "results/block003-a.json", or
  // "results/block003.2-a.json" of the second attempt.
  static std::string result_name(std::size_t block, const std::string& variant, int attempt);
  // The jobs and the environment; before the first run.
  void begin(const std::vector<Variant>& variants, const std::vector<std::string>& config_json,
             const std::string& version);
  // Everything that follows from the runs. Written again after every block, so that a comparison
  // that is killed keeps what it measured.
  void write(const AbComparison& comparison) const;

 private:
  std::string folder_;
};

// Reads a bundle's compare.json; writes its report.txt and picture.svg again.
AbComparison redraw(const std::string& folder);

}  // namespace ghostrank
