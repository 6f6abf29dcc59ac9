# The definition document speaks of the device that it is for: of threads, cores and caches if that
# is a CPU.
gpu='warp\|stage\|occupancy\|shared memory\|\<programs\?\>\|\<units\?\>\|lanes go\|all lanes\|\<grid\>\|\<waves\?\>'
gpu="$gpu"'\|on.chip\|sector\|共享内存\|\.cu`\|占用率\|程序块\|计算单元\|网格\|波次\|片上\|扇区'
for op in matmul:matmul softmax:softmax convolution:conv2d reductions:sum_last scans:cumsum \
    attention:attention arithmetic:add indexing:embedding indexing:transpose; do
    for language in en zh; do
        kernelgen check "$OPS/${op%:*}.kg" --op "${op#*:}" --device host --lang $language >host
        grep -n -i "$gpu" host
        grep -q ' cores\|核心' host || echo "$op $language: nothing of cores"
        kernelgen check "$OPS/${op%:*}.kg" --op "${op#*:}" --device h100 --lang $language >gpu
        grep -q -i 'warp' gpu && grep -q '\.cu`' gpu || echo "$op $language: nothing of a GPU"
    done
done
kernelgen check "$OPS/matmul.kg" --op matmul --device host | grep -c 'whole vectors'
