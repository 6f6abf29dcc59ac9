# The definition document speaks of the device that it is for.
for op in matmul:matmul softmax:softmax convolution:conv2d reductions:sum_last; do
    for language in en zh; do
        kernelgen check "$OPS/${op%:*}.kg" --op "${op#*:}" --device host --lang $language >host
        grep -n -i 'warp\|stage\|occupancy\|shared memory\|共享内存\|\.cu`\|占用率' host
        kernelgen check "$OPS/${op%:*}.kg" --op "${op#*:}" --device h100 --lang $language >gpu
        grep -q -i 'warp' gpu && grep -q '\.cu`' gpu || echo "$op $language: nothing of a GPU"
    done
done
kernelgen check "$OPS/matmul.kg" --op matmul --device host | grep -c 'whole vectors'
