#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/mpi/random_access/data_call.hpp"
#include "tests/mpi/random_access/file_model.hpp"
#include "tests/mpi/random_access/observations.hpp"
#include "tests/mpi/random_access/random.hpp"
#include "tests/mpi/random_access/type_generator.hpp"

namespace random_access {

/// One file and what happens to it: a few times opened, worked on and closed. Every rank plays all
/// ranks' parts in the model and its own for real.
class RandomCase {
 public:
  struct Options {
    std::string directory;    ///< Where the file is made.
    bool open_holes = false;  ///< See FileModel.
    bool talkative = false;   ///< Says every datatype on lines of its own.
  };
  RandomCase(std::uint64_t seed, const Options& options);
  ~RandomCase();
  RandomCase(const RandomCase&) = delete;
  RandomCase& operator=(const RandomCase&) = delete;

  void run();

 private:
  /// One rank's part of a data call.
  struct Part {
    CallKind kind;
    TypeModel memory;
    std::int64_t count = 0;
    std::int64_t start = 0;             ///< Data position in the view, bytes.
    std::vector<std::int64_t> offsets;  ///< In the file, of every byte of data.
    std::int64_t length() const { return static_cast<std::int64_t>(offsets.size()); }
  };

  void prefill();
  void open(bool last);
  void close();
  void session(bool last);
  void step();

  void set_view();
  void data_call();
  void resize_file();
  void atomicity();
  void query();
  void error_probe();
  void synchronise();

  CallKind random_kind();
  Part random_part(const CallKind& kind, int rank, std::int64_t amount, bool past_end);
  void keep_apart(std::vector<Part>& parts);
  void seek_individual();
  void seek_shared();
  void carry_out_part(const Part& part);
  void observe_pointers();
  void apply(const std::vector<Part>& parts);
  bool agreed(bool mine) const;
  std::uint64_t data_seed(int rank) const;
  void tell(const std::string& text) const;
  bool readable() const { return (amode_ & MPI_MODE_WRONLY) == 0; }
  bool writable() const { return (amode_ & MPI_MODE_RDONLY) == 0; }
  const ViewModel& view(int rank) const { return views_.of_rank[static_cast<std::size_t>(rank)]; }

  Random random_;
  std::uint64_t seed_;
  std::string path_;
  bool talkative_;
  /// Memory types and calls that MPIs agree on: half of all cases, so that most of a stock MPI's
  /// answers can be compared with too.
  bool mild_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  Observations seen_;

  int step_ = 0;
  MPI_File file_ = MPI_FILE_NULL;
  int amode_ = 0;
  bool atomic_ = false;
  FileModel model_;
  Views views_;
  std::vector<std::int64_t> positions_;  ///< Individual file pointers, in bytes of the view's data.
  std::int64_t shared_position_ = 0;
};

}  // namespace random_access
