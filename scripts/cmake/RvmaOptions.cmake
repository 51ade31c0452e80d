# Language, build type, warnings and instrumentation: one place for the whole tree.
set(CMAKE_CXX_STANDARD 17) # the packaged SystemC library is built as C++17 and refuses any other
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

get_property(rvma_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT CMAKE_BUILD_TYPE AND NOT rvma_multi_config)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

option(RVMA_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(RVMA_COVERAGE "gcov instrumentation" OFF)
option(RVMA_FUZZ "Build the libFuzzer targets (clang only)" OFF)

find_program(RVMA_CCACHE ccache)
if(RVMA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${RVMA_CCACHE}")
endif()

# -Wno-maybe-uninitialized with sanitizers: GCC 12 then takes the error half of a boost::system::result for uninitialised
# where it was never built.
# -Wno-gnu-zero-variadic-macro-arguments: BOOST_DESCRIBE_CLASS leaves a variadic argument out, which clang takes for a
# GNU extension at every use; clang-tidy reads gcc's command lines, and gcc ignores the option.
add_library(rvma_flags INTERFACE)
target_compile_options(
  rvma_flags
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror -Wno-gnu-zero-variadic-macro-arguments
            $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
            $<$<BOOL:${RVMA_SANITIZE}>:-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
            -Wno-maybe-uninitialized>
            $<$<BOOL:${RVMA_COVERAGE}>:--coverage>
            $<$<BOOL:${RVMA_FUZZ}>:-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all>)
target_link_options(
  rvma_flags INTERFACE $<$<BOOL:${RVMA_SANITIZE}>:-fsanitize=address,undefined>
  $<$<BOOL:${RVMA_COVERAGE}>:--coverage> $<$<BOOL:${RVMA_FUZZ}>:-fsanitize=address,undefined>)
