# How Forebay's own targets are declared: one room is one static library, its tests, fuzzers and
# benchmarks stand beside the code they exercise.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
if(FOREBAY_TESTS)
  find_package(GTest REQUIRED)
endif()
if(FOREBAY_BENCH)
  find_package(benchmark REQUIRED)
endif()

# Flags for our own code only. NDEBUG is never defined by the presets: cheap asserts stay on.
add_library(forebay_flags INTERFACE)
target_compile_options(forebay_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow>)
target_include_directories(forebay_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(forebay_flags INTERFACE Threads::Threads)

# forebay_room(NAME SOURCES... [LINK libs...]): the static library of one room.
function(forebay_room name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC forebay_flags ${ARG_LINK})
  if(FOREBAY_FUZZ)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${FOREBAY_UNITY})
endfunction()

# What `make asan` and `make fuzz` build: the tests of one process, and the fuzzers. What `make tsan`
# builds beside the former: those of many processes in which threads meet.
add_custom_target(unit_tests)
add_custom_target(fuzzers)
add_custom_target(thread_tests)
add_custom_target(benchmarks)

# Every test reads gtest's headers, which takes longer than the rest of most tests: they are compiled
# once, with the flags of those tests that are not OPTIMISED.
if(FOREBAY_TESTS)
  add_executable(forebay_test_headers ${CMAKE_CURRENT_LIST_DIR}/test_headers.cpp)
  target_link_libraries(forebay_test_headers PRIVATE forebay_flags GTest::gtest GTest::gmock
                                                     GTest::gtest_main)
  target_compile_options(forebay_test_headers PRIVATE -O0)
  target_precompile_headers(forebay_test_headers PRIVATE <gtest/gtest.h>)
endif()

set(FOREBAY_TEST_TIMEOUT 120 CACHE STRING "Seconds for a program of tests")

# forebay_test(NAME SOURCES... [OPTIMISED] [LABEL label] [LINK libs...]): a GoogleTest program, run by
# ctest with label "unit" if none is given. OPTIMISED is for one that computes for seconds itself:
# optimising the code of the others takes longer than it saves.
function(forebay_test name)
  if(NOT FOREBAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "OPTIMISED" "LABEL" "LINK" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
    add_dependencies(unit_tests ${name})
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE forebay_flags ${ARG_LINK} GTest::gtest GTest::gmock
                                        GTest::gtest_main)
  if(NOT ARG_OPTIMISED)
    target_compile_options(${name} PRIVATE -O0)
    target_precompile_headers(${name} REUSE_FROM forebay_test_headers)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${FOREBAY_TEST_TIMEOUT})
  if(ARG_OPTIMISED)
    set_tests_properties(${name} PROPERTIES COST 10)  # It starts before the short ones.
  endif()
endfunction()

# forebay_property_test: the same, with rapidcheck. The seed is fixed so that a run of the tests can
# be repeated; to explore, run the program itself, which draws and prints a seed of its own.
function(forebay_property_test name)
  forebay_test(${name} ${ARGN})
  if(FOREBAY_TESTS)
    target_link_libraries(${name} PRIVATE rapidcheck)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "RC_PARAMS=seed=2")
  endif()
endfunction()

# forebay_fuzz(NAME SOURCE [LINK libs...]): a libFuzzer target; its corpus is beside the source in
# NAME_corpus/ if that folder exists.
function(forebay_fuzz name source)
  if(NOT FOREBAY_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE forebay_flags ${ARG_LINK})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()

# forebay_bench(NAME SOURCE [LINK libs...]): a Google Benchmark program.
function(forebay_bench name source)
  if(NOT FOREBAY_BENCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE forebay_flags ${ARG_LINK} benchmark::benchmark_main)
  add_dependencies(benchmarks ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endfunction()
