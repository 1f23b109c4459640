#pragma once

#include <string>

namespace forebay {

/// Who carries out data calls: Forebay, the MPI library while Forebay measures, or the MPI library
/// alone, whose calls are traced.
enum class Mode { engine, observe, off };

/// What the environment says (docs/formats/report.md, "Environment of the runtime"), read once.
struct Settings {
  Mode mode = Mode::engine;
  std::string report_dir;      ///< Empty: no records.
  std::string hints;           ///< FOREBAY_HINTS as it stands.
  std::string intent_path;     ///< FOREBAY_INTENT; empty: none.
  bool count_storage = false;  ///< Sample the kernel's counters around data calls.
  int ranks_per_node = 0;      ///< 0: real nodes.

  /// It says something of how files are to be used.
  bool declares() const { return !hints.empty() || !intent_path.empty(); }
};

const Settings& settings();

}  // namespace forebay
