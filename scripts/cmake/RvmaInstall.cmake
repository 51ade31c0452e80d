# What `cmake --install` puts where: libraries and headers by block (rvma_library does that), the program, and in
# share/rvma what a user reads or feeds to tools, laid out as in the source tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Include lines keep the form that they have in the tree: "nic/rnic.hpp".
set(RVMA_INSTALL_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}/rvma")
set(RVMA_INSTALL_CMAKEDIR "${CMAKE_INSTALL_LIBDIR}/cmake/rvma")
set(RVMA_INSTALL_SHAREDIR "${CMAKE_INSTALL_DATADIR}/rvma")

# Of what is installed: broken invariants name their file as the tree does, not where it was built.
add_library(rvma_relocatable INTERFACE)
target_compile_options(rvma_relocatable INTERFACE "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/="
                                                  "-ffile-prefix-map=${PROJECT_BINARY_DIR}/=")

# rvma_install_package(): after every target is declared.
function(rvma_install_package)
  install(TARGETS rvma RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(EXPORT rvma NAMESPACE rvma:: FILE rvmaTargets.cmake DESTINATION "${RVMA_INSTALL_CMAKEDIR}")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/scripts/cmake/rvmaConfig.cmake.in" rvmaConfig.cmake
                                INSTALL_DESTINATION "${RVMA_INSTALL_CMAKEDIR}" NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(rvmaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/rvmaConfig.cmake" "${PROJECT_BINARY_DIR}/rvmaConfigVersion.cmake"
                "${PROJECT_SOURCE_DIR}/scripts/cmake/RvmaSystemC.cmake" DESTINATION "${RVMA_INSTALL_CMAKEDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/traces" "${PROJECT_SOURCE_DIR}/model/platform/presets"
          DESTINATION "${RVMA_INSTALL_SHAREDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/scripts/rvma_explore" DESTINATION "${RVMA_INSTALL_SHAREDIR}/python"
          PATTERN "__pycache__" EXCLUDE)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/scripts/wireshark" DESTINATION "${RVMA_INSTALL_SHAREDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/rtl" DESTINATION "${RVMA_INSTALL_SHAREDIR}"
          FILES_MATCHING PATTERN "*.v" PATTERN "*.vh" PATTERN "shapes.txt"
          PATTERN "adapter" EXCLUDE PATTERN "verilated" EXCLUDE)
  install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/LICENSE"
          DESTINATION "${RVMA_INSTALL_SHAREDIR}")
endfunction()
