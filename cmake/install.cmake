# What `make install` lays down, and how others find it: pkg-config and find_package(KernelGen).
include(CMakePackageConfigHelpers)

if(TARGET kernelgen)
  install(TARGETS kernelgen RUNTIME)
  install(FILES docs/kernelgen.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

  # The tool prints its completions itself, from its table of options.
  function(kg_install_completions shell folder name)
    set(script ${CMAKE_BINARY_DIR}/completions/${shell}/${name})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/completions/${shell})
    install(CODE "execute_process(COMMAND \"$<TARGET_FILE:kernelgen>\" completions ${shell}
                                  OUTPUT_FILE \"${script}\" COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES ${script} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
  endfunction()
  if(NOT CMAKE_CROSSCOMPILING)
    kg_install_completions(bash bash-completion/completions kernelgen)
    kg_install_completions(zsh zsh/site-functions _kernelgen)
    kg_install_completions(fish fish/vendor_completions.d kernelgen.fish)
  endif()
endif()
install(TARGETS kernelgen-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
install(FILES include/kernelgen.h TYPE INCLUDE)
install(DIRECTORY ops/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kernelgen/ops FILES_MATCHING
        PATTERN "*.kg")

# Each library in an export of its own: who links the shared one needs nothing else.
set(kg_package ${CMAKE_INSTALL_LIBDIR}/cmake/KernelGen)
install(TARGETS kernelgen_static EXPORT KernelGenStatic ARCHIVE)
install(EXPORT KernelGenStatic NAMESPACE KernelGen:: DESTINATION ${kg_package})
if(KG_SHARED)
  install(TARGETS kernelgen_shared EXPORT KernelGenShared LIBRARY)
  install(EXPORT KernelGenShared NAMESPACE KernelGen:: DESTINATION ${kg_package})
endif()
configure_package_config_file(cmake/KernelGenConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/KernelGenConfig.cmake
                              INSTALL_DESTINATION ${kg_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/KernelGenConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/KernelGenConfig.cmake
              ${CMAKE_BINARY_DIR}/KernelGenConfigVersion.cmake DESTINATION ${kg_package})

# Relative to the .pc file, so an installed tree may be moved.
file(RELATIVE_PATH KG_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" KG_PREFIX "${KG_PREFIX}")
configure_file(cmake/kernelgen.pc.in ${CMAKE_BINARY_DIR}/kernelgen.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/kernelgen.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
