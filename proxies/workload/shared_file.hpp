// A file opened through MPI-IO. Every call is checked, and the time inside data calls is summed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "proxies/workload/options.hpp"

namespace workload {

/// The hints of the command line as an MPI_Info that frees itself; MPI_INFO_NULL if there are none.
class Info {
 public:
  explicit Info(const Options& options);
  ~Info();
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;

  MPI_Info get() const { return info_; }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
};

class SharedFile {
 public:
  enum class For { writing, reading };

  /// Opens `path` on all ranks of `comm`. Data calls are collective unless `options.independent`.
  SharedFile(MPI_Comm comm, const std::string& path, For purpose, const Options& options);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  /// The displacement is in bytes.
  void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype);

  /// At the individual file pointer.
  void write(const void* buffer, int count, MPI_Datatype type);
  void read(void* buffer, int count, MPI_Datatype type);

  /// At an explicit offset, in etypes of the view.
  void write_at(MPI_Offset offset, const void* buffer, int count, MPI_Datatype type);
  void read_at(MPI_Offset offset, void* buffer, int count, MPI_Datatype type);

  /// Ends the job if the file has not this size, in bytes. Collective.
  void expect_size(std::uint64_t bytes);

  /// Collective; first syncs what was written where the options say so. Nothing else may be called
  /// after it but data_seconds().
  void close();

  /// Time this rank has spent inside data calls.
  double data_seconds() const { return data_seconds_; }

 private:
  /// Times `call(status)` and checks that it moved all of `count`.
  template <typename Call>
  void transfer(const char* name, int count, MPI_Datatype type, Call call);

  MPI_File file_ = MPI_FILE_NULL;
  std::string path_;
  For purpose_;
  bool collective_;
  bool sync_;
  double data_seconds_ = 0;
};

/// Removes a file that an earlier run left, so that nothing of it can survive. One rank calls this.
void remove_if_there(const std::string& path);

/// Writes the file out and drops it from this node's page cache. Every rank may call this.
void drop_from_page_cache(const std::string& path);

}  // namespace workload
