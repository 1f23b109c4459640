// The data calls: each says which direction, file pointer and manner it has, and leaves the rest to
// data_call.cpp. Blocking calls, split collectives and nonblocking calls differ only in when they
// tell their outcome.
#include "core/intercept/mpi/completed_request.hpp"
#include "core/intercept/mpi/data_call.hpp"
#include "core/intercept/mpi/own_calls.hpp"

namespace forebay::own {
namespace {

constexpr auto independent = Manner::independent;
constexpr auto collective = Manner::collective;

DataCall read_call(Pointer pointer, Manner manner, MPI_Offset offset, void* buffer, MPI_Count count,
                   MPI_Datatype datatype) {
  return {Direction::read, pointer, manner, offset, buffer, count, datatype};
}

DataCall write_call(Pointer pointer, Manner manner, MPI_Offset offset, const void* buffer,
                    MPI_Count count, MPI_Datatype datatype) {
  return {Direction::write, pointer, manner, offset, const_cast<void*>(buffer), count, datatype};
}

/// A blocking call.
int finish(OpenFile& file, const DataCall& call, MPI_Status* status) {
  const Outcome outcome = carry_out(file, call);
  set_status(status, outcome.moved);
  return file.raise(outcome.code);
}

/// The begin of a split collective. It moves the data; what went wrong there is told by the end,
/// unless no end can follow because another split collective is under way.
int begin(OpenFile& file, SplitKind kind, const DataCall& call) {
  if (file.shadow->split) return file.raise(MPI_ERR_IO);
  const Outcome outcome = carry_out(file, call);
  file.shadow->split = SplitCall{kind, call.buffer, outcome};
  return MPI_SUCCESS;
}

int end(OpenFile& file, SplitKind kind, const void* buffer, MPI_Status* status) {
  auto& split = file.shadow->split;
  if (!split || split->kind != kind || split->buffer != buffer) return file.raise(MPI_ERR_IO);
  const Outcome outcome = split->outcome;
  split.reset();
  set_status(status, outcome.moved);
  return file.raise(outcome.code);
}

/// A nonblocking call. As in ROMIO, an error is told by the call itself; the request is good and
/// complete in any case.
int initiate(OpenFile& file, const DataCall& call, MPI_Request* request) {
  const Outcome outcome = carry_out(file, call);
  const int made = make_completed_request(outcome.moved, request);
  return file.raise(outcome.code != MPI_SUCCESS ? outcome.code : made);
}

}  // namespace

// Blocking, independent.

int read(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status) {
  return finish(file, read_call(Pointer::individual, independent, 0, buf, count, datatype), status);
}

int write(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype,
          MPI_Status* status) {
  return finish(file, write_call(Pointer::individual, independent, 0, buf, count, datatype),
                status);
}

int read_at(OpenFile& file, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
            MPI_Status* status) {
  return finish(
      file, read_call(Pointer::explicit_offset, independent, offset, buf, count, datatype), status);
}

int write_at(OpenFile& file, MPI_Offset offset, const void* buf, MPI_Count count,
             MPI_Datatype datatype, MPI_Status* status) {
  return finish(file,
                write_call(Pointer::explicit_offset, independent, offset, buf, count, datatype),
                status);
}

int read_shared(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype,
                MPI_Status* status) {
  return finish(file, read_call(Pointer::shared, independent, 0, buf, count, datatype), status);
}

int write_shared(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Status* status) {
  return finish(file, write_call(Pointer::shared, independent, 0, buf, count, datatype), status);
}

// Blocking, collective.

int read_all(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Status* status) {
  return finish(file, read_call(Pointer::individual, collective, 0, buf, count, datatype), status);
}

int write_all(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype,
              MPI_Status* status) {
  return finish(file, write_call(Pointer::individual, collective, 0, buf, count, datatype), status);
}

int read_at_all(OpenFile& file, MPI_Offset offset, void* buf, MPI_Count count,
                MPI_Datatype datatype, MPI_Status* status) {
  return finish(file, read_call(Pointer::explicit_offset, collective, offset, buf, count, datatype),
                status);
}

int write_at_all(OpenFile& file, MPI_Offset offset, const void* buf, MPI_Count count,
                 MPI_Datatype datatype, MPI_Status* status) {
  return finish(
      file, write_call(Pointer::explicit_offset, collective, offset, buf, count, datatype), status);
}

int read_ordered(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Status* status) {
  return finish(file, read_call(Pointer::shared, collective, 0, buf, count, datatype), status);
}

int write_ordered(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Status* status) {
  return finish(file, write_call(Pointer::shared, collective, 0, buf, count, datatype), status);
}

// Split collective.

int read_all_begin(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(file, SplitKind::read_all,
               read_call(Pointer::individual, collective, 0, buf, count, datatype));
}

int read_all_end(OpenFile& file, void* buf, MPI_Status* status) {
  return end(file, SplitKind::read_all, buf, status);
}

int write_all_begin(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(file, SplitKind::write_all,
               write_call(Pointer::individual, collective, 0, buf, count, datatype));
}

int write_all_end(OpenFile& file, const void* buf, MPI_Status* status) {
  return end(file, SplitKind::write_all, buf, status);
}

int read_at_all_begin(OpenFile& file, MPI_Offset offset, void* buf, MPI_Count count,
                      MPI_Datatype datatype) {
  return begin(file, SplitKind::read_at_all,
               read_call(Pointer::explicit_offset, collective, offset, buf, count, datatype));
}

int read_at_all_end(OpenFile& file, void* buf, MPI_Status* status) {
  return end(file, SplitKind::read_at_all, buf, status);
}

int write_at_all_begin(OpenFile& file, MPI_Offset offset, const void* buf, MPI_Count count,
                       MPI_Datatype datatype) {
  return begin(file, SplitKind::write_at_all,
               write_call(Pointer::explicit_offset, collective, offset, buf, count, datatype));
}

int write_at_all_end(OpenFile& file, const void* buf, MPI_Status* status) {
  return end(file, SplitKind::write_at_all, buf, status);
}

int read_ordered_begin(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(file, SplitKind::read_ordered,
               read_call(Pointer::shared, collective, 0, buf, count, datatype));
}

int read_ordered_end(OpenFile& file, void* buf, MPI_Status* status) {
  return end(file, SplitKind::read_ordered, buf, status);
}

int write_ordered_begin(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype) {
  return begin(file, SplitKind::write_ordered,
               write_call(Pointer::shared, collective, 0, buf, count, datatype));
}

int write_ordered_end(OpenFile& file, const void* buf, MPI_Status* status) {
  return end(file, SplitKind::write_ordered, buf, status);
}

// Nonblocking. The collective ones may not wait for other ranks, so they are carried out as
// independent ones.

int iread(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request) {
  return initiate(file, read_call(Pointer::individual, independent, 0, buf, count, datatype),
                  request);
}

int iwrite(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype,
           MPI_Request* request) {
  return initiate(file, write_call(Pointer::individual, independent, 0, buf, count, datatype),
                  request);
}

int iread_all(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype,
              MPI_Request* request) {
  return iread(file, buf, count, datatype, request);
}

int iwrite_all(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype,
               MPI_Request* request) {
  return iwrite(file, buf, count, datatype, request);
}

int iread_at(OpenFile& file, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Request* request) {
  return initiate(file,
                  read_call(Pointer::explicit_offset, independent, offset, buf, count, datatype),
                  request);
}

int iwrite_at(OpenFile& file, MPI_Offset offset, const void* buf, MPI_Count count,
              MPI_Datatype datatype, MPI_Request* request) {
  return initiate(file,
                  write_call(Pointer::explicit_offset, independent, offset, buf, count, datatype),
                  request);
}

int iread_at_all(OpenFile& file, MPI_Offset offset, void* buf, MPI_Count count,
                 MPI_Datatype datatype, MPI_Request* request) {
  return iread_at(file, offset, buf, count, datatype, request);
}

int iwrite_at_all(OpenFile& file, MPI_Offset offset, const void* buf, MPI_Count count,
                  MPI_Datatype datatype, MPI_Request* request) {
  return iwrite_at(file, offset, buf, count, datatype, request);
}

int iread_shared(OpenFile& file, void* buf, MPI_Count count, MPI_Datatype datatype,
                 MPI_Request* request) {
  return initiate(file, read_call(Pointer::shared, independent, 0, buf, count, datatype), request);
}

int iwrite_shared(OpenFile& file, const void* buf, MPI_Count count, MPI_Datatype datatype,
                  MPI_Request* request) {
  return initiate(file, write_call(Pointer::shared, independent, 0, buf, count, datatype), request);
}

}  // namespace forebay::own
