# SystemC has no CMake package in Debian: find header and library, and probe that they fit this build.
find_path(RVMA_SYSTEMC_INCLUDE systemc)
find_library(RVMA_SYSTEMC_LIBRARY systemc)
if(NOT RVMA_SYSTEMC_INCLUDE OR NOT RVMA_SYSTEMC_LIBRARY)
  message(
    FATAL_ERROR
      "SystemC was not found (header 'systemc', library 'libsystemc').\n"
      "On Debian 12: scripts/setup, or apt-get install libsystemc-dev. Elsewhere: give -DRVMA_SYSTEMC_INCLUDE=DIR and "
      "-DRVMA_SYSTEMC_LIBRARY=FILE.")
endif()
if(NOT TARGET SystemC::systemc)
  add_library(SystemC::systemc UNKNOWN IMPORTED)
  set_target_properties(
    SystemC::systemc PROPERTIES IMPORTED_LOCATION "${RVMA_SYSTEMC_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                           "${RVMA_SYSTEMC_INCLUDE}")
  # sc_spawn, which every process of the model is made with
  set_property(TARGET SystemC::systemc APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS SC_INCLUDE_DYNAMIC_PROCESSES)
endif()

if(NOT DEFINED RVMA_SYSTEMC_WORKS)
  set(rvma_probe "${PROJECT_BINARY_DIR}/systemc_probe.cpp")
  file(
    WRITE "${rvma_probe}"
    "#include <systemc>\n"
    "#include <tlm>\n"
    "static_assert(SYSTEMC_VERSION >= 20181013, \"SystemC 2.3.3 or newer is needed\");\n"
    "int sc_main(int, char**) { sc_core::sc_start(); return 0; }\n")
  try_compile(
    RVMA_SYSTEMC_WORKS "${PROJECT_BINARY_DIR}/systemc_probe" "${rvma_probe}"
    LINK_LIBRARIES "${RVMA_SYSTEMC_LIBRARY}"
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${RVMA_SYSTEMC_INCLUDE}"
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON
    OUTPUT_VARIABLE rvma_probe_log)
  if(NOT RVMA_SYSTEMC_WORKS)
    unset(RVMA_SYSTEMC_WORKS CACHE)
    message(
      FATAL_ERROR
        "SystemC was found (${RVMA_SYSTEMC_LIBRARY}) but a C++17 program does not build against it. A library that was "
        "built for another C++ standard shows as an undefined sc_api_version_..._cxx... symbol:\n${rvma_probe_log}")
  endif()
endif()
