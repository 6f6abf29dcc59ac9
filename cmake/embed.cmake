# kg_embed(OUTPUT FILES...): one C file with every skeleton as a string, so that the library needs
# no files beside it. Looked up by name through kg_skeleton_find (src/gen/skeleton.h).
function(kg_embed output)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${ARGN}" -DROOT=${CMAKE_SOURCE_DIR}/kernels
            -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    COMMENT "Embedding kernel skeletons"
    VERBATIM)
endfunction()
