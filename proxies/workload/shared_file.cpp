#include "proxies/workload/shared_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proxies/workload/session.hpp"

namespace workload {

Info::Info(const Options& options) {
  if (options.hints.empty()) return;
  MPI_Info_create(&info_);
  for (const auto& [key, value] : options.hints) MPI_Info_set(info_, key.c_str(), value.c_str());
}

Info::~Info() {
  if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
}

SharedFile::SharedFile(MPI_Comm comm, const std::string& path, For purpose, const Options& options)
    : path_(path),
      purpose_(purpose),
      collective_(!options.independent),
      sync_(options.sync && purpose == For::writing) {
  const int amode = purpose == For::writing ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY;
  const Info info(options);
  check(MPI_File_open(comm, path.c_str(), amode, info.get(), &file_), "MPI_File_open", path_);
}

SharedFile::~SharedFile() {
  if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
}

void SharedFile::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype) {
  check(MPI_File_set_view(file_, displacement, etype, filetype, "native", MPI_INFO_NULL),
        "MPI_File_set_view", path_);
}

template <typename Call>
void SharedFile::transfer(const char* name, int count, MPI_Datatype type, Call call) {
  MPI_Status status;
  const double start = MPI_Wtime();
  const int code = call(&status);
  data_seconds_ += MPI_Wtime() - start;
  check(code, name, path_);
  // A short read is the end of a file that lacks something: the check of the bytes says where.
  if (purpose_ == For::reading) return;
  int moved = 0;
  MPI_Get_count(&status, type, &moved);
  if (moved != count) {
    fail(std::string(name) + " on " + path_ + ": wrote " + std::to_string(moved) + " of " +
         std::to_string(count) + " elements and reported success");
  }
}

void SharedFile::write(const void* buffer, int count, MPI_Datatype type) {
  transfer("MPI_File_write", count, type, [&](MPI_Status* status) {
    return collective_ ? MPI_File_write_all(file_, buffer, count, type, status)
                       : MPI_File_write(file_, buffer, count, type, status);
  });
}

void SharedFile::read(void* buffer, int count, MPI_Datatype type) {
  transfer("MPI_File_read", count, type, [&](MPI_Status* status) {
    return collective_ ? MPI_File_read_all(file_, buffer, count, type, status)
                       : MPI_File_read(file_, buffer, count, type, status);
  });
}

void SharedFile::write_at(MPI_Offset offset, const void* buffer, int count, MPI_Datatype type) {
  transfer("MPI_File_write_at", count, type, [&](MPI_Status* status) {
    return collective_ ? MPI_File_write_at_all(file_, offset, buffer, count, type, status)
                       : MPI_File_write_at(file_, offset, buffer, count, type, status);
  });
}

void SharedFile::read_at(MPI_Offset offset, void* buffer, int count, MPI_Datatype type) {
  transfer("MPI_File_read_at", count, type, [&](MPI_Status* status) {
    return collective_ ? MPI_File_read_at_all(file_, offset, buffer, count, type, status)
                       : MPI_File_read_at(file_, offset, buffer, count, type, status);
  });
}

void SharedFile::expect_size(std::uint64_t bytes) {
  MPI_Offset size = 0;
  check(MPI_File_get_size(file_, &size), "MPI_File_get_size", path_);
  if (static_cast<std::uint64_t>(size) != bytes) {
    fail(path_ + " has " + std::to_string(size) + " bytes, expected " + std::to_string(bytes));
  }
}

void SharedFile::close() {
  if (sync_) check(MPI_File_sync(file_), "MPI_File_sync", path_);
  check(MPI_File_close(&file_), "MPI_File_close", path_);
}

void remove_if_there(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return;
  check(MPI_File_delete(path.c_str(), MPI_INFO_NULL), "MPI_File_delete", path);
}

void drop_from_page_cache(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("open " + path + ": " + std::strerror(errno));
  // Dirty pages cannot be dropped, so they go to the device first.
  if (fsync(fd) != 0) fail("fsync " + path + ": " + std::strerror(errno));
  const int error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  if (error != 0) fail("posix_fadvise " + path + ": " + std::strerror(error));
}

}  // namespace workload
