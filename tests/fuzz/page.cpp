// A file for `report` and `diagnose`: the page is well-formed and has no markup of the file's.
#include <string>
#include <tinyxml2.h>

#include "profiles/error.h"
#include "tests/fuzz/fuzz.h"
#include "tools/diagnosis/diagnosis.h"
#include "tools/report/page/pages.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ghostrank;
  static const fuzz::MemoryFile file;
  const std::string path = file.with(fuzz::text_of(data, size));
  try {
    const std::string html = page_of({path});
    fuzz::require(html.find("<script") == std::string::npos);
    tinyxml2::XMLDocument document;
    fuzz::require(document.Parse(html.c_str(), html.size()) == tinyxml2::XML_SUCCESS);
    const StoredRun run = read_run(path);
    const Diagnosis diagnosis = diagnose(run);
    fuzz::require(!diagnosis_text(run, diagnosis, {}).empty());
    fuzz::require(!diagnosis_json(run, diagnosis).empty());
    ++fuzz::accepted;
  } catch (const Error& refused) {
    fuzz::require(*refused.what() != '\0');
  }
  return 0;
}
