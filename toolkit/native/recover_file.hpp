#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "toolkit/native/gathered_logs.hpp"
#include "toolkit/native/progress_printer.hpp"

namespace forebay {

/// What the command was told about all files.
struct RecoverOptions {
  GatherChoices choices;
  std::string incomplete;  ///< "drop", "replay", or empty: not said.
  std::string overtaken;   ///< The same.
  std::string into;        ///< Another file, or empty.
  bool further = false;    ///< An earlier recovery began that one.
  int threads = 0;
};

/// Brings what logs hold to their file; what became of it, as docs/guide/command.md has `files[]`.
nlohmann::json recover_file(const FileLogs& logs, const RecoverOptions& options,
                            ProgressPrinter& printer);

}  // namespace forebay
