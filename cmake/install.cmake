# What `make install` lays down, and how others find it: pkg-config and find_package(kernelgen).
include(CMakePackageConfigHelpers)

if(TARGET kernelgen)
  install(TARGETS kernelgen RUNTIME)
endif()
install(TARGETS kernelgen-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
install(TARGETS kernelgen_static ARCHIVE)
install(FILES include/kernelgen.h TYPE INCLUDE)
install(DIRECTORY ops/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kernelgen/ops FILES_MATCHING
        PATTERN "*.kg")

if(KG_SHARED)
  install(TARGETS kernelgen_shared EXPORT kernelgen LIBRARY)
  set(kg_package ${CMAKE_INSTALL_LIBDIR}/cmake/kernelgen)
  install(EXPORT kernelgen NAMESPACE kernelgen:: FILE kernelgenConfig.cmake DESTINATION ${kg_package})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/kernelgenConfigVersion.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/kernelgenConfigVersion.cmake DESTINATION ${kg_package})
endif()

# Relative to the .pc file, so an installed tree may be moved.
file(RELATIVE_PATH KG_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" KG_PREFIX "${KG_PREFIX}")
configure_file(cmake/kernelgen.pc.in ${CMAKE_BINARY_DIR}/kernelgen.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kernelgen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
