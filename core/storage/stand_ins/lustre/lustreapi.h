#pragma once
// What server_advice.cpp needs of Lustre's <lustre/lustreapi.h>, for its test on machines without
// Lustre. Names, types and values as in Lustre 2.15; all else is left out.

enum { LU_LADVISE_WILLREAD = 1 };
enum { LF_ASYNC = 1 };

struct llapi_lu_ladvise {
  unsigned short lla_advice, lla_value1;
  unsigned int lla_value2;
  unsigned long long lla_start, lla_end;
  unsigned int lla_value3, lla_value4;
};
