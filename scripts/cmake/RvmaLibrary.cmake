# rvma_library(NAME SOURCES... LINK targets...): one hardware block, one library target rvma::NAME, here and in what
# find_package(rvma) gives to others. Its headers are all in the folder that declares it.
function(rvma_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(rvma_${name} STATIC ${arg_SOURCES})
  add_library(rvma::${name} ALIAS rvma_${name})
  set_target_properties(rvma_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(
    rvma_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/model>"
                        "$<INSTALL_INTERFACE:${RVMA_INSTALL_INCLUDEDIR}>")
  target_compile_features(rvma_${name} PUBLIC cxx_std_17)
  target_link_libraries(
    rvma_${name}
    PUBLIC ${arg_LINK}
    PRIVATE $<BUILD_INTERFACE:rvma_flags> $<BUILD_INTERFACE:rvma_relocatable>)
  install(TARGETS rvma_${name} EXPORT rvma ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/" DESTINATION "${RVMA_INSTALL_INCLUDEDIR}/${name}"
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
endfunction()

# rvma_unit_test(NAME SOURCES... LINK targets... [LABELS ...]): a GoogleTest program; CTest runs each test in a process
# of its own, because SystemC elaborates once a process.
function(rvma_unit_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(test_${name} ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE ${arg_LINK} rvma_test_main GTest::gtest GTest::gmock rvma_flags)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  gtest_discover_tests(
    test_${name}
    TEST_PREFIX "${name}."
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 120 ENVIRONMENT
               "LSAN_OPTIONS=use_stacks=0:suppressions=${PROJECT_SOURCE_DIR}/testbench/support/lsan.supp")
endfunction()
